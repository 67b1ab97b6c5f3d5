package proxy

import (
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
