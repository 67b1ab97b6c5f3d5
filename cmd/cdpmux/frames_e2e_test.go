package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
)

// A page's own auto-attach works as in Chrome: a session for its cross-site
// iframe and one for its worker, all of them alive, and only at its client.
func TestChildrenOfAPage(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprintf("waitForDebuggerOnStart %t", wait), func(t *testing.T) {
			c, neighbour := m.dial(t, "a"), m.dial(t, "b")
			stays := neighbour.NewPage("about:blank")
			neighbour.Call("", "Target.setDiscoverTargets", params{"discover": true, "filter": everything})
			c.Call("", "Target.setDiscoverTargets", params{"discover": true, "filter": everything})

			p := c.NewPage("about:blank")
			p.Call("Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": wait, "flatten": true})
			attach := func(kind string) string {
				session := awaitChild(t, c, p.Session, kind)
				if wait {
					c.Call(session, "Runtime.runIfWaitingForDebugger", nil)
				}
				return session
			}
			p.Call("Page.enable", nil)
			p.Call("Page.navigate", params{"url": site.URL + "/iframe"})
			iframe := attach("iframe")
			c.AwaitEvent(p.Session, "Page.loadEventFired")
			p.Eval("window.worker = new Worker('/worker.js'), window.pong = new Promise(r => worker.onmessage = () => r(0)), worker.postMessage('ping'), 0")
			worker := attach("worker")
			p.Eval("pong") // Chromium crashes on a look at location in a worker that has no script yet

			for _, each := range []struct{ kind, session, want string }{
				{"page", p.Session, site.URL + "/iframe"},
				{"iframe", iframe, site.Other + "/plain"},
				{"worker", worker, site.URL + "/worker.js"},
			} {
				c.Call(each.session, "Runtime.enable", nil)
				expression := params{"expression": "console.log('here'), location.href"}
				got := string(c.Call(each.session, "Runtime.evaluate", expression))
				if !strings.Contains(got, fmt.Sprintf("%q", each.want)) {
					t.Errorf("location of the %s: want %s, got %s", each.kind, each.want, got)
				}
				c.AwaitEvent(each.session, "Runtime.consoleAPICalled")
			}

			p.Close()
			var ended []string
			for range 3 {
				event := c.Await(func(m proxytest.Msg) bool { return m.Method == "Target.detachedFromTarget" })
				ended = append(ended, event.Session+" lost "+event.Param("sessionId"))
			}
			want := []string{p.Session + " lost " + worker, p.Session + " lost " + iframe, " lost " + p.Session}
			slices.Sort(want)
			slices.Sort(ended)
			if !slices.Equal(ended, want) {
				t.Errorf("detachedFromTarget after closing the page: want %q, got %q", want, ended)
			}
			for _, session := range []string{p.Session, iframe, worker} {
				if _, err := c.CallErr(session, "Runtime.evaluate", params{"expression": "1"}); err == nil || err.Code != -32001 {
					t.Errorf("a command for an ended session: want -32001, got %v", err)
				}
			}
			mustBeAlive(t, "the neighbour", stays)
			mustBeStrangers(t, c, neighbour)
		})
	}
}
