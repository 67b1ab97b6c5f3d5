package proxy

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// relay stands between the proxy and a real browser, and breaks in many ways.
type relay struct {
	addr, target string
	listener     net.Listener
	wg           sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // guarded by mu: both ends of what was taken
	hole  bool       // guarded by mu: what comes goes nowhere
}

func startRelay(t *testing.T, target string) *relay {
	l := listen(t)
	r := &relay{addr: l.Addr().String(), target: target, listener: l}
	r.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.serve(conn)
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.each(net.Conn.Close)
		r.wg.Wait()
	})
	return r
}

func (r *relay) serve(conn net.Conn) {
	out, err := net.Dial("tcp", r.target)
	if err != nil {
		conn.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conn, out)
	r.wg.Go(func() { r.pass(out, conn) })
	r.wg.Go(func() { r.pass(conn, out) })
}

func (r *relay) pass(to, from net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{writer(func(p []byte) (int, error) {
		r.mu.Lock()
		hole := r.hole
		r.mu.Unlock()
		if hole {
			return len(p), nil
		}
		return to.Write(p)
	})}, from)
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func (r *relay) setHole(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hole = on
}

func (r *relay) each(do func(net.Conn) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = do(c)
	}
}

// The line to the browser breaks, in whatever way: who waits is answered, and
// the tabs are found again by the clients that stayed.
func TestTheLineBreaks(t *testing.T) {
	chromium := proxytest.StartChromium(t)
	at, err := url.Parse(chromium.WS)
	if err != nil {
		t.Fatal(err)
	}
	for name, each := range map[string]struct{ breaks, heals func(*relay) }{
		"black hole": {func(r *relay) { r.setHole(true) }, func(r *relay) { r.setHole(false) }},
		"reset": {func(r *relay) {
			r.each(func(c net.Conn) error {
				_ = c.(*net.TCPConn).SetLinger(0)
				return c.Close()
			})
		}, func(*relay) {}},
		"closed cleanly": {func(r *relay) {
			r.each(func(c net.Conn) error { return c.(*net.TCPConn).CloseWrite() })
		}, func(*relay) {}},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRelay(t, at.Host)
			address := strings.Replace(chromium.WS, at.Host, r.addr, 1)
			s := startServer(t, func(s *testServer) {
				s.address = func(context.Context) (string, error) { return address, nil }
				s.limits.probe, s.limits.silent, s.limits.dead = 200*time.Millisecond, 600*time.Millisecond, 2*time.Second
				s.limits.redialWait = 100 * time.Millisecond
			})
			a, b := proxytest.Dial(t, s.ws("/client-a")), proxytest.Dial(t, s.ws("/client-b"))
			ofA, ofB := a.NewPage("about:blank"), b.NewPage("about:blank")
			ofA.Eval("window.mine = 'a', 0")
			var open []*proxytest.Pending
			for range 50 {
				open = append(open, a.Go(ofA.Session, "Runtime.evaluate", map[string]any{"expression": "new Promise(() => {})", "awaitPromise": true}))
			}
			a.Call("", "Browser.getVersion", nil) // they are at the browser
			each.breaks(r)
			for _, p := range open {
				if _, err := p.Wait(); err == nil {
					t.Error("a pending command succeeded")
				}
			}
			a.AwaitEvent("", "Target.detachedFromTarget")
			each.heals(r)
			for _, c := range []*proxytest.Client{a, b} {
				await(t, "the browser again", func() bool { _, err := c.CallErr("", "Browser.getVersion", nil); return err == nil })
			}
			if got := string(a.Attach(ofA.TargetID).Eval("window.mine")); got != `"a"` {
				t.Errorf("the tab remembers %s", got)
			}
			if got := pageIDs(t, b); len(got) != 1 || got[0] != ofB.TargetID {
				t.Errorf("tabs of b: %v, want %s", got, ofB.TargetID)
			}
			for _, p := range open {
				if n := len(a.Replies(p.ID)); n != 1 {
					t.Errorf("%d replies to one command", n)
				}
			}
		})
	}
}
