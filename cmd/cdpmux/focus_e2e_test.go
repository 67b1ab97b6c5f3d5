package main_test

import (
	"testing"

	"cdpmux/proxy/proxytest"
)

// A client that brings its tabs to the front hides nobody else's.
func TestActivationHidesNobodysTab(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	first, second := a.NewPage("about:blank"), a.NewPage("about:blank")
	ofB := b.NewPage("about:blank")
	ofB.Navigate(site.URL + "/plain")
	watchVisibility(ofB)
	for _, p := range []proxytest.Page{first, second, first} {
		a.Call("", "Target.activateTarget", params{"targetId": p.TargetID})
		p.Call("Target.activateTarget", params{"targetId": p.TargetID})
		p.Call("Page.bringToFront", nil)
		get(t, m.http("/client-a/json/activate/"+p.TargetID))
		mustHaveStayedVisible(t, "after a brought its tab to the front", ofB)
	}
	if got := text(t, first.Eval("document.visibilityState")); got != "visible" {
		t.Errorf("visibility of the tab in front: want visible, got %s", got)
	}
}

// A client can take a picture of its background tab. Of one that was hidden
// before it was painted Chromium itself now and then gives a white one (1 of 40
// without a proxy, on a loaded machine).
func TestScreenshotOfBackgroundTab(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	c := m.dial(t, "a")
	painted := func() proxytest.Page {
		p := c.NewPage("about:blank")
		p.Navigate(site.URL + "/plain")
		p.Eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
		return p
	}
	first, second := painted(), painted()
	if windowOf(t, c, first.TargetID) != windowOf(t, c, second.TargetID) {
		t.Fatal("windows of a client's two tabs: want one, so that one tab hides the other")
	}
	for _, p := range []proxytest.Page{first, second} {
		within(t, patience, "screenshot", func() { mustShowSomething(t, p.Screenshot()) })
	}
}
