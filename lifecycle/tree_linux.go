package lifecycle

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// procID names one process for ever: a pid is reused, a pid with its start
// time is not.
type procID struct {
	pid   int
	ticks uint64 // start time since boot
}

// identify names the live process that has pid now.
func identify(pid int) procID {
	st, _ := readStat(pid)
	return procID{pid, st.ticks}
}

// same reports whether the process that has the pid now is still this one.
func (p procID) same() bool {
	st, err := readStat(p.pid)
	return err == nil && st.ticks == p.ticks
}

// kill sends SIGKILL to p and to nothing else. The handle is a pidfd, opened
// before the identity is checked.
func (p procID) kill() error {
	if p.pid <= 1 || p.pid == os.Getpid() {
		return errors.New("not ours to kill")
	}
	h, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer h.Release()
	if !p.same() {
		return os.ErrProcessDone
	}
	return h.Signal(syscall.SIGKILL)
}

type procStat struct {
	state byte
	ticks uint64
}

// readStat reads /proc/<pid>/stat. The name in it may hold anything, so the
// fields are counted from its closing bracket.
func readStat(pid int) (procStat, error) {
	f := bytes.Fields(afterName(procFile(pid, "stat")))
	if len(f) < 20 {
		return procStat{}, os.ErrProcessDone
	}
	ticks, err := strconv.ParseUint(string(f[19]), 10, 64)
	return procStat{f[0][0], ticks}, err
}

func afterName(stat []byte) []byte { return stat[bytes.LastIndexByte(stat, ')')+1:] }

// bootTicks is the time since boot, in the unit of a process's start time.
func bootTicks() uint64 {
	b, _ := os.ReadFile("/proc/uptime")
	seconds, _, _ := bytes.Cut(b, []byte(" "))
	// It has two decimals, and a tick is 1/100 s for every Linux program.
	ticks, _ := strconv.ParseUint(string(bytes.Replace(seconds, []byte("."), nil, 1)), 10, 64)
	return ticks
}

// eachProcess calls f with every live process but ourselves; zombies are dead.
func eachProcess(f func(pid int, st procStat)) error {
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
		if st, err := readStat(pid); err == nil && st.state != 'Z' && st.state != 'X' {
			f(pid, st)
		}
	}
	return nil
}

// usersOf lists the processes that run on a profile, the oldest first: that is
// the one to name.
func usersOf(profile string) ([]procID, error) {
	var out []procID
	err := eachProcess(func(pid int, st procStat) {
		if namesProfile(procFile(pid, "cmdline"), profile) {
			out = append(out, procID{pid, st.ticks})
		}
	})
	slices.SortFunc(out, func(a, b procID) int {
		return cmp.Or(cmp.Compare(a.ticks, b.ticks), cmp.Compare(a.pid, b.pid))
	})
	return out, err
}

// processes lists what is alive of one launch. Root and crashpad keep the
// environment that they were started with; Chrome's other processes write
// their title over it, and the title names the profile. Whatever started
// after the root's end is somebody else's Chrome on the same profile.
func (r *run) processes() ([]procID, error) {
	var out []procID
	marker := []byte("TMPDIR=" + r.tmpdir)
	err := eachProcess(func(pid int, st procStat) {
		if st.ticks < r.root.ticks || r.ended() && st.ticks > r.endTicks {
			return
		}
		if hasEntry(procFile(pid, "environ"), marker) || titleNames(procFile(pid, "cmdline"), r.profile) {
			out = append(out, procID{pid, st.ticks})
		}
	})
	return out, err
}

// procFile reads one file of a process; empty when it may not be read.
func procFile(pid int, name string) []byte {
	b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
	return b
}

// namesProfile reports whether a command line says --user-data-dir=profile.
func namesProfile(cmdline []byte, profile string) bool {
	return hasEntry(cmdline, []byte("--user-data-dir="+profile)) || titleNames(cmdline, profile)
}

// titleNames is namesProfile for Chrome's children only: they have overwritten
// their arguments with one string, joined by spaces. A bystander that has the
// profile among its arguments (a grep) is none.
func titleNames(cmdline []byte, profile string) bool {
	title := string(bytes.TrimRight(cmdline, "\x00"))
	if strings.Contains(title, "\x00") || !strings.Contains(title, " --type=") {
		return false
	}
	return strings.Contains(title+" -", " --user-data-dir="+profile+" -")
}

// hasEntry reports whether a NUL-separated list holds exactly want.
func hasEntry(list, want []byte) bool {
	for entry := range bytes.SplitSeq(list, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}
