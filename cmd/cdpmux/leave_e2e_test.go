package main_test

import (
	"slices"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// grace makes a client's tabs wait for it.
var grace = []string{"--grace", "480s"}

// browser-harness makes a new about:blank at each start of its daemon and
// forgets the last one, which must not pile up.
func TestHarnessRestarts(t *testing.T) {
	m := serve(t, grace...)
	site := proxytest.StartSite(t)
	worked := startHarness(t, m)
	worked.Navigate(site.URL + "/title?t=work")
	var last proxytest.Page
	for range scaled(t, 20) {
		last = startHarness(t, m)
		last.Call("Browser.getVersion", nil)
	}
	last.Navigate(site.URL + "/plain")
	c := m.dial(t, "harness")
	want := []string{last.TargetID, worked.TargetID}
	eventually(t, 10*time.Second, "two tabs, the one used last first", func() bool {
		var got []string
		for _, each := range targets(t, c, nil) {
			got = append(got, each.TargetID)
		}
		return slices.Equal(got, want)
	})
	browser := m.dialBrowser(t)
	eventually(t, 10*time.Second, "end of all tabs but these and Chrome's first", func() bool { return len(pages(t, browser)) <= 3 })
	if got := text(t, c.Attach(worked.TargetID).Eval("document.title")); got != "work" {
		t.Errorf("title of the tab that was worked in: want work, got %q", got)
	}
}

// startHarness is the sequence of a daemon's start; the last one just vanished.
func startHarness(t *testing.T, m *mux) proxytest.Page {
	t.Helper()
	c := m.dial(t, "harness")
	t.Cleanup(c.Drop)
	c.Call("", "Target.getTargets", params{})
	c.Call("", "Target.getTargets", params{})
	var made struct{ TargetID string }
	decode(t, c.Call("", "Target.createTarget", params{"url": "about:blank", "background": true}), &made)
	p := c.Attach(made.TargetID)
	for _, domain := range []string{"Page", "DOM", "Runtime", "Network"} {
		c.Go(p.Session, domain+".enable", params{})
	}
	c.Call("", "Target.getTargetInfo", params{"targetId": made.TargetID})
	return p
}

// A client that is killed lets go of what it holds: the tab works at once for
// whoever looks past the proxy, and for the client when it comes back.
func TestDeadClientLetsGo(t *testing.T) {
	m := serve(t, append(grace, "--eager")...)
	site := proxytest.StartSite(t)
	browser := m.dialBrowser(t)
	for _, each := range []struct {
		name string
		hold func(t *testing.T, c *proxytest.Client, p proxytest.Page)
		free string // true when nothing is held
	}{
		{"a paused request", func(_ *testing.T, c *proxytest.Client, p proxytest.Page) {
			p.Call("Fetch.enable", nil)
			c.Go(p.Session, "Page.navigate", params{"url": site.URL + "/title?t=let-go"})
			c.AwaitEvent(p.Session, "Fetch.requestPaused")
		}, "document.title == 'let-go'"},
		{"a dialog", func(_ *testing.T, c *proxytest.Client, p proxytest.Page) {
			p.Call("Page.enable", nil)
			c.Go(p.Session, "Runtime.evaluate", params{"expression": "window.said = confirm('?')"})
			c.AwaitEvent(p.Session, "Page.javascriptDialogOpening")
		}, "window.said === false"},
		{"a debugger pause", func(_ *testing.T, c *proxytest.Client, p proxytest.Page) {
			p.Call("Debugger.enable", nil)
			c.Go(p.Session, "Runtime.evaluate", params{"expression": "debugger; window.went = true"})
			c.AwaitEvent(p.Session, "Debugger.paused")
		}, "window.went === true"},
		{"a paused popup", func(t *testing.T, c *proxytest.Client, p proxytest.Page) {
			autoAttach(c, "", true)
			gesture(c, p.Session, "window.popup = window.open('/title?t=popup')")
			for awaitAttached(t, c, "", "page").TargetInfo.OpenerID != p.TargetID {
			}
		}, "window.popup.document.title == 'popup'"},
		{"200 sessions", func(_ *testing.T, c *proxytest.Client, p proxytest.Page) {
			for range 200 {
				c.Attach(p.TargetID)
			}
		}, "true"},
	} {
		t.Run(each.name, func(t *testing.T) {
			c := m.dial(t, "a")
			p := c.NewPage("about:blank")
			p.Navigate(site.URL + "/plain")
			each.hold(t, c, p)
			c.Drop()
			observer := browser.Attach(p.TargetID)
			within(t, time.Second, "work of the tab", func() {
				eventually(t, 10*time.Second, "nothing held", func() bool { return isTrue(t, browser, observer.Session, each.free) })
			})
			again := m.dial(t, "a")
			if got := pages(t, again); !slices.Contains(got, p.TargetID) {
				t.Fatalf("tabs of the client that came back: want %s among them, got %v", p.TargetID, got)
			}
			p = again.Attach(p.TargetID)
			mustBeAlive(t, "the client that came back", p)
			p.Navigate(site.URL + "/plain")
			again.Call("", "Browser.close", nil)
		})
	}
}

// isTrue evaluates a condition; while the page navigates it is false.
func isTrue(t *testing.T, c *proxytest.Client, session, condition string) bool {
	t.Helper()
	raw, err := c.CallErr(session, "Runtime.evaluate", params{"expression": condition, "returnByValue": true})
	if err != nil {
		return false
	}
	var reply struct{ Result struct{ Value any } }
	decode(t, raw, &reply)
	return reply.Result.Value == true
}

// Of a client's tabs the one used least recently goes when one is too many;
// never the newest, nor one that somebody waits in when another will do.
func TestTabCap(t *testing.T) {
	m := serve(t, "--tab-cap", "3")
	site := proxytest.StartSite(t)
	c := m.dial(t, "a")
	neighbour := m.dial(t, "neighbour")
	stays := neighbour.NewPage("about:blank")
	discover(c)
	open := func() proxytest.Page {
		p := c.NewPage("about:blank")
		p.Navigate(site.URL + "/popup")
		return p
	}
	mustGo := func(what string, p proxytest.Page) {
		t.Helper()
		c.Await(func(m proxytest.Msg) bool {
			return m.Is("", "Target.targetDestroyed") && string(m.Params) == `{"targetId":"`+p.TargetID+`"}`
		})
		_, err := c.CallErr("", "Target.activateTarget", params{"targetId": p.TargetID})
		if err == nil || err.Message != "No target with given id found" {
			t.Errorf("%s, afterwards: want %q, got %v", what, "No target with given id found", err)
		}
		if got := pages(t, c); len(got) != 3 {
			t.Errorf("%s: want 3 tabs left, got %v", what, got)
		}
	}
	first, second, third := open(), open(), open()
	mustBeAlive(t, "the oldest, used again", first)
	fourth := open()
	mustGo("the one used least recently", second)

	waiting := never(c, third.Session) // makes it the one used last …
	mustBeAlive(t, "the first", first)
	mustBeAlive(t, "the fourth", fourth) // … and these later ones
	fifth := open()
	mustGo("the first that nobody waits in", first)
	if waiting.Answered() {
		t.Error("the tab that somebody waits in was closed")
	}

	gesture(c, fifth.Session, "document.getElementById('open').click()").Wait()
	mustGo("for a popup", fourth)
	mustBeAlive(t, "the opener", fifth)
	mustBeAlive(t, "the neighbour", stays)
}

func TestTabCapRefuses(t *testing.T) {
	m := serve(t, "--tab-cap", "1", "--tab-cap-policy", "reject")
	c := m.dial(t, "a")
	only := c.NewPage("about:blank")
	_, err := c.CallErr("", "Target.createTarget", params{"url": "about:blank"})
	if want := "This client has 1 tabs, which is the limit (--tab-cap): close one first"; err == nil || err.Message != want {
		t.Errorf("one tab too many: want %q, got %v", want, err)
	}
	mustBeAlive(t, "the tab", only)
	only.Close()
	eventually(t, 5*time.Second, "room for another", func() bool {
		_, err := c.CallErr("", "Target.createTarget", params{"url": "about:blank"})
		return err == nil
	})
}
