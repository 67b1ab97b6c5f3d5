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

// A neighbour's window hides no client's tab: all can take pictures. (A tab
// that its client's own other tab hides is left out: on a loaded machine
// Chromium 156 itself gives a white picture of it, or never answers.)
func TestScreenshotBesideNeighbours(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	var pages []proxytest.Page
	for _, id := range []string{"a", "b", "c"} {
		p := m.dial(t, id).NewPage("about:blank")
		p.Navigate(site.URL + "/plain")
		p.Eval("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
		pages = append(pages, p)
	}
	for _, p := range pages {
		within(t, patience, "screenshot", func() { mustShowSomething(t, p.Screenshot()) })
	}
}
