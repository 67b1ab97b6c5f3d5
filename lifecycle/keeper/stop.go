package keeper

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// ladder ends the browser: Browser.close, SIGINT to the root, SIGKILL to all.
// It is also right for a Chrome that has ended already: stopped children
// outlive even a clean exit. Never SIGTERM, and never a polite signal to the
// group: both lose the cookies of the last 30 s.
func (k *keeper) ladder() lifecycle.Receipt {
	receipt := lifecycle.Receipt{Incarnation: k.rec.ID, Method: lifecycle.MethodGraceful}
	watch := lifecycle.NewWatch()
	waits := k.spec.Waits
	if k.report.State == Starting {
		waits.Close = min(waits.Close, waits.Interrupt) // it may not hear us yet, and has nothing to lose
	}
	switch {
	case k.gone():
		receipt.Method = lifecycle.MethodCrashed
	default:
		asked, again := waits.quit()
		k.pipe.quit()
		done := k.await(asked)
		watch.Done("close", done)
		if !done {
			receipt.Escalated = true
			k.pipe.close()
			_ = k.rec.Root.Signal(syscall.SIGINT) // once: the second one kills
			done = k.await(again)
			watch.Done("interrupt", done)
		}
		if !done {
			receipt.Method = lifecycle.MethodForced
		}
	}
	k.pipe.close()
	k.clean(&receipt, watch, waits, k.gone())
	if k.await(waits.Kill) {
		receipt.RootExit = rootExit(k.cmd.ProcessState)
		receipt.ExitType = exitType(k.rec.Profile)
	} else {
		receipt.Verified = false
	}
	// After SIGTERM, which may come from others, Chrome exits with 0 as well.
	receipt.DataRisk = k.risk || receipt.RootExit != "exit 0" || receipt.ExitType == "SessionEnded"
	k.out.close()
	return receipt
}

// clean is the lower half of the ladder, when the root has ended or nothing
// else has helped: kill what is left, look again, and only then remove files.
func (r *remains) clean(receipt *lifecycle.Receipt, watch *lifecycle.Watch, waits Waits, rootGone bool) {
	before, _ := r.list()
	done := false
	if rootGone {
		_, done = r.await(waits.Rest, func([]proc.ID) { reapOrphans(r.rec.Root.PID) })
		watch.Done("rest", done)
	}
	if !done {
		receipt.Escalated = true
		_, done = r.kill(waits.Kill)
		watch.Done("kill", done)
	}
	left, err := r.list()
	receipt.Survivors = len(left)
	for _, p := range left {
		receipt.Left = append(receipt.Left, p.PID)
	}
	for _, p := range before {
		if p.Alive() && p != r.rec.Keeper {
			done = false
		}
	}
	receipt.Killed, receipt.Verified = len(r.killed), done && err == nil && len(left) == 0
	watch.Done("verify", receipt.Verified)
	if receipt.Verified {
		receipt.Removed = r.clear()
		watch.Done("remove", true)
	}
	receipt.Stages, receipt.ElapsedMS = watch.Stages, watch.ElapsedMS()
}

// await waits until the root process has been reaped, at most for d, and
// reports whether it has.
func (k *keeper) await(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-k.exited:
		return true
	case <-t.C:
		return k.gone()
	}
}

// gone reports whether the root process has been reaped. Others may be left.
func (k *keeper) gone() bool {
	select {
	case <-k.exited:
		return true
	default:
		return false
	}
}

// rootExit is how the root process ended: "exit 0", "signal: killed".
func rootExit(state *os.ProcessState) string {
	if code := state.ExitCode(); code >= 0 {
		return fmt.Sprintf("exit %d", code)
	}
	return state.String()
}
