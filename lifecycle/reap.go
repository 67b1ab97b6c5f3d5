package lifecycle

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle/proc"
	"cdpmux/routing"
)

// Reaper ends the browser-harness daemons that agents have left behind, and
// removes what is left of their sessions. It judges those of its own store
// only, <slug>-<8 of the task>[-wN].
type Reaper struct {
	Dir      string   // where the daemons keep bu-<session>.pid and .sock
	Tmp      string   // where each session has a folder of its name: the tool's log and screenshots
	Slug     string   // of the store; web for the store-less browser
	AnyTasks bool     // task ids are not only hex: the store's task format "any"
	Others   []string // slugs of the home's other stores, whose sessions may look like ours
	MinAge   time.Duration
	Log      zerolog.Logger
}

// ReapMinAge is how old a daemon must be before it can be judged: its client
// may still be on the way.
func ReapMinAge(grace, startTimeout time.Duration) time.Duration {
	return max(grace, startTimeout) + time.Minute
}

// InUse is what the daemons may be needed for.
type InUse struct {
	Clients []string // ids that are connected or in grace
	Tasks   []string // ids that somebody says are active
}

// Reaped is what a pass did, by session.
type Reaped struct {
	Ended   []string `json:"ended"`   // daemons
	Cleaned []string `json:"cleaned"` // files or folder of a daemon that was gone
	Kept    []string `json:"kept"`
}

// daemon is what there is of one session.
type daemon struct {
	part string // of the session's name, behind the slug
	live bool   // a browser-harness daemon of this name runs
	age  time.Duration
}

// reapVerdict is what becomes of a daemon.
type reapVerdict int

const (
	keepDaemon reapVerdict = iota
	cleanFiles
	endDaemon
)

// verdict decides on one daemon.
func (d daemon) verdict(use InUse, minAge time.Duration) reapVerdict {
	switch {
	case !d.live:
		return cleanFiles
	case d.age <= minAge, d.usedBy(use):
		return keepDaemon
	}
	return endDaemon
}

// usedBy reports whether the daemon's client is there, or its task active.
// The name of a session has the first 8 characters of a task and the tail of
// a worker, which is a client's short id.
func (d daemon) usedBy(use InUse) bool {
	return slices.ContainsFunc(use.Clients, func(id string) bool { return routing.ShortID(id) == d.part }) ||
		slices.ContainsFunc(use.Tasks, func(task string) bool { return d.isOf(task) })
}

// isOf reports whether the daemon, or the worker's, belongs to a task.
func (d daemon) isOf(task string) bool {
	head, _, _ := strings.Cut(d.part, "-w")
	return head == task[:min(8, len(task))]
}

// Pass judges all daemons of the store once.
func (r Reaper) Pass(ctx context.Context, use InUse) (Reaped, error) {
	return r.each(ctx, func(d daemon) reapVerdict { return d.verdict(use, r.MinAge) })
}

// EndTask ends the daemons of one task and its workers at once, whatever their
// age and whoever is connected.
func (r Reaper) EndTask(ctx context.Context, task string) (Reaped, error) {
	return r.each(ctx, func(d daemon) reapVerdict {
		switch {
		case !d.isOf(task):
			return keepDaemon
		case d.live:
			return endDaemon
		}
		return cleanFiles
	})
}

func (r Reaper) each(ctx context.Context, judge func(daemon) reapVerdict) (done Reaped, err error) {
	if proc.Boot() == "" {
		return done, errors.New("daemons cannot be told apart on this system, so none is ended")
	}
	session := r.sessions()
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return done, err
	}
	for _, e := range entries {
		name, isPID := strings.CutSuffix(e.Name(), ".pid")
		name, isBU := strings.CutPrefix(name, "bu-")
		part, ours := session(name)
		if !isPID || !isBU || !ours {
			continue
		}
		id, age := r.look(name)
		switch judge(daemon{part, id.PID != 0, age}) {
		case keepDaemon:
			done.Kept = append(done.Kept, name)
		case cleanFiles:
			r.clean(name)
			done.Cleaned = append(done.Cleaned, name)
		case endDaemon:
			if !end(ctx, id) {
				r.Log.Warn().Str("session", name).Int("pid", id.PID).Msg("daemon does not end")
				done.Kept = append(done.Kept, name)
				continue
			}
			r.clean(name)
			r.Log.Info().Str("session", name).Int("pid", id.PID).Dur("age", age).Msg("daemon of a client that is gone ended")
			done.Ended = append(done.Ended, name)
		}
	}
	err = r.folders(&done, judge)
	return done, err
}

// sessions returns the test for a session of ours, which also says what its
// name has behind the slug.
func (r Reaper) sessions() func(name string) (part string, ours bool) {
	format := "[0-9a-fA-F]{8}"
	if r.AnyTasks {
		format = "[A-Za-z0-9_]{1,8}"
	}
	session := regexp.MustCompile("^" + regexp.QuoteMeta(r.Slug) + "-(" + format + "(-w[1-9][0-9]*)?)$")
	return func(name string) (string, bool) {
		m := session.FindStringSubmatch(name)
		if m == nil || slices.ContainsFunc(r.Others, func(slug string) bool {
			return len(slug) > len(r.Slug) && (name == slug || strings.HasPrefix(name, slug+"-"))
		}) {
			return "", false
		}
		return m[1], true
	}
}

// folders removes the folders of sessions in which nothing runs, if judge
// would have ended a daemon as old as the last call of the tool: each call
// makes a file in the folder.
func (r Reaper) folders(done *Reaped, judge func(daemon) reapVerdict) error {
	entries, err := os.ReadDir(r.Tmp)
	if err != nil {
		return err
	}
	session, old := r.sessions(), map[string]time.Time{}
	for _, e := range entries {
		part, ours := session(e.Name())
		fi, err := e.Info() // of a link, not of where it leads
		if err != nil || !ours || !fi.IsDir() || !ownedByUs(fi) {
			continue
		}
		if judge(daemon{part, true, time.Since(fi.ModTime())}) == endDaemon {
			old[e.Name()] = fi.ModTime()
		}
	}
	if len(old) == 0 {
		return nil
	}
	// Not every process of a session has a pid file: the tool itself has none.
	if err := proc.Each(func(i proc.Info) {
		if i.Dead() {
			return
		}
		for entry := range strings.SplitSeq(string(proc.Environ(i.PID)), "\x00") {
			if name, ok := strings.CutPrefix(entry, "BU_NAME="); ok {
				delete(old, name)
			}
		}
	}); err != nil {
		return err
	}
	var left []error
	for _, name := range slices.Sorted(maps.Keys(old)) {
		path := filepath.Join(r.Tmp, name)
		if fi, err := os.Lstat(path); err != nil || !fi.ModTime().Equal(old[name]) {
			continue // a call has begun
		}
		if err := os.RemoveAll(path); err != nil {
			left = append(left, err)
			continue
		}
		if !slices.Contains(done.Ended, name) && !slices.Contains(done.Cleaned, name) {
			done.Cleaned = append(done.Cleaned, name)
		}
	}
	return errors.Join(left...)
}

// look finds the daemon of a session by its pid file. The zero ID: there is
// none. A process that began after the file was written has only its pid.
func (r Reaper) look(name string) (id proc.ID, age time.Duration) {
	path := filepath.Join(r.Dir, "bu-"+name+".pid")
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return proc.ID{}, 0
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return proc.ID{}, 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return proc.ID{}, 0
	}
	id = proc.Identify(pid)
	if !id.Alive() || !proc.HasEntry(proc.Cmdline(pid), "browser_harness.daemon") || !proc.HasEntry(proc.Environ(pid), "BU_NAME="+name) {
		return proc.ID{}, 0
	}
	age = time.Duration(proc.Now()-id.Ticks) * 10 * time.Millisecond
	began := time.Now().Add(-age)
	if began.After(fi.ModTime().Add(2 * time.Second)) { // two clocks, of which one has been set
		return proc.ID{}, 0
	}
	return id, age
}

func (r Reaper) clean(name string) {
	for _, ext := range []string{".sock", ".pid"} {
		_ = os.Remove(filepath.Join(r.Dir, "bu-"+name+ext))
	}
}

// end ends a process, politely at first, and reports whether it is gone.
func end(ctx context.Context, id proc.ID) bool {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		_ = id.Signal(sig)
		for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			if !id.Alive() {
				return true
			}
		}
	}
	return !id.Alive()
}
