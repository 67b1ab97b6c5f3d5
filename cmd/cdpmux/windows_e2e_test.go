package main_test

import (
	"fmt"
	"testing"

	"cdpmux/proxy/proxytest"
)

// watchVisibility counts in the page how often its visibility changes.
func watchVisibility(p proxytest.Page) {
	p.Eval("window.changes = 0, document.addEventListener('visibilitychange', () => changes++), 0")
}

// mustHaveStayedVisible checks that the page never was hidden, and still paints.
func mustHaveStayedVisible(t *testing.T, when string, p proxytest.Page) {
	t.Helper()
	// Two frames: the answer to a change that was already under way is awaited.
	got := text(t, p.Eval(`new Promise(done => {
		const state = () => document.visibilityState + " " + changes;
		requestAnimationFrame(() => requestAnimationFrame(() => done(state())));
		setTimeout(() => done(state() + ", no frames within 3 s"), 3000);
	})`))
	if got != "visible 0" {
		t.Errorf("visibility and its changes %s: want %q, got %q", when, "visible 0", got)
	}
}

// One client's new tab never hides another's: a hidden tab paints no frames,
// and its screenshots hang.
func TestNewTabsHideNobodysTab(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	ofB := b.NewPage(site.URL + "/plain")
	ofB.Navigate(site.URL + "/plain")
	watchVisibility(ofB)

	for round := range 3 {
		a.NewPage("about:blank")
		mustHaveStayedVisible(t, fmt.Sprintf("after tab %d of a", round+1), ofB)
	}

	// A tab that is gone is no reason to go into whatever window is left.
	for _, each := range pages(t, a) {
		a.Go("", "Target.closeTarget", params{"targetId": each})
	}
	a.NewPage("about:blank")
	mustHaveStayedVisible(t, "after a closed all its tabs and opened one more", ofB)

	// The harness opens its tabs in the background.
	harness := m.dial(t, "harness")
	ofA := a.NewPage("about:blank")
	watchVisibility(ofA)
	var made struct{ TargetID string }
	decode(t, harness.Call("", "Target.createTarget", params{"url": "about:blank", "background": true}), &made)
	ofHarness := harness.Attach(made.TargetID)
	watchVisibility(ofHarness)
	mustHaveStayedVisible(t, "of b after a background tab of another client", ofB)
	mustHaveStayedVisible(t, "of a after a background tab of another client", ofA)

	// And nobody's next tab opens before theirs.
	b.NewPage("about:blank")
	mustHaveStayedVisible(t, "of a after a new tab of b", ofA)
	mustHaveStayedVisible(t, "of the background tab after a new tab of b", ofHarness)
	ofHarness.Navigate(site.URL + "/plain")
	mustShowSomething(t, ofHarness.Screenshot())
}
