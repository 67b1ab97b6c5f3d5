package main_test

import (
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// A client in page mode gets every popup of its pages, paused until its init
// script is in, whatever its neighbours auto-attach.
func TestPopupsInPageMode(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	waits, runs := m.dial(t, "waits"), m.dial(t, "runs")
	waits.NewPage(site.Other + "/title?t=waits")
	runs.NewPage(site.Other + "/title?t=runs")
	autoAttach(waits, "", true)
	autoAttach(runs, "", false)

	c := m.dial(t, "a")
	autoAttach(c, "", true)
	opener := beginPage(t, c)
	frame := loadOpener(t, c, opener, site)
	rounds := scaled(t, 10)

	for _, from := range []struct{ name, session string }{{"page", opener.Session}, {"cross-site iframe", frame}} {
		for _, kind := range []string{"open", "noopener", "blank", "form"} {
			t.Run(kind+" from the "+from.name, func(t *testing.T) {
				for range rounds {
					opening := gesture(c, from.session, "document.getElementById('"+kind+"').click()")
					popup := awaitAttached(t, c, "", "page")
					if !popup.WaitingForDebugger || popup.TargetInfo.OpenerID != opener.TargetID {
						t.Errorf("attached to popup: want it waiting, with opener %s, got %+v", opener.TargetID, popup)
					}
					begin(c, popup.SessionID)
					opening.Wait()
					if !initialised(t, c, popup.SessionID, "/plain") {
						t.Error("init script of the popup: want it before the document, got none")
					}
					closePopup(t, c, popup)
				}
			})
		}
	}

	// Whether an init script comes in time here is a race of Chrome's own.
	inPage := centre(t, c, opener.Session, "#link")
	inFrame, corner := centre(t, c, frame, "#link"), centre(t, c, opener.Session, "iframe")
	size := point{300, 150} // of an iframe that names none
	inFrame.X += corner.X - size.X/2
	inFrame.Y += corner.Y - size.Y/2
	const ctrl, shift = 2, 8
	for _, click := range []struct {
		name      string
		at        point
		button    string
		modifiers int
	}{
		{"Ctrl-click", inPage, "left", ctrl},
		{"Shift-click", inPage, "left", shift},
		{"middle click", inPage, "middle", 0},
		{"Ctrl-click in the iframe", inFrame, "left", ctrl},
	} {
		t.Run(click.name, func(t *testing.T) {
			for range rounds {
				for _, event := range []string{"mousePressed", "mouseReleased"} {
					c.Go(opener.Session, "Input.dispatchMouseEvent", params{
						"type": event, "x": click.at.X, "y": click.at.Y, "button": click.button, "modifiers": click.modifiers, "clickCount": 1,
					})
				}
				tab := awaitAttached(t, c, "", "page")
				begin(c, tab.SessionID)
				initialised(t, c, tab.SessionID, "/plain")
				closePopup(t, c, tab)
			}
		})
	}

	for _, neighbour := range []*proxytest.Client{waits, runs} {
		if got := pages(t, neighbour); len(got) != 1 {
			t.Errorf("tabs of a neighbour: want its one, got %v", got)
		}
		mustBeStrangers(t, c, neighbour)
	}
}

// closePopup closes a tab and waits until its session is gone.
func closePopup(t *testing.T, c *proxytest.Client, popup attached) {
	t.Helper()
	c.Call("", "Target.closeTarget", params{"targetId": popup.TargetInfo.TargetID})
	c.Await(func(m proxytest.Msg) bool {
		return m.Is("", "Target.detachedFromTarget") && m.Param("sessionId") == popup.SessionID
	})
}

// Any auto-attach at browser level blocks window.open in Chrome. Behind the
// proxy it blocks nobody's but its own client's.
func TestWindowOpenNeverBlocks(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	plain := m.dial(t, "plain") // never auto-attaches
	opener := plain.NewPage("about:blank")
	opener.Navigate(site.URL + "/plain")
	for _, neighbour := range []struct {
		name   string
		wait   bool
		filter []params
	}{
		{"wait", true, nil},
		{"no wait", false, nil},
		{"service workers only", false, []params{{"type": "service_worker"}, {"exclude": true}}},
		{"tabs", true, tabMode},
	} {
		t.Run("beside "+neighbour.name, func(t *testing.T) {
			autoAttach(m.dial(t, "neighbour"), "", neighbour.wait, neighbour.filter...)
			for range scaled(t, 20) {
				within(t, 2*time.Second, "window.open", func() {
					if reply := gesture(plain, opener.Session, "popup = window.open('/title?t=popup'), !!popup").Reply(); reply.Err() != nil {
						t.Fatalf("window.open: %s", reply)
					}
				})
				opener.Eval("new Promise(done => { const wait = () => popup.document.title == 'popup' ? done(0) : setTimeout(wait, 10); wait() })")
				opener.Eval("popup.close(), 0")
			}
		})
	}
}

// A client in tab mode gets the tab and its page together, and can run both.
func TestPopupsInTabMode(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	neighbour := m.dial(t, "neighbour")
	neighbour.NewPage(site.Other + "/title?t=neighbour")
	autoAttach(neighbour, "", true)

	c := m.dial(t, "a")
	discover(c)
	autoAttach(c, "", true, tabMode...)
	c.Go("", "Target.createTarget", params{"url": "about:blank"})
	_, opener := beginTab(t, c)
	loadOpener(t, c, opener, site)
	for _, each := range []struct {
		kind string
		init bool // a noopener popup loses its init scripts in tab mode, in Chrome, too
	}{{"open", true}, {"noopener", false}, {"blank", false}, {"form", false}} {
		t.Run(each.kind, func(t *testing.T) {
			for range scaled(t, 10) {
				opening := gesture(c, opener.Session, "document.getElementById('"+each.kind+"').click()")
				tab, popup := beginTab(t, c)
				opening.Wait()
				if early := initialised(t, c, popup.Session, "/plain"); each.init && !early {
					t.Error("init script of the popup: want it before the document, got none")
				}
				for _, id := range []string{tab.TargetInfo.TargetID, popup.TargetID} {
					c.Await(func(m proxytest.Msg) bool {
						return m.Is("", "Target.targetCreated") && targetOf(t, m) == id
					})
				}
				popup.Close()
				for _, id := range []string{tab.TargetInfo.TargetID, popup.TargetID} {
					c.Await(func(m proxytest.Msg) bool {
						return m.Is("", "Target.targetDestroyed") && m.Param("targetId") == id
					})
				}
			}
		})
	}
	mustBeStrangers(t, c, neighbour)
}

// targetOf is the target that a Target event is about.
func targetOf(t *testing.T, m proxytest.Msg) string {
	t.Helper()
	var event struct{ TargetInfo struct{ TargetID string } }
	decode(t, m.Params, &event)
	return event.TargetInfo.TargetID
}
