package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// autoAttach turns a client's auto-attach on, flat, at a session ("" is its root).
func autoAttach(c *proxytest.Client, session string, wait bool, filter ...params) {
	ask := params{"autoAttach": true, "waitForDebuggerOnStart": wait, "flatten": true}
	if filter != nil {
		ask["filter"] = filter
	}
	c.Call(session, "Target.setAutoAttach", ask)
}

// tabMode is the filter by which a root is attached to tabs, not to pages.
var tabMode = []params{{"type": "page", "exclude": true}, {}}

// discover turns a client's discovery of everything on.
func discover(c *proxytest.Client) {
	c.Call("", "Target.setDiscoverTargets", params{"discover": true, "filter": everything})
}

// attached is an event Target.attachedToTarget.
type attached struct {
	SessionID          string
	WaitingForDebugger bool
	TargetInfo         struct{ TargetID, Type, Subtype, URL, OpenerID string }
}

// awaitAttached waits until a target of that type is attached to below a session.
func awaitAttached(t *testing.T, c *proxytest.Client, parent, kind string) (event attached) {
	t.Helper()
	c.Await(func(m proxytest.Msg) bool {
		if !m.Is(parent, "Target.attachedToTarget") {
			return false
		}
		event = attached{}
		decode(t, m.Params, &event)
		return event.TargetInfo.Type == kind
	})
	return event
}

// begin does to a new page what drivers do: everything in one go, the run last.
// Its init script leaves window.init behind.
func begin(c *proxytest.Client, session string) {
	c.Go(session, "Page.enable", nil)
	c.Go(session, "Page.addScriptToEvaluateOnNewDocument", params{"source": "window.init = true"})
	c.Go(session, "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
	c.Go(session, "Runtime.runIfWaitingForDebugger", nil)
}

// beginPage opens a tab of a client in page mode and begins it.
func beginPage(t *testing.T, c *proxytest.Client) proxytest.Page {
	t.Helper()
	c.Call("", "Target.createTarget", params{"url": "about:blank"})
	tab := awaitAttached(t, c, "", "page")
	begin(c, tab.SessionID)
	return c.On(tab.TargetInfo.TargetID, tab.SessionID)
}

// loadOpener loads /opener, whose iframe waits until it is run, and returns the
// iframe's session.
func loadOpener(t *testing.T, c *proxytest.Client, p proxytest.Page, site *proxytest.Site) (frame string) {
	t.Helper()
	p.Call("Page.navigate", params{"url": site.URL + "/opener"})
	frame = awaitAttached(t, c, p.Session, "iframe").SessionID
	begin(c, frame)
	initialised(t, c, frame, "/opener")
	initialised(t, c, p.Session, "/opener")
	return frame
}

// beginTab follows a tab of a client in tab mode down to its page and begins both.
func beginTab(t *testing.T, c *proxytest.Client) (tab attached, page proxytest.Page) {
	t.Helper()
	tab = awaitAttached(t, c, "", "tab")
	c.Go(tab.SessionID, "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": everything})
	c.Go(tab.SessionID, "Runtime.runIfWaitingForDebugger", nil)
	child := awaitAttached(t, c, tab.SessionID, "page")
	begin(c, child.SessionID)
	return tab, c.On(child.TargetInfo.TargetID, child.SessionID)
}

// initialised waits until a page has loaded path, and reports whether the init
// script was there before the document.
func initialised(t *testing.T, c *proxytest.Client, session, path string) bool {
	t.Helper()
	var value string
	eventually(t, 10*time.Second, path+" loaded in session "+session, func() bool {
		var reply struct{ Result struct{ Value string } }
		// While the page navigates, an evaluation fails.
		raw, err := c.CallErr(session, "Runtime.evaluate", params{"expression": "[location.pathname, document.readyState, window.init].join()"})
		if err == nil {
			decode(t, raw, &reply)
		}
		value = reply.Result.Value
		return strings.HasPrefix(value, path+",complete,")
	})
	return strings.HasSuffix(value, ",true")
}

// gesture evaluates an expression as if the user had just clicked.
func gesture(c *proxytest.Client, session, expression string) *proxytest.Pending {
	return c.Go(session, "Runtime.evaluate", params{"expression": expression, "userGesture": true, "returnByValue": true})
}

// within fails the test when do takes longer than limit.
func within(t *testing.T, limit time.Duration, what string, do func()) {
	t.Helper()
	begun := time.Now()
	do()
	if took := time.Since(begun); took > limit {
		t.Errorf("%s: want it within %v, it took %v", what, limit, took)
	}
}

// point is a place in a page's view.
type point struct{ X, Y float64 }

// centre finds the middle of an element in its own frame.
func centre(t *testing.T, c *proxytest.Client, session, selector string) (p point) {
	t.Helper()
	raw := c.Call(session, "Runtime.evaluate", params{"returnByValue": true, "expression": fmt.Sprintf(
		"(r => ({X: r.x + r.width/2, Y: r.y + r.height/2}))(document.querySelector(%q).getBoundingClientRect())", selector)})
	var reply struct{ Result struct{ Value point } }
	decode(t, raw, &reply)
	return reply.Result.Value
}
