package main_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// never is a command that is open until something happens to its page.
func never(c *proxytest.Client, session string) *proxytest.Pending {
	return c.Go(session, "Runtime.evaluate", params{"expression": "new Promise(() => {})", "awaitPromise": true})
}

// mustFail checks that an open command is answered with one error within a second.
func mustFail(t *testing.T, session string, open *proxytest.Pending) {
	t.Helper()
	begun := time.Now()
	reply := open.Reply()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("reply to the open %s: want it within 1 s, it took %v", open.Method, took)
	}
	if err := reply.Err(); err == nil || err.Code == 0 || err.Message == "" {
		t.Errorf("reply to the open %s: want an error with code and message, got %s", open.Method, reply)
	}
	if reply.Session != session {
		t.Errorf("reply to the open %s: want sessionId %q, got %s", open.Method, session, reply)
	}
}

// mustHaveFailedOnce checks that no second reply came.
func mustHaveFailedOnce(t *testing.T, c *proxytest.Client, open *proxytest.Pending) {
	t.Helper()
	if replies := c.Replies(open.ID); len(replies) != 1 {
		t.Errorf("replies to the open %s: want one, got %v", open.Method, replies)
	}
}

// settle returns when whatever was on its way to the client is there.
func settle(c *proxytest.Client) { c.Call("", "Browser.getVersion", nil) }

// Chrome never answers a command whose page, session or renderer goes while
// the command is open. Whoever waits behind the proxy is told.
func TestOpenCommandsAreAnswered(t *testing.T) {
	m := serve(t)
	neighbour := m.dial(t, "neighbour")
	stays, browser := neighbour.NewPage("about:blank"), m.dialBrowser(t)
	open := never(neighbour, stays.Session)
	for name, end := range map[string]func(c *proxytest.Client, p proxytest.Page){
		"closed by its client": func(_ *proxytest.Client, p proxytest.Page) { p.Close() },
		"closed by another connection": func(_ *proxytest.Client, p proxytest.Page) {
			browser.Call("", "Target.closeTarget", params{"targetId": p.TargetID})
		},
		"window.close()": func(c *proxytest.Client, p proxytest.Page) {
			c.Go(p.Session, "Runtime.evaluate", params{"expression": "window.close()"})
		},
		"Page.close": func(c *proxytest.Client, p proxytest.Page) { c.Go(p.Session, "Page.close", nil) },
		"session detached": func(c *proxytest.Client, p proxytest.Page) {
			c.Call("", "Target.detachFromTarget", params{"sessionId": p.Session})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := m.dial(t, "a")
			p := c.NewPage("about:blank")
			pending := never(c, p.Session)
			end(c, p)
			mustFail(t, p.Session, pending)
			settle(c)
			mustHaveFailedOnce(t, c, pending)
		})
	}

	t.Run("Page.crash", func(t *testing.T) {
		c := m.dial(t, "a")
		p := c.NewPage("about:blank")
		pending := never(c, p.Session)
		crash := c.Go(p.Session, "Page.crash", nil)
		mustFail(t, p.Session, pending)
		mustFail(t, p.Session, crash)
		settle(c)
		mustHaveFailedOnce(t, c, pending)
		mustHaveFailedOnce(t, c, crash)
	})

	if open.Answered() {
		t.Errorf("the neighbour's open command: want no answer, got %v", neighbour.Replies(open.ID))
	}
	mustBeAlive(t, "the neighbour", stays)
}

// The same for a page's children.
func TestOpenCommandsOfChildrenAreAnswered(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	for _, each := range []struct{ kind, path, end string }{
		{"iframe", "/iframe", "document.querySelector('iframe').remove()"},
		{"worker", "/worker", "worker.terminate()"},
	} {
		t.Run(each.kind, func(t *testing.T) {
			c := m.dial(t, "a")
			p := c.NewPage("about:blank")
			p.Call("Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true})
			p.Navigate(site.URL + each.path)
			child := awaitChild(t, c, p.Session, each.kind)
			pending := never(c, child)
			p.Eval(each.end)
			mustFail(t, child, pending)
			settle(c)
			mustHaveFailedOnce(t, c, pending)
		})
	}
}

// When the browser dies, every open command is answered, every client hears
// that its sessions ended, and goes on with the next browser as it is.
func TestBrowserDies(t *testing.T) {
	m := serve(t)
	clients := []*proxytest.Client{m.dial(t, "a"), m.dial(t, "b")}
	var pagesOf []proxytest.Page
	var pending []*proxytest.Pending
	for _, c := range clients {
		p := c.NewPage("about:blank")
		pagesOf = append(pagesOf, p)
		pending = append(pending, never(c, p.Session))
		settle(c) // it is open at the browser
	}
	pid := m.browserPID(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i, c := range clients {
		mustFail(t, pagesOf[i].Session, pending[i])
		c.AwaitEvent("", "Target.detachedFromTarget")
	}
	for i, c := range clients {
		awaitBrowser(t, c)
		mustHaveFailedOnce(t, c, pending[i])
		if got := pages(t, c); len(got) != 0 {
			t.Errorf("tabs in the next browser: want none, got %v", got)
		}
		mustBeAlive(t, "a client that stayed", c.NewPage("about:blank"))
	}
	if got := m.browserPID(t); got == pid {
		t.Errorf("browser's pid after its death: want another than %d", pid)
	}
}

// awaitBrowser waits until a client's root answers again.
func awaitBrowser(t *testing.T, c *proxytest.Client) {
	t.Helper()
	eventually(t, 60*time.Second, "answer of the next browser", func() bool {
		_, err := c.CallErr("", "Browser.getVersion", nil)
		return err == nil
	})
}

// A stop tells everybody, and loses nothing that a page has stored.
func TestStopIsGraceful(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			home := tempHome(t)
			site := proxytest.StartSite(t)
			m := serveAt(t, home)
			c := m.dial(t, "a")
			p := c.NewPage("about:blank")
			p.Navigate(site.URL + "/cookie?n=kept&v=yes")
			store := storeOf(t, m)
			pending := never(c, p.Session)
			settle(c) // it is open at the browser

			_ = m.cmd.Process.Signal(os.Signal(signal))
			mustFail(t, p.Session, pending)
			if code, text := c.CloseStatus(); code != 1001 {
				t.Errorf("close code at %v: want 1001, got %d %q", signal, code, text)
			}
			mustHaveFailedOnce(t, c, pending)
			if code := m.wait(t, 30*time.Second); code != 0 {
				t.Errorf("exit code after %v: want 0, got %d", signal, code)
			}

			m = serveAt(t, home)
			c = m.dial(t, "a")
			p = c.NewPage("about:blank")
			p.Navigate(site.URL + "/cookie")
			if got := text(t, p.Eval("document.cookie")); !strings.Contains(got, "kept=yes") {
				t.Errorf("cookies after a stop and a start: want kept=yes among them, got %q", got)
			}
			if got := storeOf(t, m); got != store {
				t.Errorf("Cdpmux-Store after a stop and a start: want still %s, got %s", store, got)
			}
		})
	}
}

// storeOf is the store's name and id, which are made once.
func storeOf(t *testing.T, m *mux) string {
	t.Helper()
	var version map[string]string
	decode(t, get(t, m.http("/json/version")), &version)
	return version["Cdpmux-Store"]
}

// awaitChild waits until a child of a page is attached and returns its session.
func awaitChild(t *testing.T, c *proxytest.Client, parent, kind string) (session string) {
	t.Helper()
	var event struct {
		SessionID  string
		TargetInfo struct{ Type string }
	}
	c.Await(func(m proxytest.Msg) bool {
		if !m.Is(parent, "Target.attachedToTarget") {
			return false
		}
		decode(t, m.Params, &event)
		return event.TargetInfo.Type == kind
	})
	return event.SessionID
}
