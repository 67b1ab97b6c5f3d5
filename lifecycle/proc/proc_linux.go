package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Identify names the process that has pid now; without start time when there
// is none.
func Identify(pid int) ID {
	st, _ := stat(pid)
	return ID{pid, st.Ticks}
}

// Alive reports whether this very process runs. One that cannot be read lives.
func (p ID) Alive() bool {
	st, err := stat(p.PID)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH)
	}
	return st.Ticks == p.Ticks && !st.Dead()
}

// Each calls f with every process but ourselves, dead ones too.
func Each(f func(Info)) error {
	d, err := os.Open("/proc")
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	d.Close()
	if err != nil {
		return err
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if st, err := stat(pid); err == nil {
			f(st)
		}
	}
	return nil
}

// Environ is the environment that a process was started with.
func Environ(pid int) []byte { return file(pid, "environ") }

// Cmdline is the command line of a process: NUL-separated, unless the process
// has written over it.
func Cmdline(pid int) []byte { return file(pid, "cmdline") }

// Boot names the time since the machine was started.
func Boot() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// Now is the time since boot, in the unit of a process's start time.
func Now() uint64 {
	b, _ := os.ReadFile("/proc/uptime")
	seconds, _, _ := bytes.Cut(b, []byte(" "))
	// It has two decimals, and a tick is 1/100 s for every Linux program.
	ticks, _ := strconv.ParseUint(string(bytes.Replace(seconds, []byte("."), nil, 1)), 10, 64)
	return ticks
}

// stat reads /proc/<pid>/stat. The name in it may hold anything, so the
// fields are counted from its closing bracket.
func stat(pid int) (Info, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Info{}, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 {
		return Info{}, syscall.ESRCH
	}
	parent, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return Info{}, err
	}
	ticks, err := strconv.ParseUint(string(f[19]), 10, 64)
	return Info{ID{pid, ticks}, parent, f[0][0]}, err
}

// file reads one file of a process; empty when it may not be read.
func file(pid int, name string) []byte {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	return b
}
