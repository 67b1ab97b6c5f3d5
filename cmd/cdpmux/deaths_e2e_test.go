package main_test

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
	"cdpmux/proxy/proxytest"
)

// The processes that can be killed, a bit each.
const (
	killMain = 1 << iota
	killGPU
	killKeeper
	killProxy
)

// deaths are who dies together, and by how much that counts in the breaker.
var deaths = []struct {
	name    string
	who     int
	counted int
}{
	{"main", killMain, 1},
	{"keeper", killKeeper, 1},
	{"all", killMain | killGPU | killKeeper | killProxy, 1},
	{"proxy, keeper", killProxy | killKeeper, 0},
	{"proxy", killProxy, 0},
	{"gpu", killGPU, 0},
	{"main, gpu", killMain | killGPU, 1},
	{"main, keeper", killMain | killKeeper, 1},
	{"main, proxy", killMain | killProxy, 1},
	{"gpu, keeper", killGPU | killKeeper, 1},
	{"gpu, proxy", killGPU | killProxy, 0},
}

// Whoever is killed, and when, be it in the middle of a launch: the next
// client's call works, nothing is left of the dead, and what counts as a
// relaunch is what it was. A launch that is broken off may count or not, and a
// proxy may still note that its keeper has died before it.
func TestDeathsAtAnyMoment(t *testing.T) {
	t.Parallel()
	home := tempHome(t)
	up := func() *mux {
		return serveBinary(t, plainBinary(t), home, "--grace", "30s", "--relaunch-max", "10000")
	}
	m := up()
	for i := range scaled(t, 100) {
		tc := deaths[i%len(deaths)]
		rnd := rand.New(rand.NewPCG(uint64(i), 11))
		launching := i%2 == 1
		if launching {
			m.control(t, "POST", "/v1/browser/stop", params{"force": true})
		} else {
			mustWork(t, m)
		}
		before := relaunches(t, m)
		c := proxytest.Dial(t, m.ws("/client-victim"))
		c.Go("", "Target.createTarget", params{"url": "about:blank"})
		moment := time.Duration(rnd.IntN(1500)) * time.Millisecond
		<-time.After(moment)

		rec, _ := keeper.ReadRecord(filepath.Join(home, "state", "t.browser.json"))
		var dead []proc.ID
		if rec != nil {
			dead = append(descendants(t, rec.Keeper), rec.Keeper)
		}
		at := time.Now()
		var order []string
		m, order = killThem(t, m, rec, dead, tc.who, rnd, up)
		c.Drop()
		told := mustWork(t, m)
		took := time.Since(at)

		now, err := keeper.ReadRecord(filepath.Join(home, "state", "t.browser.json"))
		if err != nil || now == nil {
			t.Fatalf("%d: record of the browser that works: %v, %v", i, now, err)
		}
		alive := append(descendants(t, now.Keeper), now.Keeper)
		for _, p := range dead {
			if !slices.Contains(alive, p) && p.Alive() {
				t.Errorf("%d: pid %d is an orphan: %.150s", i, p.PID, proc.Cmdline(p.PID))
			}
		}
		users, err := proc.UsersOf(now.Profile)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range users {
			if !slices.Contains(descendants(t, now.Keeper), p) && p.Alive() {
				t.Errorf("%d: pid %d is nobody's: %.150s", i, p.PID, proc.Cmdline(p.PID))
			}
		}
		counted := relaunches(t, m) - before
		t.Logf("%d: %v after %v, launching %v: counted %d, works after %v, one call told %.60q", i, order, moment, launching, counted, took.Round(time.Millisecond), told)
		either := launching || tc.who == killProxy|killKeeper && order[0] == "keeper"
		if counted != tc.counted && !(either && counted <= 1) {
			t.Errorf("%d: %v: counted %d, want %d", i, order, counted, tc.counted)
		}
		if t.Failed() {
			t.Fatalf("stderr of the proxy:\n%s", tail(m.stderr.String(), 40))
		}
	}
}

// killThem kills those of who that are there, in any order, and returns the
// proxy that runs then, and the order.
func killThem(t *testing.T, m *mux, rec *keeper.Record, tree []proc.ID, who int, rnd *rand.Rand, up func() *mux) (_ *mux, order []string) {
	t.Helper()
	pids := map[string]proc.ID{}
	if rec != nil {
		if who&killMain != 0 {
			pids["main"] = rec.Root
		}
		if who&killKeeper != 0 {
			pids["keeper"] = rec.Keeper
		}
		for _, p := range tree {
			if who&killGPU != 0 && strings.Contains(string(proc.Cmdline(p.PID)), "--type=gpu-process") {
				pids["gpu"] = p
			}
		}
	}
	order = slices.Sorted(maps.Keys(pids))
	if who&killProxy != 0 {
		order = append(order, "proxy")
	}
	rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, name := range order {
		if name == "proxy" {
			m.kill(t)
		} else {
			_ = pids[name].Signal(syscall.SIGKILL) // it may be gone
		}
	}
	for name, p := range pids {
		eventually(t, 10*time.Second, "end of "+name, func() bool { return !p.Alive() })
	}
	if m.killed {
		m = up()
	}
	return m, order
}

// mustWork has a new client do something. The first one may have come to the
// launch that was broken off, or in the moment in which the proxy learns of a
// death: it is told so, and the next one works.
func mustWork(t *testing.T, m *mux) (told string) {
	t.Helper()
	for {
		c := proxytest.Dial(t, m.ws("/client-next"), proxytest.WithTimeout(90*time.Second))
		_, err := c.CallErr("", "Target.createTarget", params{"url": "about:blank"})
		if err == nil {
			if got := text(t, c.NewPage("about:blank").Eval(`"works"`)); got != "works" {
				t.Errorf("got %q", got)
			}
			c.Close()
			return told
		}
		c.Drop()
		if told != "" {
			t.Fatalf("second call in vain: %v, after %s", err, told)
		}
		told = err.Error()
	}
}

// relaunches is how many the breaker has counted.
func relaunches(t *testing.T, m *mux) int {
	t.Helper()
	status, answer, _ := m.control(t, "GET", "/v1/browser", nil)
	if status != 200 {
		t.Fatalf("GET /v1/browser: %d %s", status, answer)
	}
	var view struct {
		Life struct{ Relaunches *int }
	}
	decode(t, answer, &view)
	if view.Life.Relaunches == nil {
		t.Fatalf("no relaunches in %s", answer)
	}
	return *view.Life.Relaunches
}
