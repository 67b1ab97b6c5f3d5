package keeper

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroupFor is where the cgroup of an incarnation is to be, below ours. It is
// a new one each time: the kernel kills what is started into a cgroup that
// cgroup.kill was once written to. Empty: there is no cgroup v2.
func cgroupFor(id string) string {
	parent, err := OwnCgroup()
	if err != nil {
		return ""
	}
	return filepath.Join(parent, "cdpmux-"+id)
}

// OwnCgroup is the directory of the cgroup v2 that we are in.
func OwnCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	path := ""
	for line := range strings.Lines(string(own)) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			path = p
		}
	}
	for line := range strings.Lines(string(mounts)) {
		head, tail, _ := strings.Cut(line, " - ")
		f := strings.Fields(head) // id parent dev root mountpoint …
		if !strings.HasPrefix(tail, "cgroup2 ") || len(f) < 5 {
			continue
		}
		if rel, err := filepath.Rel(f[3], path); err == nil && !strings.HasPrefix(rel, "..") {
			return filepath.Join(f[4], rel), nil
		}
	}
	return "", errors.New("no cgroup v2")
}

// killCgroup kills all that is in a cgroup, whatever it forks meanwhile.
func killCgroup(dir string) {
	if dir != "" {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // an older kernel has none
	}
}

// inCgroup lists the pids in a cgroup.
func inCgroup(dir string) map[int]bool {
	out := map[int]bool{}
	if dir == "" {
		return out
	}
	b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for line := range bytes.Lines(b) {
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 0 {
			out[pid] = true
		}
	}
	return out
}
