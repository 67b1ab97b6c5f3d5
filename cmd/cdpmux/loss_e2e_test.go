package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// load is a client that always has commands open.
type load struct {
	c    *proxytest.Client
	sent []*proxytest.Pending
	page atomic.Pointer[proxytest.Page]
}

// run sends until stop is closed: a few commands, then their answers, then a
// new tab when the last one is gone.
func (l *load) run(stop <-chan struct{}) {
	send := func(session, method string, p params) *proxytest.Pending {
		pending := l.c.Go(session, method, p)
		l.sent = append(l.sent, pending)
		return pending
	}
	session := ""
	for !closed(stop) {
		var batch []*proxytest.Pending
		if session == "" {
			batch = append(batch, send("", "Target.createTarget", params{"url": "about:blank"}))
		}
		for range 4 {
			batch = append(batch, send("", "Target.getTargets", params{}))
			if session != "" {
				batch = append(batch, send(session, "Runtime.evaluate", params{"expression": "6*7"}))
			}
		}
		for _, p := range batch {
			for !p.Answered() && !closed(stop) {
				time.Sleep(time.Millisecond)
			}
		}
		if closed(stop) {
			return
		}
		if session == "" {
			session = l.attach(send, batch[0], stop)
		} else if _, err := batch[1].Wait(); err != nil {
			session = ""
			l.page.Store(nil)
		}
	}
}

func (l *load) attach(send func(string, string, params) *proxytest.Pending, made *proxytest.Pending, stop <-chan struct{}) (session string) {
	reply := made.Reply()
	var result struct{ TargetID, SessionID string }
	if reply.Err() != nil || intoResult(reply, &result) != nil {
		return ""
	}
	target := result.TargetID
	attach := send("", "Target.attachToTarget", params{"targetId": target, "flatten": true})
	for !attach.Answered() {
		if closed(stop) {
			return ""
		}
		time.Sleep(time.Millisecond)
	}
	if reply = attach.Reply(); reply.Err() != nil || intoResult(reply, &result) != nil {
		return ""
	}
	page := l.c.On(target, result.SessionID)
	l.page.Store(&page)
	return result.SessionID
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// startLoad has n clients send until the returned function is called.
func startLoad(t *testing.T, m *mux, n int) (clients []*load, stop func()) {
	t.Helper()
	stopping := make(chan struct{})
	var running sync.WaitGroup
	for i := range n {
		c, _, err := proxytest.DialErr(context.Background(), m.ws(fmt.Sprintf("/client-load%d", i)), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Drop)
		l := &load{c: c}
		clients = append(clients, l)
		running.Go(func() { l.run(stopping) })
	}
	return clients, sync.OnceFunc(func() {
		close(stopping)
		running.Wait()
	})
}

// awaitWork waits until each client has a tab and commands in it work.
func awaitWork(t *testing.T, clients []*load, not map[string]bool) map[string]bool {
	t.Helper()
	sessions := map[string]bool{}
	eventually(t, 60*time.Second, "work of all clients", func() bool {
		for _, l := range clients {
			page := l.page.Load()
			if page == nil || not[page.Session] {
				return false
			}
			sessions[page.Session] = true
		}
		return true
	})
	return sessions
}

// The browser is killed under load, again and again: each command is answered
// exactly once, and all clients go on with the next browser as they are.
func TestBrowserKilledUnderLoad(t *testing.T) {
	m := serve(t, grace...)
	clients, stop := startLoad(t, m, 16)
	defer stop()
	before := awaitWork(t, clients, nil)
	for range scaled(t, 20) {
		if err := syscall.Kill(m.browserPID(t), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		before = awaitWork(t, clients, before)
	}
	stop()
	sent := 0
	for i, l := range clients {
		if l.c.Ended() {
			code, text := l.c.CloseStatus()
			t.Errorf("client %d was closed: %d %s", i, code, text)
		}
		for _, p := range l.sent {
			eventually(t, 10*time.Second, "answer to "+p.Method, p.Answered)
			if n := len(l.c.Replies(p.ID)); n != 1 {
				t.Errorf("client %d: %d replies to %s %s", i, n, p.Method, p.ID)
			}
		}
		sent += len(l.sent)
	}
	t.Logf("%d commands, each answered once", sent)
}

// A browser that stands still for a while: who waits is told, and everything
// goes on where it was.
func TestBrowserStandsStill(t *testing.T) {
	chromium := proxytest.StartChromium(t)
	m := serve(t, "--browser", "attach", "--endpoint", chromium.HTTP, "--grace", "480s")
	c := proxytest.Dial(t, m.ws("/client-a"), proxytest.WithTimeout(40*time.Second))
	p := c.NewPage("about:blank")
	chromium.Stop()
	stopped := time.Now()
	open := never(c, p.Session)
	if _, err := open.Wait(); err == nil {
		t.Error("a command to a browser that stands still: want an error")
	}
	if took := time.Since(stopped); took > 22*time.Second {
		t.Errorf("the error came after %v", took)
	}
	time.Sleep(time.Until(stopped.Add(20 * time.Second)))
	chromium.Cont()
	eventually(t, 20*time.Second, "work of the tab", func() bool { return isTrue(t, c, p.Session, "true") })
	if n := len(c.Replies(open.ID)); n != 1 {
		t.Errorf("replies to the open command: want one, got %d", n)
	}
	mustBeAlive(t, "another client", m.dial(t, "b").NewPage("about:blank"))
}

// The proxy is killed under load and started again on the same browser: each
// client finds its own tabs, and nobody else's.
func TestProxyKilledUnderLoad(t *testing.T) {
	chromium := proxytest.StartChromium(t)
	home := tempHome(t)
	flags := []string{"--browser", "attach", "--endpoint", chromium.HTTP, "--grace", "480s"}
	m := serveAt(t, home, flags...)
	browser := proxytest.Dial(t, chromium.WS)
	humans := pages(t, browser)

	own := map[string][]string{}
	var work []proxytest.Page
	for _, id := range []string{"a", "b", "c"} {
		c := m.dial(t, id)
		for range 2 {
			p := c.NewPage("about:blank")
			own[id] = append(own[id], p.TargetID)
			work = append(work, p)
		}
		slices.Sort(own[id])
	}
	_, stop := startLoad(t, m, 4)
	defer stop()
	state := filepath.Join(home, "state", "t.tabs.json")
	eventually(t, 10*time.Second, "the tabs in "+state, func() bool {
		text, _ := os.ReadFile(state)
		for _, p := range work {
			if !slices.Contains(quotedIDs(text), p.TargetID) {
				return false
			}
		}
		return true
	})
	m.kill(t)
	stop()

	m = serveAt(t, home, flags...)
	for id, want := range own {
		c := m.dial(t, id)
		if got := pages(t, c); !slices.Equal(got, want) {
			t.Errorf("tabs of %s after a restart: want %v, got %v", id, want, got)
		}
		mustBeAlive(t, id, c.Attach(want[0]))
	}
	if got := pages(t, m.dial(t, "newcomer")); len(got) != 0 {
		t.Errorf("tabs of a newcomer: want none, got %v", got)
	}
	for _, id := range humans {
		if !slices.Contains(pages(t, browser), id) {
			t.Errorf("a tab that was there before is gone: %s", id)
		}
	}

	m.kill(t)
	if err := os.WriteFile(state, []byte(`{"version":1,"tabs":[{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	m = serveAt(t, home, flags...)
	if got := pages(t, m.dial(t, "a")); len(got) != 0 {
		t.Errorf("tabs after the state was lost: want none, got %v", got)
	}
	if aside, _ := filepath.Glob(state + ".broken-*"); len(aside) != 1 {
		t.Errorf("files set aside: want one, got %v", aside)
	}
	m.stop(t)
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("state file after a graceful end: want none, got %v", err)
	}
}

func quotedIDs(text []byte) (ids []string) {
	for _, match := range quotedID.FindAllSubmatch(text, -1) {
		ids = append(ids, string(match[1]))
	}
	return ids
}

// A proxy that is to keep the tabs stops, and the next one has them.
func TestOnExitKeep(t *testing.T) {
	chromium := proxytest.StartChromium(t)
	home := tempHome(t)
	flags := []string{"--browser", "attach", "--endpoint", chromium.HTTP, "--grace", "480s", "--on-exit", "keep"}
	m := serveAt(t, home, flags...)
	c := m.dial(t, "a")
	p := c.NewPage("about:blank")
	p.Eval("window.mine = 1, 0")
	m.stop(t)
	if code, _ := c.CloseStatus(); code != 1001 {
		t.Errorf("close code: want 1001, got %d", code)
	}
	m = serveAt(t, home, flags...)
	if got := string(m.dial(t, "a").Attach(p.TargetID).Eval("window.mine")); got != "1" {
		t.Errorf("what the tab remembers: want 1, got %s", got)
	}
}

func intoResult(m proxytest.Msg, v any) error { return json.Unmarshal(m.Result, v) }
