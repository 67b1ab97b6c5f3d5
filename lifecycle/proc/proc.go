// Package proc names processes so that they can be told apart for ever, lists
// them, and signals one and no other.
package proc

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
)

// ID names one process for ever: a pid is reused, a pid with its start time
// is not, until the machine boots anew (Boot).
type ID struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"ticks"` // start time since boot; 1/100 s
}

// Info is what the list of processes says of one.
type Info struct {
	ID
	Parent int
	State  byte // as in /proc: R, S, T, …; Z and X are dead
}

// Dead reports whether the process only waits for its parent to notice.
func (i Info) Dead() bool { return i.State == 'Z' || i.State == 'X' }

// Signal sends sig to this process and to nothing else: never to init, to
// ourselves, or to one that has the pid by now.
func (p ID) Signal(sig syscall.Signal) error {
	if p.PID <= 1 || p.PID == os.Getpid() {
		return errors.New("not ours to signal")
	}
	h, err := os.FindProcess(p.PID) // a pidfd where there is one, taken before the check
	if err != nil {
		return err
	}
	defer h.Release()
	if !p.Alive() {
		return os.ErrProcessDone
	}
	return h.Signal(sig)
}

// HasEntry reports whether a NUL-separated list holds exactly want.
func HasEntry(list []byte, want string) bool {
	for entry := range bytes.SplitSeq(list, []byte{0}) {
		if string(entry) == want {
			return true
		}
	}
	return false
}

// TitleNames reports whether cmdline is that of a child of a Chrome with this
// profile: they have overwritten their arguments with one string, joined by
// spaces. A bystander that has the profile among its arguments is none.
func TitleNames(cmdline []byte, profile string) bool {
	title := string(bytes.TrimRight(cmdline, "\x00"))
	if strings.Contains(title, "\x00") || !strings.Contains(title, " --type=") {
		return false
	}
	return strings.Contains(title+" -", " --user-data-dir="+profile+" -")
}

// UsersOf lists the processes that run on a profile, the oldest first: that is
// the one to name.
func UsersOf(profile string) ([]ID, error) {
	var out []ID
	err := Each(func(i Info) {
		cmdline := Cmdline(i.PID)
		if !i.Dead() && (HasEntry(cmdline, "--user-data-dir="+profile) || TitleNames(cmdline, profile)) {
			out = append(out, i.ID)
		}
	})
	slices.SortFunc(out, func(a, b ID) int {
		return cmp.Or(cmp.Compare(a.Ticks, b.Ticks), cmp.Compare(a.PID, b.PID))
	})
	return out, err
}
