package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// usage is what a process has used since it began, as far as /proc tells.
type usage struct {
	CPU    float64 // seconds, user and system
	RSS    int64   // bytes
	Peak   int64   // bytes, since resetPeak or since the process began
	Writes int64   // write system calls
}

// ticks is the clock tick in which /proc counts CPU time, on every Linux
// platform that Go runs on.
const ticks = 100

// usageOf reads the counters of a process. Where there is no /proc it fails.
func usageOf(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the name may have spaces
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return u, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	u.CPU = float64(user+system) / ticks
	status, err := numbers(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, err
	}
	u.RSS, u.Peak = status["VmRSS"]<<10, status["VmHWM"]<<10
	io, err := numbers(fmt.Sprintf("/proc/%d/io", pid))
	u.Writes = io["syscw"]
	return u, err
}

// resetPeak makes the peak of a process begin now. It reports false where the
// system cannot: then the peak counts from the process's beginning.
func resetPeak(pid int) bool {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0) == nil
}

// numbers reads lines like "name: 12 kB".
func numbers(path string) (map[string]int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if fields := strings.Fields(value); len(fields) > 0 {
			if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				found[name] = n
			}
		}
	}
	return found, nil
}
