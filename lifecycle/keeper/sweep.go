package keeper

import (
	"os"
	"slices"
	"syscall"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// Sweep ends what is left of an incarnation whose keeper is gone, and removes
// its record when it is verified gone. Its root had the end of its pipe as the
// request to quit, and gets a second one; only what does not do so is killed.
// The caller holds the store's lock.
func Sweep(path string, rec *Record, waits Waits) lifecycle.Receipt {
	r := &remains{rec: rec, killed: map[proc.ID]bool{}, held: true}
	receipt := lifecycle.Receipt{Incarnation: rec.ID, Method: lifecycle.MethodGraceful}
	watch := lifecycle.NewWatch()
	if rec.Boot != proc.Boot() {
		// Nothing outlives a boot; its pids are others' now.
		receipt.Method, receipt.Verified = lifecycle.MethodCrashed, true
		receipt.Removed = r.clear()
	} else {
		r.findRoot()
		asked, again := waits.quit()
		gone := r.rootGone(asked)
		watch.Done("close", gone)
		if !gone {
			receipt.Escalated = true
			_ = rec.Root.Signal(syscall.SIGINT) // once: the second one kills
			gone = r.rootGone(again)
			watch.Done("interrupt", gone)
		}
		if !gone {
			receipt.Method = lifecycle.MethodForced
		}
		r.clean(&receipt, watch, waits, gone)
	}
	receipt.ExitType = exitType(rec.Profile)
	if receipt.Method == lifecycle.MethodGraceful && (receipt.ExitType != "Normal" || LeftLock(receipt)) {
		receipt.Method = lifecycle.MethodCrashed
	}
	receipt.DataRisk = r.risk || receipt.Method != lifecycle.MethodGraceful
	if receipt.Verified {
		_ = os.Remove(path)
	} else {
		rec.Receipt = &receipt
		_ = rec.write(path)
	}
	return receipt
}

// LeftLock reports whether a browser that was swept had left the lock of its
// profile: it does so when it is killed, and not when it quits. What it wrote
// of its own end may be that of the time before.
func LeftLock(r lifecycle.Receipt) bool { return slices.Contains(r.Removed, removedLock) }

// findRoot looks for a root that was started and never recorded: the one that
// was begun with our TMPDIR and still has its own command line.
func (r *remains) findRoot() {
	if r.rec.Root.PID != 0 {
		return
	}
	live, _ := r.list()
	for _, p := range live {
		if proc.HasEntry(proc.Cmdline(p.PID), "--user-data-dir="+r.rec.Profile) {
			r.rec.Root = p
			return
		}
	}
}

// rootGone waits for the root's end, at most for wait.
func (r *remains) rootGone(wait time.Duration) bool {
	for deadline := time.Now().Add(wait); r.rec.Root.PID != 0 && r.rec.Root.Alive(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}
