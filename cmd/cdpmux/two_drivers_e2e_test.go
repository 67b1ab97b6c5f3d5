package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// Two agents drive one logged-in browser at once, and neither sees the other.
func TestTwoDrivers(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	var ofA, ofB proxytest.Page
	together(
		func() { ofA = drive(t, a, site, "a") },
		func() { ofB = drive(t, b, site, "b") },
	)

	t.Run("login is shared", func(t *testing.T) {
		ofA.Navigate(site.URL + "/cookie?n=login&v=yes")
		ofB.Navigate(site.URL + "/cookie")
		if got := text(t, ofB.Eval("document.cookie")); !strings.Contains(got, "login=yes") {
			t.Errorf("cookies at b: want the login=yes of a, got %q", got)
		}
	})

	t.Run("each lists its own", func(t *testing.T) {
		for _, each := range []struct {
			where string
			want  string
			got   []string
		}{
			{"getTargets of a", ofA.TargetID, pages(t, a)},
			{"getTargets of b", ofB.TargetID, pages(t, b)},
			{"/client-a/json/list", ofA.TargetID, list(t, m.http("/client-a/json/list"))},
			{"/client-b/json/list", ofB.TargetID, list(t, m.http("/client-b/json/list"))},
		} {
			if !slices.Equal(each.got, []string{each.want}) {
				t.Errorf("%s: want [%s], got %v", each.where, each.want, each.got)
			}
		}
		for _, path := range []string{"/json/list", "/json", "/client-stranger/json/list"} {
			if got := list(t, m.http(path)); len(got) != 0 {
				t.Errorf("%s: want no client's tabs, got %v", path, got)
			}
		}
	})

	t.Run("no filter shows the neighbour", func(t *testing.T) {
		types := map[string]int{}
		for _, each := range targets(t, a, everything) {
			types[each.Type]++
		}
		if types["page"] != 1 || types["browser_ui"] != 0 {
			t.Errorf("types in getTargets with filter [{}]: want one page and no browser_ui, got %v", types)
		}
		targets(t, b, everything)
		mustBeStrangers(t, a, b)
	})

	t.Run("the browser has both", func(t *testing.T) {
		all := pages(t, m.dialBrowser(t))
		for _, want := range []string{ofA.TargetID, ofB.TargetID} {
			if !slices.Contains(all, want) {
				t.Errorf("tabs of the browser itself: want %s among them, got %v", want, all)
			}
		}
	})
}

// drive is a day in the life of an agent: it listens to everything, opens a
// tab, loads a page, reads it and takes its picture.
func drive(t *testing.T, c *proxytest.Client, site *proxytest.Site, name string) proxytest.Page {
	t.Helper()
	c.Call("", "Target.setDiscoverTargets", params{"discover": true, "filter": everything})
	c.Call("", "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true})
	p := c.NewPage("about:blank")
	p.Navigate(site.URL + "/title?t=" + name)
	if got := text(t, p.Eval("document.title")); got != name {
		t.Errorf("title at %s: want %q, got %q", name, name, got)
	}
	p.Navigate(site.URL + "/plain")
	mustShowSomething(t, p.Screenshot())
	return p
}

// The events of a tab's birth come before the reply that names it, as clients rely on.
func TestEventsComeBeforeReplies(t *testing.T) {
	m := serve(t)
	c := m.dial(t, "a")
	c.Call("", "Target.setDiscoverTargets", params{"discover": true})
	c.Call("", "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true})
	reply := c.Go("", "Target.createTarget", params{"url": "about:blank"}).Reply()
	var made struct{ TargetID string }
	decode(t, reply.Result, &made)

	var order []string
	for _, message := range c.Transcript() {
		var event struct{ TargetInfo struct{ TargetID string } }
		switch {
		case message.ID == reply.ID:
			order = append(order, "reply")
		case message.Method == "Target.targetCreated" || message.Method == "Target.attachedToTarget":
			decode(t, message.Params, &event)
			if event.TargetInfo.TargetID == made.TargetID {
				order = append(order, message.Method)
			}
		}
	}
	want := []string{"Target.targetCreated", "Target.attachedToTarget", "reply"}
	if !slices.Equal(order, want) {
		t.Errorf("messages of a new tab: want %v, got %v", want, order)
	}
}

// A client that leaves takes its tabs along, and nothing of its neighbour's.
func TestLeavingClosesTabs(t *testing.T) {
	m := serve(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	a.NewPage("about:blank")
	stays := b.NewPage("about:blank")
	goes := a.NewPage("about:blank")
	browser := m.dialBrowser(t)

	a.Drop()
	eventually(t, 5*time.Second, "end of the leaver's tabs", func() bool {
		return !slices.Contains(pages(t, browser), goes.TargetID)
	})
	mustBeAlive(t, "the neighbour", stays)
	if got := pages(t, m.dial(t, "a")); len(got) != 0 {
		t.Errorf("tabs of a client that comes back: want none, got %v", got)
	}
}

// The newest connection of a client id wins; the old one is told why it ended.
func TestNewestConnectionWins(t *testing.T) {
	m := serve(t)
	older := m.dial(t, "a")
	older.NewPage("about:blank")
	newer := m.dial(t, "a")
	if code, text := older.CloseStatus(); code != 4409 {
		t.Errorf("close code of the older connection: want 4409, got %d %q", code, text)
	}
	mustBeAlive(t, "the newer connection", newer.NewPage("about:blank"))
}
