package lifecycle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// stopWaits bound the rungs of the ladder.
type stopWaits struct {
	close     time.Duration // for Browser.close; a stuck network service needs 10.1 s
	interrupt time.Duration // for SIGINT, which a page with beforeunload can veto
	rest      time.Duration // for the other processes, once the root has ended
	kill      time.Duration // until a pass finds nothing more to kill
}

var defaultWaits = stopWaits{15 * time.Second, 3 * time.Second, 500 * time.Millisecond, 2 * time.Second}

// stop is the ladder: Browser.close, SIGINT to the root, SIGKILL to all. It is
// also right for a Chrome that has ended already: stopped children outlive
// even a clean exit. Never SIGTERM, and never a polite signal to the group:
// both lose the cookies of the last 30 s.
func (c *Chrome) stop(ctx context.Context, r *run) Receipt {
	receipt := Receipt{Method: MethodGraceful}
	if !r.ended() && r.ws != "" {
		r.askToClose(ctx, c.waits.close)
	}
	if !r.ended() && r.root.same() {
		_ = r.cmd.Process.Signal(os.Interrupt)
		r.await(ctx, c.waits.interrupt)
	}
	if r.ended() {
		receipt.Survivors, receipt.Verified = r.awaitRest(c.waits.rest)
	} else {
		receipt.Method = MethodForced
	}
	if !receipt.Verified {
		receipt.Killed, receipt.Survivors, receipt.Verified = r.killAll(c.waits.kill)
	}
	if r.ended() {
		receipt.RootExit = rootExit(r.cmd.ProcessState)
		receipt.ExitType = exitType(r.profile)
	}
	// After SIGTERM, which may come from others, Chrome exits with 0 as well.
	receipt.DataRisk = receipt.RootExit != "exit 0" || receipt.ExitType == "SessionEnded"
	if receipt.Verified {
		r.clear()
	}
	return receipt
}

// askToClose sends Browser.close and waits for the root's end. The answer is
// of no interest: it is often lost with the connection.
func (r *run) askToClose(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := command(ctx, r.ws, "Browser.close"); err != nil && ctx.Err() == nil && !r.ended() {
		r.out.log.Debug().Err(err).Msg("browser.close")
	}
	r.await(ctx, wait)
}

// awaitRest waits until no process of a Chrome whose root has ended is left.
func (r *run) awaitRest(wait time.Duration) (survivors int, verified bool) {
	return r.untilGone(wait, func([]procID) {})
}

// killAll kills pass by pass, until a full pass finds nothing: what is being
// forked during one pass is seen by the next.
func (r *run) killAll(wait time.Duration) (killed, survivors int, verified bool) {
	hit := map[procID]bool{}
	if !r.ended() {
		all, _ := r.processes()
		for _, p := range all {
			hit[p] = true
		}
		killGroup(r.root)
	}
	survivors, verified = r.untilGone(wait, func(left []procID) {
		for _, p := range left {
			if p.kill() == nil {
				hit[p] = true
			}
		}
	})
	if !r.ended() {
		// Where processes cannot be listed, the group's end is all there is.
		r.await(context.Background(), wait)
	}
	return len(hit), survivors, verified
}

// untilGone looks for processes of the launch, and shows them to each, until
// there are none or the time is up. Not being able to look is no proof.
func (r *run) untilGone(wait time.Duration, each func([]procID)) (survivors int, verified bool) {
	deadline := time.Now().Add(wait)
	for {
		left, err := r.processes()
		if err != nil {
			return 0, false
		}
		if len(left) == 0 && r.ended() {
			return 0, true
		}
		if time.Now().After(deadline) {
			return len(left), false
		}
		each(left)
		time.Sleep(10 * time.Millisecond) // other people's children announce their end to nobody
	}
}

// clear removes what the launch left in the file system, and nothing of a
// Chrome that held the profile before it and lives on.
func (r *run) clear() {
	r.out.close()
	_ = os.RemoveAll(r.tmpdir)
	if host, err := os.Hostname(); err == nil {
		lock, _ := os.Readlink(filepath.Join(r.profile, singletons[0]))
		if lock == fmt.Sprintf("%s-%d", host, r.root.pid) {
			for _, name := range singletons {
				_ = os.Remove(filepath.Join(r.profile, name))
			}
		}
	}
	if r.ws != "" && readActivePort(r.profile) == r.ws {
		_ = os.Remove(filepath.Join(r.profile, activePort))
	}
}

// rootExit is how the root process ended: "exit 0", "signal: killed".
func rootExit(state *os.ProcessState) string {
	if code := state.ExitCode(); code >= 0 {
		return fmt.Sprintf("exit %d", code)
	}
	return state.String()
}
