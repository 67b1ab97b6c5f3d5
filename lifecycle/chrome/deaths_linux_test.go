package chrome

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
)

// Whoever dies, the next start works, counts as lifecycle ends say, and leaves
// no process of the dead behind.
func TestDeaths(t *testing.T) {
	const none lifecycle.End = "no launch" // the browser is the same one
	main := func(t *testing.T, c *Chrome) { kill(t, record(t, c).Root) }
	gpu := func(t *testing.T, c *Chrome) {
		rec := record(t, c)
		eventually(t, "the GPU process", func() bool {
			found := ofKind(t, rec, "--type=gpu-process")
			return len(found) > 0 && found[0].Signal(syscall.SIGKILL) == nil
		})
	}
	held := func(t *testing.T, c *Chrome) { kill(t, record(t, c).Keeper) }
	proxy := func(_ *testing.T, c *Chrome) { c.Leave() }
	for _, tc := range []struct {
		name  string
		die   []func(*testing.T, *Chrome)
		after lifecycle.End
	}{
		{"main", []func(*testing.T, *Chrome){main}, lifecycle.EndCrash},
		{"gpu", []func(*testing.T, *Chrome){gpu}, none},
		{"keeper", []func(*testing.T, *Chrome){held}, lifecycle.EndKeeper},
		{"proxy", []func(*testing.T, *Chrome){proxy}, none},
		{"proxy, gpu", []func(*testing.T, *Chrome){proxy, gpu}, none},
		{"proxy, main", []func(*testing.T, *Chrome){proxy, main}, lifecycle.EndCrash},
		{"proxy, keeper", []func(*testing.T, *Chrome){proxy, held}, lifecycle.EndNone},
		{"keeper, gpu", []func(*testing.T, *Chrome){gpu, held}, lifecycle.EndKeeper},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.Grace = time.Minute
			after := none
			cfg.Gate = noteEnd(&after)
			c := newChrome(t, cfg)
			first := start(t, c)
			rec := record(t, c)
			all := append(tree(t, rec), rec.Keeper)
			after = none
			for _, die := range tc.die {
				die(t, c)
			}
			second := start(t, c)
			if after != tc.after || (first == second) != (tc.after == none) {
				t.Errorf("launch follows %q, want %q; addresses %s, %s", after, tc.after, first, second)
			}
			if tc.after != none {
				wantGone(t, all)
			}
			if err := c.Probe(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func kill(t *testing.T, p proc.ID) {
	t.Helper()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end", func() bool { return !p.Alive() })
}

// Proxy, keeper, browser, or several of them are killed at any moment, also
// between the exec of Chrome and its record.
func TestDeathsAtAnyMoment(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	cfg.Grace = 2 * time.Second
	for i := range scaled(t, 60) {
		rnd := rand.New(rand.NewPCG(uint64(i), 7))
		wait := time.Duration(rnd.IntN(700)) * time.Millisecond
		victims := rnd.IntN(7) + 1 // a bit each
		text, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		proxy := exec.Command(self, "proxy", string(text))
		out, err := proxy.StdoutPipe()
		if err == nil {
			err = proxy.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait) // the moment
		rec, _ := keeper.ReadRecord(cfg.Record)
		var before []proc.ID
		if rec != nil {
			before = append(tree(t, rec), rec.Keeper)
			if victims&1 != 0 {
				_ = rec.Root.Signal(syscall.SIGKILL)
			}
			if victims&2 != 0 {
				_ = rec.Keeper.Signal(syscall.SIGKILL)
			}
		}
		if victims&4 == 0 && rec != nil {
			// It lives on until it says that its browser is ready, or ends in vain.
			_, _ = bufio.NewReader(out).ReadString('\n')
		}
		_ = proxy.Process.Kill()
		_ = proxy.Wait()

		c := newChrome(t, cfg)
		ws := start(t, c)
		if err := keeper.Prove(t.Context(), ws); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		now := record(t, c)
		if rec == nil || rec.ID != now.ID {
			wantGone(t, before)
		}
		users, err := proc.UsersOf(now.Profile)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range users {
			if cmdline := string(proc.Cmdline(p.PID)); !slices.Contains(tree(t, now), p) && p.Alive() {
				t.Errorf("%d (after %v, victims %b): pid %d is nobody's: %.200s", i, wait, victims, p.PID, cmdline)
			}
		}
		stopped(t, c)
		if t.Failed() {
			return
		}
	}
}

// A Chrome that is told to make tabs while it quits may forget to: it is asked
// once more, and its logins are kept.
func TestTabsMadeWhileQuitting(t *testing.T) {
	for i := range scaled(t, 5) {
		cfg := testConfig(t)
		c := newChrome(t, cfg)
		conn := drive(t, start(t, c)).conn
		go func() { // else Chrome would have nowhere to put its replies
			for {
				if _, _, err := conn.ReadMessage(); err != nil {
					return
				}
			}
		}()
		rec := record(t, c)
		all := tree(t, rec)
		receipts := make(chan lifecycle.Receipt, 1)
		if i%2 == 0 {
			kill(t, rec.Keeper)
		} else {
			go func() { receipts <- c.Stop(t.Context()) }()
		}
		for id := range 60 { // not as many as a loaded machine could make in a second: they, too, have to be closed
			command := fmt.Sprintf(`{"id":%d,"method":"Target.createTarget","params":{"url":"about:blank","newWindow":true}}`, id+1)
			if conn.WriteMessage(websocket.TextMessage, []byte(command)) != nil {
				break // it is gone
			}
			time.Sleep(5 * time.Millisecond) // as fast as a client with others beside it
		}
		conn.Close()
		if i%2 == 0 {
			receipts <- keeper.Sweep(cfg.Record, rec, keeper.DefaultWaits)
		}
		r := <-receipts
		if r.Method != lifecycle.MethodGraceful || !r.Verified || r.DataRisk {
			t.Errorf("receipt %+v", r)
		}
		t.Logf("keeper killed %v, asked again %v, gone after %d ms", i%2 == 0, r.Escalated, r.ElapsedMS)
		wantGone(t, all)
		eventually(t, "the keeper's end", func() bool { return !rec.Keeper.Alive() })
	}
}

// A container that was killed comes back under another name: the lock in the
// profile is that of its own dead browser, as the record shows.
func TestLockOfOurOwnFormerHost(t *testing.T) {
	cfg := testConfig(t)
	lockProfile(t, cfg.Profile, "elsewhere-7")
	rec, err := json.Marshal(keeper.Record{
		ID: "0123abcd", Boot: proc.Boot(), Host: "elsewhere", Profile: cfg.Profile,
		Keeper: proc.ID{PID: 6, Ticks: 1}, Root: proc.ID{PID: 7, Ticks: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, cfg.Record, string(rec), 0o600)
	start(t, newChrome(t, cfg))
}

// A Chrome that is slow when the next proxy comes is adopted all the same: its
// tabs are worth more than the wait.
func TestSlowChromeIsAdopted(t *testing.T) {
	t.Parallel() // it is waiting
	cfg := testConfig(t)
	cfg.Grace = time.Minute
	first := newChrome(t, cfg)
	ws := start(t, first)
	rec := record(t, first)
	first.Leave()
	if err := rec.Root.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next := newChrome(t, cfg)
	if found, err := next.Recover(t.Context()); !found || err != nil || !rec.Keeper.Alive() {
		t.Errorf("recover: found %v, %v; the keeper lives: %v", found, err, rec.Keeper.Alive())
	}
	_ = rec.Root.Signal(syscall.SIGCONT)
	if endpoint, err := next.Start(t.Context()); err != nil || endpoint.WS != ws || !endpoint.Adopted {
		t.Errorf("start: %+v, %v, want %s", endpoint, err, ws)
	}
}

// A keeper that SIGKILL does not end, as one that hangs in the kernel, is not
// waited for without end.
func TestKeeperThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		endKeeper(context.Background(), proc.Identify(os.Getpid())) // we are never signalled
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}
