package main_test

import (
	"slices"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// patience is how long a client may take for anything beside a silent one.
const patience = 2 * time.Second

// A neighbour that asks for pauses and then neither reads nor runs anything
// holds up nobody but itself; nor does one that is gone.
func TestSilentNeighbour(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	rounds := scaled(t, 20)
	b := m.dial(t, "b")
	ofB := b.NewPage("about:blank")
	ofB.Navigate(site.URL + "/plain")

	for _, each := range []struct {
		name string
		hold func(t *testing.T, a *proxytest.Client)
	}{
		{"nothing", func(*testing.T, *proxytest.Client) {}},
		{"its own popup", func(t *testing.T, a *proxytest.Client) {
			p := beginPage(t, a)
			p.Navigate(site.URL + "/plain")
			gesture(a, p.Session, "window.open('/plain')")
			awaitAttached(t, a, "", "page")
		}},
		{"its own tab", func(t *testing.T, a *proxytest.Client) {
			a.Call("", "Target.createTarget", params{"url": "about:blank"})
			tab := awaitAttached(t, a, "", "page")
			a.Go(tab.SessionID, "Page.navigate", params{"url": site.URL + "/plain"})
		}},
		{"service workers of the origin", func(t *testing.T, a *proxytest.Client) {
			p := beginPage(t, a)
			p.Navigate(site.URL + "/plain")
		}},
		{"a tab in tab mode", func(t *testing.T, a *proxytest.Client) {
			autoAttachOff(a)
			autoAttach(a, "", true, tabMode...)
			a.Call("", "Target.createTarget", params{"url": "about:blank"})
			awaitAttached(t, a, "", "tab")
		}},
	} {
		for _, end := range []string{"silent", "dropped"} {
			t.Run(each.name+" held by a client that is "+end, func(t *testing.T) {
				for range rounds {
					a := m.dial(t, "silent")
					autoAttach(a, "", true)
					each.hold(t, a)
					if end == "dropped" {
						a.Drop()
					}
					work(t, b, ofB, site)
				}
			})
		}
	}
	mustBeAlive(t, "the neighbour", ofB)
}

func autoAttachOff(c *proxytest.Client) {
	c.Call("", "Target.setAutoAttach", params{"autoAttach": false, "waitForDebuggerOnStart": false, "flatten": true})
}

// work is what the others must be able to do at any time.
func work(t *testing.T, c *proxytest.Client, p proxytest.Page, site *proxytest.Site) {
	t.Helper()
	var tab proxytest.Page
	within(t, patience, "createTarget", func() { tab = c.NewPage("about:blank") })
	within(t, patience, "navigate", func() { tab.Navigate(site.URL + "/plain") })
	tab.Close()
	within(t, patience, "registration of a service worker", func() { registerWorker(t, p) })
}

// registerWorker registers a service worker for a scope that has none, waits
// until it works, and unregisters it again.
func registerWorker(t *testing.T, p proxytest.Page) {
	t.Helper()
	state := text(t, p.Eval(`(async () => {
		const registration = await navigator.serviceWorker.register("/service.js", {scope: "/" + Math.random() + "/"});
		const worker = registration.installing || registration.waiting || registration.active;
		await new Promise(done => {
			const look = () => worker.state == "activated" && done();
			worker.addEventListener("statechange", look);
			look();
		});
		await registration.unregister();
		return worker.state;
	})()`))
	if state != "activated" && state != "redundant" {
		t.Errorf("state of the service worker: want it activated, got %s", state)
	}
}

// A client that comes back finds the popup that it had left paused running.
func TestPausedPopupOutlivesItsDriver(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a := m.dial(t, "a")
	autoAttach(a, "", true)
	p := beginPage(t, a)
	p.Navigate(site.URL + "/plain")
	gesture(a, p.Session, "window.popup = window.open('/title?t=popup')")
	awaitAttached(t, a, "", "page")

	again := m.dial(t, "a") // takes over
	p = again.Attach(p.TargetID)
	eventually(t, patience, "title of the popup at its opener", func() bool {
		return string(p.Eval("window.popup?.document.title")) == `"popup"`
	})
}

// Service and shared workers are seen at the root by each client with a page
// of their origin, and by no other; a dedicated one through its page alone.
func TestWorkersAreSeenByOrigin(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	dial := func(id, origin string) (*proxytest.Client, proxytest.Page) {
		c := m.dial(t, id)
		discover(c)
		autoAttach(c, "", false)
		c.Call("", "Target.createTarget", params{"url": "about:blank"})
		tab := awaitAttached(t, c, "", "page")
		p := c.On(tab.TargetInfo.TargetID, tab.SessionID)
		p.Call("Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true})
		p.Navigate(origin + "/plain")
		return c, p
	}
	a, ofA := dial("a", site.URL)
	b, _ := dial("b", site.URL)
	stranger, ofStranger := dial("stranger", site.Other)

	for _, each := range []struct{ kind, script, start string }{
		{"service_worker", "/service.js", `navigator.serviceWorker.register("/service.js").then(() => 0)`},
		{"shared_worker", "/shared.js", `window.shared = new SharedWorker("/shared.js"), new Promise(done => { shared.port.onmessage = () => done(0) })`},
	} {
		t.Run(each.kind, func(t *testing.T) {
			ofA.Eval(each.start)
			for _, c := range []*proxytest.Client{a, b} {
				if got := awaitAttached(t, c, "", each.kind); got.TargetInfo.URL != site.URL+each.script && got.TargetInfo.URL != "" {
					t.Errorf("attached to %s at the root: want %s, got %+v", each.kind, each.script, got)
				}
				if got := typesSeen(t, c); !slices.Contains(got, each.kind) {
					t.Errorf("types in getTargets: want %s among them, got %v", each.kind, got)
				}
			}
			if got := typesSeen(t, stranger); slices.Contains(got, each.kind) {
				t.Errorf("types in getTargets of a client with another origin: want no %s, got %v", each.kind, got)
			}
		})
	}

	t.Run("worker", func(t *testing.T) {
		ofA.Navigate(site.URL + "/worker")
		awaitAttached(t, a, ofA.Session, "worker")
		settle(b)
		for _, c := range []*proxytest.Client{b, stranger} {
			if got := typesSeen(t, c); slices.Contains(got, "worker") {
				t.Errorf("types in getTargets of a neighbour: want no worker, got %v", got)
			}
		}
		for _, c := range []*proxytest.Client{a, b, stranger} {
			for _, message := range c.Transcript() {
				if message.Is("", "Target.attachedToTarget") && typeOf(t, message) == "worker" {
					t.Errorf("attached at a root to a dedicated worker: %s", message)
				}
			}
		}
	})

	// The stranger becomes a neighbour.
	t.Run("a page that comes to the origin", func(t *testing.T) {
		ofStranger.Navigate(site.URL + "/plain")
		awaitAttached(t, stranger, "", "service_worker")
	})
}

// typesSeen are the types of the targets that a client sees, once each.
func typesSeen(t *testing.T, c *proxytest.Client) []string {
	t.Helper()
	var types []string
	for _, each := range targets(t, c, everything) {
		types = append(types, each.Type)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// typeOf is the type of the target that a Target event is about.
func typeOf(t *testing.T, m proxytest.Msg) string {
	t.Helper()
	var event struct{ TargetInfo struct{ Type string } }
	decode(t, m.Params, &event)
	return event.TargetInfo.Type
}

// A service worker that one client's page session holds runs as soon as
// another client has a page of its origin; who is alone holds it as in Chrome.
func TestHeldWorkerIsTheClientsOwn(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	c := m.dial(t, "a")
	p := c.NewPage("about:blank")
	p.Call("Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
	p.Navigate(site.URL + "/plain")
	registered := c.Go(p.Session, "Runtime.evaluate", params{
		"expression": `navigator.serviceWorker.register("/service.js").then(() => 0)`, "awaitPromise": true,
	})
	worker := awaitAttached(t, c, p.Session, "service_worker")
	if !worker.WaitingForDebugger {
		t.Errorf("attached to the service worker: want it waiting, got %+v", worker)
	}
	if got := string(c.Call(worker.SessionID, "Runtime.runIfWaitingForDebugger", nil)); got != "{}" {
		t.Errorf("run of the service worker: want {}, got %s", got)
	}
	if reply := registered.Reply(); reply.Err() != nil {
		t.Errorf("registration: %s", reply)
	}
}
