package keeper

import (
	"bytes"
	"os"
	"syscall"
	"time"

	"cdpmux/lifecycle/proc"
)

// remains knows the processes of one incarnation, by every mark they have:
//
//	its cgroup           all of them, where there is one
//	descent from us      all of them, when we are their keeper (orphans come to us)
//	TMPDIR as it began   the root and its crash handlers, which keep their environment
//	the profile          Chrome's other children, which show it in their title
type remains struct {
	rec    *Record
	killed map[proc.ID]bool
	risk   bool // one that writes to the profile was killed
	held   bool // its Chrome was ready once, so the profile was its own
}

// list returns what is alive.
func (r *remains) list() ([]proc.ID, error) {
	var live []proc.Info
	parent := map[int]int{}
	err := proc.Each(func(i proc.Info) {
		parent[i.PID] = i.Parent
		if !i.Dead() && i.ID != r.rec.Keeper {
			live = append(live, i)
		}
	})
	members := inCgroup(r.rec.Cgroup)
	mark := "TMPDIR=" + r.rec.TMPDIR
	var out []proc.ID
	for _, i := range live {
		if members[i.PID] || r.descends(i.PID, parent) || proc.HasEntry(proc.Environ(i.PID), mark) ||
			i.Ticks >= r.rec.Root.Ticks && proc.TitleNames(proc.Cmdline(i.PID), r.rec.Profile) && !r.foreign(i.PID, parent) {
			out = append(out, i.ID)
		}
	}
	return out, err
}

// descends reports whether pid is below this process, and this is the keeper.
func (r *remains) descends(pid int, parent map[int]int) bool {
	if r.rec.Keeper.PID != os.Getpid() {
		return false
	}
	return below(pid, parent, func(pid int) bool { return pid == r.rec.Keeper.PID })
}

// foreign reports whether pid belongs to somebody else's Chrome on the same
// profile, as a human may start one when ours is gone.
func (r *remains) foreign(pid int, parent map[int]int) bool {
	return below(pid, parent, func(pid int) bool {
		return proc.HasEntry(proc.Cmdline(pid), "--user-data-dir="+r.rec.Profile) &&
			!proc.HasEntry(proc.Environ(pid), "TMPDIR="+r.rec.TMPDIR)
	})
}

// below reports whether some ancestor of pid is one that is looked for.
func below(pid int, parent map[int]int, found func(pid int) bool) bool {
	for range 64 { // the list was not taken in one moment: it may have a ring
		if pid = parent[pid]; pid <= 1 {
			return false
		}
		if found(pid) {
			return true
		}
	}
	return false
}

// await waits until nothing is left, for at most wait. Meanwhile each pass
// may do something to those that it finds. Not being able to look is no proof.
func (r *remains) await(wait time.Duration, each func([]proc.ID)) (survivors int, ok bool) {
	deadline := time.Now().Add(wait)
	for {
		left, err := r.list()
		if err != nil {
			return 0, false
		}
		if len(left) == 0 {
			return 0, true
		}
		each(left)
		if time.Now().After(deadline) {
			return len(left), false
		}
		time.Sleep(10 * time.Millisecond) // other people's children announce their end to nobody
	}
}

// kill kills pass by pass, until a full pass finds nothing: what is being
// forked during one pass is seen by the next.
func (r *remains) kill(wait time.Duration) (survivors int, ok bool) {
	r.note(first(r.list()))
	killCgroup(r.rec.Cgroup)
	killGroup(r.rec.Root)
	return r.await(wait, func(left []proc.ID) {
		r.note(left)
		for _, p := range left {
			_ = p.Signal(syscall.SIGKILL)
		}
		reapOrphans(r.rec.Root.PID)
	})
}

// note counts those that are about to be killed. The network and the storage
// service write what was not written yet, logins among it.
func (r *remains) note(left []proc.ID) {
	for _, p := range left {
		if r.killed[p] {
			continue
		}
		r.killed[p] = true
		title := proc.Cmdline(p.PID)
		if bytes.Contains(title, []byte("network.mojom")) || bytes.Contains(title, []byte("storage.mojom")) {
			r.risk = true
		}
	}
}

// reapOrphans takes dead children of ours out of the process table, except
// the root, whose exit code exec.Cmd waits for.
func reapOrphans(root int) {
	var dead []int
	_ = proc.Each(func(i proc.Info) {
		if i.Parent == os.Getpid() && i.Dead() && i.PID != root {
			dead = append(dead, i.PID)
		}
	})
	for _, pid := range dead {
		reap(pid)
	}
}

func first[T any](v T, _ error) T { return v }
