package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cdpmux/lifecycle"
)

// ActivePort is the file in which Chrome leaves its port. It stays after
// every kind of exit, so an old one is deleted before each launch.
const ActivePort = "DevToolsActivePort"

// removedLock is what a receipt calls the removal of a profile's lock.
const removedLock = "singleton"

// clear removes what the incarnation left in the file system, and nothing of
// a Chrome that held the profile before it and lives on.
func (r *remains) clear() (removed []string) {
	if RemoveSingletons(r.rec.Profile, fmt.Sprintf("%s-%d", r.rec.Host, r.rec.Root.PID)) {
		removed = append(removed, removedLock)
	}
	// The launch deleted the file of the Chrome before, so it is ours if our
	// Chrome has had the profile at all.
	if r.held && os.Remove(filepath.Join(r.rec.Profile, ActivePort)) == nil {
		removed = append(removed, "port_file")
	}
	if r.rec.TMPDIR != "" {
		if _, err := os.Lstat(r.rec.TMPDIR); err == nil && os.RemoveAll(r.rec.TMPDIR) == nil {
			removed = append(removed, "tmpdir")
		}
	}
	if r.rec.Cgroup != "" && removeCgroup(r.rec.Cgroup) {
		removed = append(removed, "cgroup")
	}
	for _, socket := range []string{r.rec.Socket, r.rec.Upstream} {
		if socket != "" {
			_ = os.Remove(socket)
		}
	}
	return removed
}

// removeCgroup waits for the kernel to let go of those that have just died.
func removeCgroup(dir string) bool {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := os.Remove(dir)
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return err == nil
		}
	}
}

// RemoveSingletons removes the links of a Chrome that is gone, if it was owner.
func RemoveSingletons(profile, owner string) bool {
	if lock, _ := os.Readlink(filepath.Join(profile, lifecycle.Singletons[0])); lock != owner {
		return false
	}
	for _, name := range lifecycle.Singletons {
		_ = os.Remove(filepath.Join(profile, name))
	}
	return true
}

// exitType is what Chrome wrote of its own end: Normal, SessionEnded, Crashed.
func exitType(profile string) string {
	var prefs struct {
		Profile struct {
			ExitType string `json:"exit_type"`
		}
	}
	b, _ := os.ReadFile(filepath.Join(profile, "Default", "Preferences"))
	_ = json.Unmarshal(b, &prefs)
	return prefs.Profile.ExitType
}

// readActivePort returns the address in DevToolsActivePort, or nothing while
// the file is missing or half written.
func readActivePort(profile string) string {
	b, _ := os.ReadFile(filepath.Join(profile, ActivePort))
	port, path, ok := strings.Cut(string(b), "\n")
	path = strings.TrimSpace(path)
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || !ok || !strings.HasPrefix(path, "/devtools/browser/") {
		return ""
	}
	return "ws://127.0.0.1:" + port + path
}
