package chrome

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
)

// tree lists the processes of a browser by what the kernel says of them, not
// by the means of the product: those below the keeper, which its orphans join.
func tree(t *testing.T, rec *keeper.Record) []proc.ID {
	t.Helper()
	var all []proc.Info
	if err := proc.Each(func(i proc.Info) { all = append(all, i) }); err != nil {
		t.Fatal(err)
	}
	in := map[int]bool{rec.Keeper.PID: true}
	var out []proc.ID
	for grown := true; grown; {
		grown = false
		for _, i := range all {
			if in[i.Parent] && !in[i.PID] && !i.Dead() {
				in[i.PID], grown = true, true
				out = append(out, i.ID)
			}
		}
	}
	return out
}

// ofKind lists those whose title holds mark.
func ofKind(t *testing.T, rec *keeper.Record, mark string) []proc.ID {
	t.Helper()
	return slices.DeleteFunc(tree(t, rec), func(p proc.ID) bool {
		return !strings.Contains(string(proc.Cmdline(p.PID)), mark)
	})
}

func wantGone(t *testing.T, ids []proc.ID) {
	t.Helper()
	for _, p := range ids {
		if p.Alive() {
			t.Errorf("pid %d lives: %s", p.PID, proc.Cmdline(p.PID))
		}
	}
}

func stopped(t *testing.T, c *Chrome) lifecycle.Receipt {
	t.Helper()
	r := c.Stop(t.Context())
	if !r.Verified || r.Survivors != 0 {
		t.Errorf("receipt %+v", r)
	}
	return r
}

func TestStartIsOneBrowser(t *testing.T) {
	c := newChrome(t, testConfig(t))
	if err := c.Probe(t.Context()); err == nil {
		t.Error("probe of a browser that was never started: no error")
	}
	var wg sync.WaitGroup
	got := make([]string, 3)
	for i := range got {
		wg.Go(func() { got[i] = start(t, c) })
	}
	wg.Wait()
	if got[0] != got[1] || got[1] != got[2] {
		t.Errorf("addresses differ: %q", got)
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Errorf("probe: %v", err)
	}
	rec := record(t, c)
	if len(rec.TMPDIR) > maxTmpdir {
		t.Errorf("TMPDIR %s has %d bytes", rec.TMPDIR, len(rec.TMPDIR))
	}
	var all []proc.ID
	eventually(t, "the usual processes below the keeper", func() bool { all = tree(t, rec); return len(all) >= 8 })
	// Chromium that is asked to close in the middle of its own start may hang
	// (once in many runs); one that has opened a tab is through with that.
	d := drive(t, got[0])
	d.close(d.open("about:blank"))

	r := stopped(t, c)
	if r.Method != lifecycle.MethodGraceful || r.RootExit != "exit 0" || r.ExitType != "Normal" || r.DataRisk || r.Escalated || r.Killed != 0 {
		t.Errorf("receipt %+v", r)
	}
	wantGone(t, all)
	eventually(t, "the keeper's end", func() bool { return !rec.Keeper.Alive() })
	left := []string{rec.TMPDIR, rec.Socket, c.cfg.Record}
	if rec.Cgroup != "" {
		left = append(left, rec.Cgroup)
	}
	for _, name := range append(lifecycle.Singletons, keeper.ActivePort) {
		left = append(left, filepath.Join(c.cfg.Profile, name))
	}
	for _, path := range left {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if r := c.Stop(t.Context()); r.Method != lifecycle.MethodNone || !r.Verified {
		t.Errorf("second stop: %+v", r)
	}
}

// Stopped children outlive even a clean exit of their root. Neighbours that
// look alike are not touched.
func TestStopKillsSurvivorsOnly(t *testing.T) {
	cfg := testConfig(t)
	c := newChrome(t, cfg)
	neighbour := cfg
	neighbour.Profile += "-2"
	neighbour.Record += "2"
	other := newChrome(t, neighbour)
	start(t, c)
	start(t, other)
	rec := record(t, c)
	bystander := sleeper(t, "--user-data-dir="+rec.Profile)

	var all []proc.ID
	frozen := 0
	eventually(t, "a renderer", func() bool {
		all = tree(t, rec)
		for _, p := range ofKind(t, rec, "--type=renderer") {
			if p.Signal(syscall.SIGSTOP) == nil {
				frozen++
			}
		}
		return frozen > 0
	})
	r := stopped(t, c)
	// In the sandbox's PID namespace, the kernel has killed them by then.
	tooFew := c.cfg.NoSandbox && r.Killed < frozen
	if r.Method != lifecycle.MethodGraceful || tooFew || r.DataRisk || !r.Escalated {
		t.Errorf("%d renderers stopped, receipt %+v", frozen, r)
	}
	wantGone(t, all)
	if !bystander.Alive() {
		t.Error("a bystander with the profile among its arguments was killed")
	}
	if err := other.Probe(t.Context()); err != nil {
		t.Errorf("the browser of profile-2: %v", err)
	}
}

func TestStopForcesHungChrome(t *testing.T) {
	cfg := testConfig(t)
	cfg.Waits = keeper.Waits{Close: 300 * time.Millisecond, Interrupt: 300 * time.Millisecond}
	c := newChrome(t, cfg)
	start(t, c)
	rec := record(t, c)
	all := tree(t, rec)
	if err := rec.Root.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r := stopped(t, c)
	if r.Method != lifecycle.MethodForced || r.RootExit != "signal: killed" || r.Killed < 4 || !r.DataRisk || !r.Escalated {
		t.Errorf("receipt %+v", r)
	}
	wantGone(t, all)
}

// Cookies wait in the network service until they are written: without it a
// clean exit of the root has lost them.
func TestKilledNetworkServiceIsADataRisk(t *testing.T) {
	t.Parallel() // Chrome waits 10 s for it
	cfg := testConfig(t)
	cfg.Waits = keeper.Waits{Close: 300 * time.Millisecond, Interrupt: 15 * time.Second}
	c := newChrome(t, cfg)
	start(t, c)
	eventually(t, "the network service", func() bool {
		services := ofKind(t, record(t, c), "network.mojom")
		return len(services) > 0 && services[0].Signal(syscall.SIGSTOP) == nil
	})
	if r := stopped(t, c); !r.DataRisk || r.Killed == 0 {
		t.Errorf("receipt %+v", r)
	}
}

// Somebody's SIGTERM ends Chrome with 0, and without its last cookies.
func TestTerminatedChromeIsADataRisk(t *testing.T) {
	var after lifecycle.End
	cfg := testConfig(t)
	cfg.Gate = noteEnd(&after)
	c := newChrome(t, cfg)
	start(t, c)
	h := c.held
	if err := record(t, c).Root.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-h.Ended()
	if r := h.Last().Receipt; r.Method != lifecycle.MethodCrashed || r.RootExit != "exit 0" || !r.Verified || !r.DataRisk {
		t.Errorf("receipt %+v", r)
	}
	start(t, c)
	if after != lifecycle.EndCrash {
		t.Errorf("the launch follows %q, want a crash", after)
	}
}

// What started on the profile after our Chrome had died is not ours to kill.
func TestLaterChromeOnTheProfileIsSpared(t *testing.T) {
	cfg := testConfig(t)
	c := newChrome(t, cfg)
	start(t, c)
	rec := record(t, c)
	if err := rec.Root.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.held.Ended()
	cfg.Record += "2" // a stranger, who knows nothing of our record
	other := newChrome(t, cfg)
	start(t, other)

	if r := keeper.Sweep(c.cfg.Record, rec, keeper.DefaultWaits); r.Killed != 0 || !r.Verified {
		t.Errorf("sweep: %+v", r)
	}
	if err := other.Probe(t.Context()); err != nil {
		t.Errorf("the later Chrome: %v", err)
	}
}
