package proxy

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cdpmux/proxy/download"
	"cdpmux/proxy/proxytest"
)

// whenIdle is the sweep of whoever thinks that clients, requests and downloads
// alone need the browser; seen is what there was.
func whenIdle(seen *Picture) func(Picture) bool {
	return func(p Picture) bool {
		*seen = p
		return p.Clients+p.InGrace+p.Requests+p.Downloads == 0
	}
}

// A browser that was attached to is not ours to stop.
func TestAttachedBrowserIsNotSwept(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.Attached = true })
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil)
	c.Drop()
	await(t, "end of the client", func() bool { return s.Stats().Conns == 0 })
	s.Sweep(func(Picture) bool { return true })
	if state := s.Status().Browser.State; state != "ready" {
		t.Errorf("state: want ready, got %s", state)
	}
	proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
	if n := s.starts.Load(); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

// The browser stays while somebody or something needs it.
func TestSweep(t *testing.T) {
	files, err := download.Open(download.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(s *testServer) {
		s.cfg.Grace, s.cfg.AdminToken, s.cfg.Downloads = time.Hour, "secret", files
		s.cfg.Life.Stop = func(bool) (any, bool) { return nil, true }
	})
	var seen Picture
	stays := func(why string, fits func(Picture) bool) {
		t.Helper()
		await(t, why, func() bool {
			s.Sweep(whenIdle(&seen))
			return fits(seen)
		})
		if state := s.Status().Browser.State; state != "ready" {
			t.Fatalf("%s: the browser is %s", why, state)
		}
	}
	before := time.Now()
	c := proxytest.Dial(t, s.ws("/client-a"))
	page := c.NewPage("about:blank")
	stays("a client", func(p Picture) bool { return p.Clients == 1 && p.InGrace == 0 && !p.Active.Before(before) })

	s.browser.Inject(`{"method":"Browser.downloadWillBegin","params":{"frameId":"` + page.TargetID + `","guid":"g","url":"https://site.example/f","suggestedFilename":"f"}}`)
	stays("a download", func(p Picture) bool { return p.Downloads == 1 })

	s.browser.Fault("Storage.getCookies", proxytest.Fault{Ignore: true})
	c.Go("", "Storage.getCookies", nil)
	stays("a request", func(p Picture) bool { return p.Requests == 1 })

	c.Drop()
	stays("grace", func(p Picture) bool { return p.Clients == 0 && p.InGrace == 1 && p.Downloads == 1 })
	if status, answer := s.call(t, "POST", "/v1/clients/a/close", ""); status != 200 {
		t.Fatalf("close the client: %d %s", status, answer)
	}
	stays("a download of who has left", func(p Picture) bool { return p.InGrace+p.Requests == 0 && p.Downloads == 1 })

	s.browser.Inject(`{"method":"Browser.downloadProgress","params":{"guid":"g","totalBytes":1,"receivedBytes":0,"state":"canceled"}}`)
	await(t, "the sweep", func() bool {
		s.Sweep(whenIdle(&seen))
		return s.Status().Browser.State == "stopped"
	})
	proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
}

// ends are the answers of Life.Stop, one after the other; asked has what it
// was asked for.
type ends struct {
	answers chan bool
	asked   chan bool // hung
}

func newEnds(s *testServer) ends {
	e := ends{make(chan bool), make(chan bool, 16)}
	s.limits.cleanup = time.Millisecond
	s.cfg.Life.Stop = func(hung bool) (any, bool) {
		e.asked <- hung
		select {
		case verified := <-e.answers:
			return nil, verified
		case <-s.ctx.Done():
			return nil, true
		}
	}
	return e
}

// next waits for the next end and has it verified or not.
func (e ends) next(t *testing.T, wantHung, verified bool) {
	t.Helper()
	select {
	case hung := <-e.asked:
		if hung != wantHung {
			t.Errorf("ended as a browser that hangs: %v, want %v", hung, wantHung)
		}
	case <-time.After(patience):
		t.Fatal("nothing is ended")
	}
	select {
	case e.answers <- verified:
	case <-time.After(patience):
		t.Fatal("nobody waits for the end")
	}
}

// What is left of a browser is tried again. Until that is over, nobody is
// given the next one.
func TestCleanUp(t *testing.T) {
	var e ends
	s := startServer(t, func(s *testServer) { e = newEnds(s) })
	proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
	stopped := make(chan bool)
	go func() {
		_, verified, _ := s.StopBrowser(t.Context(), true)
		stopped <- verified
	}()
	e.next(t, false, false)
	if <-stopped {
		t.Error("said to be verified")
	}
	e.next(t, false, false)
	if hung := <-e.asked; hung {
		t.Error("tried again as a browser that hangs")
	}
	if state := s.Status().Browser.State; state != "cleanup_pending" {
		t.Errorf("state: want cleanup_pending, got %s", state)
	}
	s.wantReady(t, 503, "processes")
	c := proxytest.Dial(t, s.ws("/client-a"))
	pending := c.Go("", "Browser.getVersion", nil)
	await(t, "held command", func() bool { return s.Stats().Held == 1 })
	if n := s.starts.Load(); n != 1 {
		t.Errorf("started while the last browser is being ended: %d starts", n)
	}
	e.answers <- true
	if _, err := pending.Wait(); err != nil {
		t.Errorf("who came meanwhile: %v", err)
	}
	if state := s.Status().Browser.State; state != "ready" {
		t.Errorf("state: want ready, got %s", state)
	}
	s.wantReady(t, 200, "ready")
}

// A start that succeeds is proof that nothing is left, and its browser is not
// the one that was to be ended.
func TestCleanUpSparesTheNextBrowser(t *testing.T) {
	var e ends
	starting := make(chan struct{})
	s := startServer(t, func(s *testServer) {
		e = newEnds(s)
		s.address = func(ctx context.Context) (string, error) {
			if s.starts.Load() > 1 {
				select {
				case <-starting:
				case <-ctx.Done():
				}
			}
			return s.browser.URL(), nil
		}
	})
	proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_, _, _ = s.StopBrowser(t.Context(), true)
	}()
	await(t, "the end", func() bool { return len(e.asked) == 1 })
	c := proxytest.Dial(t, s.ws("/client-a"))
	pending := c.Go("", "Browser.getVersion", nil) // its start waits for the end, and begins with it
	await(t, "held command", func() bool { return s.Stats().Held == 1 })
	e.next(t, false, false)
	<-stopped
	await(t, "the start", func() bool { return s.starts.Load() == 2 })
	select {
	case <-e.asked:
		t.Fatal("ended while the next one is being started")
	case <-time.After(50 * s.limits.cleanup): // rounds of trying again
	}
	close(starting)
	if _, err := pending.Wait(); err != nil {
		t.Error(err)
	}
	if state := s.Status().Browser.State; state != "ready" {
		t.Errorf("state: want ready, got %s", state)
	}
	again := make(chan error)
	go func() {
		_, verified, err := s.StopBrowser(t.Context(), true)
		if err == nil && !verified {
			err = errors.New("not verified")
		}
		again <- err
	}()
	e.next(t, false, true)
	if err := <-again; err != nil {
		t.Error(err)
	}
}

// A browser that hung counts as one, also when all of it goes at a later try.
func TestCleanUpOfABrowserThatHung(t *testing.T) {
	var e ends
	var away atomic.Bool
	s := startServer(t, func(s *testServer) {
		e = newEnds(s)
		quickRedials(s)
		s.address = func(context.Context) (string, error) {
			if away.Load() {
				return "", io.ErrUnexpectedEOF
			}
			return s.browser.URL(), nil
		}
	})
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil)
	away.Store(true)
	s.browser.Drop()
	e.next(t, true, false)
	c.CloseStatus() // the start that follows is in vain
	e.next(t, true, true)
	await(t, "the end", func() bool { return s.Status().Browser.State == "stopped" })
}

func (s *testServer) wantReady(t *testing.T, want int, words string) {
	t.Helper()
	if status, _, text := s.get(t, "/readyz"); status != want || !strings.Contains(text, words) {
		t.Errorf("/readyz: want %d with %q, got %d %q", want, words, status, text)
	}
}

// Who would have to wait for the browser, or would be turned away, is told.
func TestNotReady(t *testing.T) {
	var away, open atomic.Bool
	s := startServer(t, func(s *testServer) {
		s.limits.redialWait, s.limits.redialMax = time.Hour, time.Hour
		s.cfg.Life.Refused = func(up bool) error {
			if open.Load() && !up {
				return errors.New("breaker is open")
			}
			return nil
		}
		s.address = func(context.Context) (string, error) {
			if away.Load() {
				return "", io.ErrUnexpectedEOF
			}
			return s.browser.URL(), nil
		}
	})
	open.Store(true)
	s.wantReady(t, 503, "breaker is open")
	open.Store(false)
	s.wantReady(t, 200, "ready")
	proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
	open.Store(true)
	s.wantReady(t, 200, "ready") // there is one
	open.Store(false)
	away.Store(true)
	s.browser.Drop()
	await(t, "a pause", func() bool { return s.Status().Browser.State == "degraded" })
	s.wantReady(t, 503, "lost")
}

// Who waits over HTTP for a browser that is stopped hears so.
func TestStopDuringAStart(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		s.cfg.Life.Stop = func(bool) (any, bool) { return nil, true }
		s.address = func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
	})
	answered := make(chan problem, 1)
	go func() {
		_, err := s.Server.browser(t.Context())
		answered <- problemOf(err)
	}()
	await(t, "the start", func() bool { return s.starts.Load() == 1 })
	if _, _, err := s.StopBrowser(t.Context(), false); err != nil {
		t.Error(err)
	}
	if p := <-answered; p.Kind != "browser_stopping" || p.status != 503 || !p.Retryable {
		t.Errorf("told %+v", p)
	}
}
