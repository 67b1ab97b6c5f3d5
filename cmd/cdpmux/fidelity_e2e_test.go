package main_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// A client hears through the proxy what it would hear alone on a Chrome of its
// own: the same events about the same things in the same order.
func TestEventsAreThoseOfAPrivateChrome(t *testing.T) {
	site := proxytest.StartSite(t)
	m := serve(t)
	noisy := m.dial(t, "noisy")
	discover(noisy)
	autoAttach(noisy, "", true)
	beginPage(t, noisy).Navigate(site.Other + "/plain")

	for _, each := range []struct {
		name string
		life func(t *testing.T, c *proxytest.Client)
	}{
		{"discovery", func(t *testing.T, c *proxytest.Client) {
			discover(c)
			c.Call("", "Target.setDiscoverTargets", params{"discover": true}) // on already: no second batch
			var made struct{ TargetID string }
			decode(t, c.Call("", "Target.createTarget", params{"url": "about:blank"}), &made)
			p := c.Attach(made.TargetID)
			again := c.Attach(made.TargetID)
			c.Call("", "Target.detachFromTarget", params{"sessionId": again.Session})
			p.Navigate(site.URL + "/plain")
			mustBeAlive(t, "the page", p)
			c.Call("", "Target.detachFromTarget", params{"sessionId": p.Session})
			p.Close()
			c.Await(func(m proxytest.Msg) bool {
				return m.Is("", "Target.targetDestroyed") && m.Param("targetId") == p.TargetID
			})
		}},
		{"auto-attach", func(t *testing.T, c *proxytest.Client) {
			autoAttach(c, "", true)
			autoAttach(c, "", true)
			mustBeAlive(t, "the page", beginPage(t, c))
			autoAttachOff(c)
			autoAttach(c, "", false)
			closePopup(t, c, awaitAttached(t, c, "", "page"))
		}},
		{"roots within roots", func(t *testing.T, c *proxytest.Client) {
			session := ""
			for range 3 {
				var sub struct{ SessionID string }
				decode(t, c.Call(session, "Target.attachToBrowserTarget", nil), &sub)
				session = sub.SessionID
			}
			c.Call(session, "Target.setDiscoverTargets", params{"discover": true})
			var made struct{ TargetID string }
			decode(t, c.Call(session, "Target.createTarget", params{"url": "about:blank"}), &made)
			var page struct{ SessionID string }
			decode(t, c.Call(session, "Target.attachToTarget", params{"targetId": made.TargetID, "flatten": true}), &page)
			mustBeAlive(t, "the page", c.On(made.TargetID, page.SessionID))
			c.Call(session, "Target.closeTarget", params{"targetId": made.TargetID})
			c.AwaitEvent(session, "Target.targetDestroyed")
		}},
		{"auto-attach to what is related", func(t *testing.T, c *proxytest.Client) {
			p := c.NewPage("about:blank")
			p.Navigate(site.URL + "/iframe")
			c.Call("", "Target.autoAttachRelated", params{"targetId": p.TargetID, "waitForDebuggerOnStart": false})
			awaitAttached(t, c, "", "page")
			awaitAttached(t, c, "", "iframe")
		}},
	} {
		t.Run(each.name, func(t *testing.T) {
			hear := func(url string) []string {
				c := proxytest.Dial(t, url)
				each.life(t, c)
				settle(c)
				return heard(t, c)
			}
			private := proxytest.StartChromium(t)
			closeAll(t, proxytest.Dial(t, private.WS))
			want, got := hear(private.WS), hear(m.ws("/client-a"))
			if !slices.Equal(got, want) {
				t.Errorf("events:\n%s", difference(want, got))
			}
		})
	}
	if got := pages(t, noisy); len(got) != 1 {
		t.Errorf("tabs of the neighbour: want its one, got %v", got)
	}
}

// closeAll closes the tab with which a browser starts.
func closeAll(t *testing.T, c *proxytest.Client) {
	t.Helper()
	for _, id := range pages(t, c) {
		c.Call("", "Target.closeTarget", params{"targetId": id})
	}
	eventually(t, 5*time.Second, "end of the first tab", func() bool { return len(pages(t, c)) == 0 })
	c.Close()
}

var (
	anyLongID = regexp.MustCompile(`[0-9A-F]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	anyTitle  = regexp.MustCompile(`"title":"[^"]*"`) // it comes when the page has loaded
)

// heard is what a client was told of targets, ids numbered as they come up.
// Chrome's own interface, which the proxy hides, is left out, as is how often
// a page's title and address changed: that hangs on how fast it loads.
func heard(t *testing.T, c *proxytest.Client) (lines []string) {
	t.Helper()
	names := map[string]string{}
	hidden, attachedTo := map[string]bool{}, map[string]bool{}
	for _, message := range c.Transcript() {
		if !strings.HasPrefix(message.Method, "Target.") {
			continue
		}
		var event struct {
			TargetInfo struct {
				TargetID, Type string
				Attached       bool
				EmbedderData   any
			}
		}
		decode(t, message.Params, &event)
		info := event.TargetInfo
		if info.Type == "browser_ui" || info.Type == "tab" && info.EmbedderData == nil {
			hidden[info.TargetID] = true
		}
		if hidden[info.TargetID] || hidden[message.Param("targetId")] {
			continue
		}
		line := anyTitle.ReplaceAllString(string(message.Raw), `"title":""`)
		if message.Method == "Target.targetInfoChanged" {
			if attachedTo[info.TargetID] == info.Attached {
				continue
			}
			line = fmt.Sprintf("%s %s attached %v", message.Method, info.TargetID, info.Attached)
		}
		if info.TargetID != "" {
			attachedTo[info.TargetID] = info.Attached
		}
		lines = append(lines, anyLongID.ReplaceAllStringFunc(line, func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprint("#", len(names))
			}
			return names[id]
		}))
	}
	return lines
}

// difference shows two lists of lines beside each other.
func difference(want, got []string) string {
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		line := func(of []string) string {
			if i < len(of) {
				return of[i]
			}
			return "nothing"
		}
		if line(want) == line(got) {
			fmt.Fprintln(&b, "both", line(want))
		} else {
			fmt.Fprintf(&b, "want %s\ngot  %s\n", line(want), line(got))
		}
	}
	return b.String()
}

// Who begins to discover hears of what is there in the order of Chrome's table:
// by id.
func TestDiscoveryBeginsInOrder(t *testing.T) {
	m := serve(t)
	for name, c := range map[string]*proxytest.Client{
		"a private Chrome": proxytest.Dial(t, proxytest.StartChromium(t).WS), "the proxy": m.dial(t, "a"),
	} {
		for range 4 {
			c.NewPage("about:blank")
		}
		from := len(c.Transcript())
		discover(c)
		var batch []string
		for _, message := range c.Transcript()[from:] {
			if message.Method == "Target.targetCreated" {
				batch = append(batch, targetOf(t, message))
			}
		}
		if len(batch) < 9 || !slices.IsSorted(batch) {
			t.Errorf("batch of %s: want a browser, tabs and pages, by id, got %v", name, batch)
		}
	}
}

// Whether a target is attached is told of the client's own sessions, and no
// change is told twice.
func TestAttachedIsTheClientsOwn(t *testing.T) {
	m := serve(t)
	c, neighbour := m.dial(t, "a"), m.dial(t, "neighbour")
	autoAttach(neighbour, "", false) // with this the proxy attaches to every new tab
	discover(c)
	var made struct{ TargetID string }
	decode(t, c.Call("", "Target.createTarget", params{"url": "about:blank"}), &made)
	must := func(when string, want bool) {
		t.Helper()
		var reply struct{ TargetInfo struct{ Attached bool } }
		decode(t, c.Call("", "Target.getTargetInfo", params{"targetId": made.TargetID}), &reply)
		if reply.TargetInfo.Attached != want {
			t.Errorf("attached %s: want %v, got %v", when, want, reply.TargetInfo.Attached)
		}
	}
	must("before any attach", false)
	first := c.Attach(made.TargetID)
	must("with a session", true)
	second := c.Attach(made.TargetID)
	c.Call("", "Target.detachFromTarget", params{"sessionId": first.Session})
	must("with another session", true)
	c.Call("", "Target.detachFromTarget", params{"sessionId": second.Session})
	must("without a session", false)

	var told []bool
	last := map[string]string{}
	for _, message := range c.Transcript() {
		if message.Method != "Target.targetCreated" && message.Method != "Target.targetInfoChanged" {
			continue
		}
		var event struct{ TargetInfo struct{ Attached bool } }
		decode(t, message.Params, &event)
		id := targetOf(t, message)
		if last[id] == string(message.Raw) {
			t.Errorf("told twice: %s", message)
		}
		last[id] = string(message.Raw)
		if id == made.TargetID {
			told = append(told, event.TargetInfo.Attached)
		}
	}
	if got := slices.Compact(told); !slices.Equal(got, []bool{false, true, false}) {
		t.Errorf("attached, as told by events: want false, true and then false, got %v", got)
	}
}

// A client's tabs are listed most recently used first.
func TestTabsAreListedByUse(t *testing.T) {
	m := serve(t)
	c := m.dial(t, "a")
	var made []string
	for range 3 {
		var reply struct{ TargetID string }
		decode(t, c.Call("", "Target.createTarget", params{"url": "about:blank"}), &reply)
		made = append(made, reply.TargetID)
	}
	must := func(when string, want ...string) {
		t.Helper()
		var seen, listed []string
		for _, each := range targets(t, c, nil) {
			seen = append(seen, each.TargetID)
		}
		var entries []target
		decode(t, get(t, m.http("/client-a/json/list")), &entries)
		for _, each := range entries {
			listed = append(listed, each.ID)
		}
		if !slices.Equal(seen, want) || !slices.Equal(listed, want) {
			t.Errorf("tabs %s: want %v, got %v by getTargets, %v by /json/list", when, want, seen, listed)
		}
	}
	must("as they were made", made[2], made[1], made[0])
	c.Call("", "Target.activateTarget", params{"targetId": made[0]})
	must("after the first was activated", made[0], made[2], made[1])
}

// A client has one browser target, as far as it can see: its own.
func TestOwnBrowserTarget(t *testing.T) {
	m := serve(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	discover(a)
	discover(b)
	var own struct {
		TargetInfo struct {
			TargetID, Type string
			Attached       bool
		}
	}
	decode(t, a.Call("", "Target.getTargetInfo", nil), &own)
	if own.TargetInfo.Type != "browser" || !own.TargetInfo.Attached {
		t.Errorf("getTargetInfo without a target: want an attached browser, got %+v", own)
	}
	if got := typesSeen(t, a); slices.Contains(got, "browser_ui") {
		t.Errorf("types seen: want no browser_ui, got %v", got)
	}
	for _, message := range a.Transcript() {
		if message.Method == "Target.targetCreated" && typeOf(t, message) == "browser" && targetOf(t, message) != own.TargetInfo.TargetID {
			t.Errorf("browser target that is not its own: %s", message)
		}
	}
	session := a.Attach(own.TargetInfo.TargetID).Session // as Puppeteer does
	a.Call(session, "Browser.getVersion", nil)
	b.NewPage("about:blank")
	mustBeStrangers(t, a, b)
}
