package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// quickRedials has a lost browser sought without long pauses.
func quickRedials(s *testServer) {
	s.limits.redials, s.limits.redialWait, s.limits.redialMax = 4, 50*time.Millisecond, 100*time.Millisecond
}

// However the browser's connection ends, clients stay, and their tabs too
// while it is the same browser.
func TestBrowserComesBack(t *testing.T) {
	for name, end := range map[string]func(*proxytest.Browser){
		"reset":       (*proxytest.Browser).Drop,
		"clean close": func(b *proxytest.Browser) { b.CloseWith(1000, "") },
		"close 1011":  func(b *proxytest.Browser) { b.CloseWith(1011, "oops") },
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, quickRedials)
			s.cfg.Grace = time.Hour
			a, b := proxytest.Dial(t, s.ws("/client-a")), proxytest.Dial(t, s.ws("/client-b"))
			a.Call("", "Target.setDiscoverTargets", map[string]any{"discover": true})
			ofA, ofB := a.NewPage("about:blank"), b.NewPage("about:blank")
			human := s.browser.OpenHuman("https://human.example/")
			s.browser.Fault("Storage.getCookies", proxytest.Fault{Ignore: true})
			open := a.Go("", "Storage.getCookies", nil)
			s.browser.AwaitCommand(func(cmd proxytest.Command) bool { return cmd.Method == "Storage.getCookies" })
			s.browser.RefuseHandshakes(1)

			end(s.browser)
			if _, err := open.Wait(); err == nil {
				t.Error("the pending command succeeded")
			}
			a.AwaitEvent("", "Target.detachedFromTarget")
			if _, err := a.CallErr(ofA.Session, "Page.enable", nil); err == nil || err.Message != "Session with given id not found." {
				t.Errorf("a session of before: %v", err)
			}
			for _, each := range []struct {
				c    *proxytest.Client
				page proxytest.Page
			}{{a, ofA}, {b, ofB}} {
				await(t, "the browser again", func() bool { _, err := each.c.CallErr("", "Browser.getVersion", nil); return err == nil })
				if got := pageIDs(t, each.c); len(got) != 1 || got[0] != each.page.TargetID {
					t.Errorf("tabs afterwards: %v, want %s alone (a human's is %s)", got, each.page.TargetID, human)
				}
				each.c.Attach(each.page.TargetID).Call("Page.enable", nil)
			}
			for _, m := range a.Transcript() {
				if m.Is("", "Target.targetDestroyed") {
					t.Errorf("told of a tab that is still there: %s", m)
				}
			}
			if n := len(a.Replies(open.ID)); n != 1 {
				t.Errorf("%d replies to the pending command", n)
			}
		})
	}
}

// A browser that is known to end is left at once, although it still answers:
// what it made now would die with it.
func TestEndingBrowserIsLeft(t *testing.T) {
	ending := make(chan struct{})
	s := startServer(t, func(s *testServer) {
		quickRedials(s)
		s.ending = ending
	})
	a := proxytest.Dial(t, s.ws("/client-a"))
	page := a.NewPage("about:blank")
	close(ending)
	a.Await(func(m proxytest.Msg) bool {
		return m.Is("", "Target.detachedFromTarget") && m.Param("sessionId") == page.Session
	})
	await(t, "the browser again", func() bool { _, err := a.CallErr("", "Browser.getVersion", nil); return err == nil })
	if n := s.starts.Load(); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

// Another browser knows none of the tabs.
func TestAnotherBrowserComes(t *testing.T) {
	s := startServer(t, quickRedials)
	a := proxytest.Dial(t, s.ws("/client-a"))
	a.Call("", "Target.setDiscoverTargets", map[string]any{"discover": true})
	page := a.NewPage("about:blank")
	if err := s.browser.Restart(); err != nil {
		t.Fatal(err)
	}
	a.Await(func(m proxytest.Msg) bool {
		return m.Is("", "Target.targetDestroyed") && string(m.Params) == `{"targetId":"`+page.TargetID+`"}`
	})
	if got := pageIDs(t, a); len(got) != 0 {
		t.Errorf("tabs in the other browser: %v", got)
	}
	a.NewPage("about:blank").Call("Page.enable", nil)
}

// Who comes while the browser is away hears so; who was there waits for it,
// until it is given up. The next one that comes tries again.
func TestBrowserIsGivenUp(t *testing.T) {
	var away atomic.Bool
	s := startServer(t, func(s *testServer) {
		quickRedials(s)
		s.address = func(context.Context) (string, error) {
			if away.Load() {
				return "", errors.New("nobody there")
			}
			return s.browser.URL(), nil
		}
	})
	a := proxytest.Dial(t, s.ws("/client-a"))
	a.Call("", "Browser.getVersion", nil)
	away.Store(true)
	s.browser.Drop()
	await(t, "a pause", func() bool { return s.Status().Browser.State == "degraded" && s.starts.Load() >= 2 })
	late, _, err := proxytest.DialErr(context.Background(), s.ws("/client-late"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Drop()
	if code, _ := late.CloseStatus(); code != 1013 && code != 1012 {
		t.Errorf("who came late was closed with %d, want 1013", code)
	}
	if code, text := a.CloseStatus(); code != 1012 {
		t.Errorf("closed with %d %q, want 1012", code, text)
	}
	if n := int(s.starts.Load()); n < 1+s.limits.redials || n > 2+s.limits.redials {
		t.Errorf("%d starts, want %d and perhaps one of the newcomer's", n, 1+s.limits.redials)
	}
	away.Store(false)
	proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
}

// unreachable is a browser that runs and does not answer.
type unreachable struct{}

func (unreachable) Error() string       { return "it does not answer" }
func (unreachable) FailureKind() string { return "browser_unreachable" }
func (unreachable) Next() string        { return "wait" }
func (unreachable) Status() int         { return 503 }
func (unreachable) Retryable() bool     { return true }

// One that an earlier proxy left, and that does not answer the first time, is
// sought like one that was lost; when it never does, it is replaced, once.
func TestUnreachableFromTheFirst(t *testing.T) {
	for name, tc := range map[string]struct{ silent, starts, stops int32 }{
		"slow": {2, 3, 0},
		"hung": {100, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var stops atomic.Int32
			s := startServer(t, func(s *testServer) {
				quickRedials(s)
				s.address = func(context.Context) (string, error) {
					if s.starts.Load() <= tc.silent && stops.Load() == 0 {
						return "", unreachable{}
					}
					return s.browser.URL(), nil
				}
				s.cfg.Life.Stop = func(hung bool) (any, bool) {
					if !hung {
						t.Error("ended as if that was wanted")
					}
					stops.Add(1)
					return nil, true
				}
			})
			s.Wake()
			await(t, "the browser", func() bool { return s.Status().Browser.State == "ready" })
			if s.starts.Load() != tc.starts || stops.Load() != tc.stops {
				t.Errorf("%d starts and %d stops, want %d and %d", s.starts.Load(), stops.Load(), tc.starts, tc.stops)
			}
			proxytest.Dial(t, s.ws("/client-a")).NewPage("about:blank")
		})
	}
}

// A start that failed for another reason is not repeated before somebody asks.
func TestFailedStartIsNotSought(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		quickRedials(s)
		s.address = func(context.Context) (string, error) { return "", errors.New("no room on the disk") }
		s.cfg.Life.Stop = func(bool) (any, bool) { return nil, true }
	})
	if _, err := s.Server.browser(t.Context()); err == nil {
		t.Error("there is a browser")
	}
	if state := s.Status().Browser.State; state == "degraded" {
		t.Errorf("state %s: it is sought", state)
	}
}

// A browser that takes and says nothing: what is open fails, then its
// connection is dropped. A slow page is not meant.
func TestSilentBrowser(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		quickRedials(s)
		s.limits.probe, s.limits.silent, s.limits.dead = 50*time.Millisecond, 150*time.Millisecond, 600*time.Millisecond
	})
	a := proxytest.Dial(t, s.ws("/client-a"))
	page := a.NewPage("about:blank")
	s.browser.Fault("Runtime.evaluate", proxytest.Fault{Ignore: true})
	open := a.Go(page.Session, "Runtime.evaluate", map[string]any{"expression": "1"})
	probes := func() (n int) {
		for _, cmd := range s.browser.Received() {
			if cmd.Method == "Browser.getVersion" {
				n++
			}
		}
		return n
	}
	await(t, "many answered probes", func() bool { return probes() > 8 })
	if open.Answered() {
		t.Fatal("a slow page was taken for a silent browser")
	}

	s.browser.Pause()
	began := time.Now()
	if _, err := open.Wait(); err == nil || err.Message != errSilent.Error() {
		t.Errorf("pending command answered with %v", err)
	}
	if took := time.Since(began); took < s.limits.silent-s.limits.probe {
		t.Errorf("given up after %s of silence", took)
	}
	a.AwaitEvent("", "Target.detachedFromTarget") // dropped
	if took := time.Since(began); took < s.limits.dead-s.limits.probe {
		t.Errorf("dropped after %s of silence", took)
	}
	s.browser.Resume()
	await(t, "the browser again", func() bool { _, err := a.CallErr("", "Browser.getVersion", nil); return err == nil })
	if n := len(a.Replies(open.ID)); n != 1 {
		t.Errorf("%d replies to the pending command", n)
	}
}

// Nothing open, nothing to probe for.
func TestIdleBrowserIsNotProbed(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.limits.probe = 10 * time.Millisecond })
	proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
	await(t, "quiet", func() bool { return s.Stats().Requests == 0 })
	n := len(s.browser.Received())
	time.Sleep(20 * s.limits.probe) // what must not happen
	for _, cmd := range s.browser.Received()[n:] {
		if cmd.Method == "Browser.getVersion" {
			t.Errorf("an idle browser was probed: %v", cmd)
		}
	}
}

// pageIDs are the tabs that a client sees.
func pageIDs(t *testing.T, c *proxytest.Client) (ids []string) {
	t.Helper()
	var reply struct {
		TargetInfos []struct{ Type, TargetID string }
	}
	decode(t, c.Call("", "Target.getTargets", nil), &reply)
	for _, info := range reply.TargetInfos {
		if info.Type == "page" {
			ids = append(ids, info.TargetID)
		}
	}
	return ids
}
