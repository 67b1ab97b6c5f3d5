package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"cdpmux/proxy"
	"cdpmux/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scaled shrinks a duration by CDPMUX_TEST_SCALE, never below a second.
func scaled(t *testing.T, d time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv("CDPMUX_TEST_SCALE")
	if text == "" {
		return d
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale <= 0 {
		t.Fatalf("CDPMUX_TEST_SCALE=%q: want a number above 0", text)
	}
	return max(time.Second, time.Duration(float64(d)*scale))
}

// startProxy serves the fake browser to any number of clients, and returns the
// address template. When the test ends, its tables must be empty.
func startProxy(t *testing.T) (*proxy.Server, string) {
	t.Helper()
	browser, err := proxytest.New(proxytest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(browser.Close)
	s := proxy.New(proxy.Config{Logger: zerolog.Nop(), Life: proxy.Life{
		Start: func(context.Context) (proxy.Place, error) { return proxy.Place{Address: browser.URL()}, nil },
	}})
	listener := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, "ws://" + listener.Addr().String() + "/client-{i}"
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// mustRun runs a job in which nothing may be lost, doubled or foreign.
func mustRun(t *testing.T, j job) *report {
	t.Helper()
	r, err := j.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.wrong() > 0 {
		var text strings.Builder
		r.print(&text)
		t.Error(text.String())
	}
	for _, g := range r.Groups {
		if g.Replies == 0 && g.Kind != "idle" {
			t.Errorf("%s: no replies", g.Kind)
		}
	}
	return r
}

// mustBeEmpty waits until all that the clients had is gone.
func mustBeEmpty(t *testing.T, s *proxy.Server) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stats := s.Stats()
		if stats.Conns == 0 && stats.Requests == 0 && stats.Held == 0 && stats.Sessions == 1 { // the hub
			break
		}
		if time.Now().After(end) {
			t.Fatalf("left in the tables: %+v", stats)
		}
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// everything is all kinds, at a size that the race detector leaves bearable on
// a slow machine: the proxy has deadlines, and a flood without an end meets them.
func everything() (groups []work) {
	for _, name := range mix {
		groups = append(groups, kind(name, func(w *work) {
			w.Clients, w.InFlight = min(w.Clients, 4), min(w.InFlight, 500)
			w.Size, w.Burst = min(w.Size, 1<<20), min(w.Burst, 500)
			if w.Kind == "commands" || w.Kind == "stall" {
				w.InFlight = 4
			}
		}))
	}
	return groups
}

// All kinds, past any proxy and through the relay.
func TestDriveFake(t *testing.T) {
	browser, err := proxytest.New(proxytest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer browser.Close()
	direct := browser.URL()
	host, path, _ := strings.Cut(strings.TrimPrefix(direct, "ws://"), "/")
	listener := listen(t)
	defer listener.Close()
	go relay(listener, host)
	for _, url := range []string{direct, "ws://" + listener.Addr().String() + "/" + path} {
		r := mustRun(t, job{url: url, groups: everything(), duration: time.Second})
		if events := r.Groups[slices.Index(mix, "events")]; events.Events < 500 {
			t.Errorf("%d events", events.Events)
		}
	}
}

// All kinds through the proxy: nothing is lost, doubled or foreign, and
// nothing is left of it. In full it takes two minutes.
func TestSoak(t *testing.T) {
	s, url := startProxy(t)
	mustRun(t, job{url: url, groups: everything(), duration: scaled(t, 2*time.Minute)})
	mustBeEmpty(t, s)
}

func TestThousandIdleClients(t *testing.T) {
	s, url := startProxy(t)
	mustRun(t, job{url: url, groups: []work{kind("idle", func(w *work) { w.Clients = 1000 }), commands(16, 4)}, duration: time.Second})
	mustBeEmpty(t, s)
}

// One client's 10 000 commands do not stand before another's single one. What
// the machine does besides makes some rounds worse; a proxy that is not fair
// is so in all of them, by a factor of 50.
func TestFairness(t *testing.T) {
	_, url := startProxy(t)
	best := 1e9
	for range 5 {
		beside := func(other work) float64 {
			return p99(mustRun(t, job{url: url, groups: []work{commands(1, 1), other}, duration: 500 * time.Millisecond}))
		}
		few := beside(commands(1, 32))
		best = min(best, beside(kind("flood", nil))/few)
	}
	if best > 3 {
		t.Errorf("p99 beside 10 000 commands is %.1f times that beside 32, want 3 at most", best)
	}
}

// A load generator that sees no faults proves nothing.
func TestFaultsAreCounted(t *testing.T) {
	c := &client{session: "S1", suffix: []byte(`"sessionId":"S1"}`), next: 8, sent: make([]slot, 16), open: 2}
	c.sent[7], c.sent[8] = slot{id: 7}, slot{id: 8}
	for _, text := range []string{
		`{"id":7,"result":{},"sessionId":"S1"}`,
		`{"id":7   ,"result":{},"sessionId":"S1"}`,                             // again
		`{"sessionId":"S1","error":{"code":1},"id":8}`,                         // by a proxy that writes anew
		`{"id":9,"result":{},"sessionId":"S1"}`,                                // never asked for
		`{"id":8,"result":{},"sessionId":"S2"}`,                                // of another session
		`{"method":"Runtime.bindingCalled","params":{},"sessionId":"S2"}`,      // likewise
		`{"method":"Target.targetCreated","params":{"targetInfo":{}}}`,         // the connection's
		`{"method":"Runtime.bindingCalled","params":{},"sessionId":"S1"}`,      // ours
		`{"method":"Runtime.consoleAPICalled","params":{},"sessionId":"S1"}`,   // ours, of no interest
		`{"sessionId":"S1","method":"Runtime.bindingCalled","params":{"a":1}}`, // ours, written anew
	} {
		c.take(message{head: []byte(text), tail: []byte(text), size: len(text)})
	}
	got := fmt.Sprint(c.Replies, c.Errors, c.Duplicates, c.Foreign, c.Events, c.open)
	if want := "2 1 1 4 2 0"; got != want {
		t.Errorf("replies, errors, duplicates, foreign, events, open: %s, want %s", got, want)
	}
}

func TestProcessIsMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a process is measured on Linux only")
	}
	before, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	_, url := startProxy(t)
	r := mustRun(t, job{url: url, groups: []work{commands(4, 4)}, duration: 500 * time.Millisecond, pid: os.Getpid()})
	p := r.Process
	if p.CPU <= 0 || p.Writes <= 0 || p.RSS < before.RSS/2 || p.Peak < p.RSS/2 {
		t.Errorf("%+v after %+v", *p, before)
	}
}
