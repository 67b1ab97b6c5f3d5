package main_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// A prerendered page takes its tab's place, as Puppeteer follows it: through
// the tab's session. Puppeteer gives itself 100 ms from the end of the old
// page's session to its last answer, which is what is measured here.
func TestPrerenderActivation(t *testing.T) {
	m := serveBinary(t, plainBinary(t), tempHome(t)) // as users run it: times are measured
	site := proxytest.StartSite(t)
	c := m.dial(t, "a")
	discover(c)
	autoAttach(c, "", true, tabMode...)
	beBusy(t, m, site)

	var took []time.Duration
	for range scaled(t, 20) {
		c.Go("", "Target.createTarget", params{"url": "about:blank"})
		tab, old := beginTab(t, c)
		old.Navigate(site.URL + "/prerender")
		prerendered := awaitAttached(t, c, tab.SessionID, "page")
		if prerendered.TargetInfo.Subtype != "prerender" {
			t.Fatalf("second page of the tab: want it prerendered, got %+v", prerendered)
		}
		begin(c, prerendered.SessionID)
		initialised(t, c, prerendered.SessionID, "/plain")

		gesture(c, old.Session, "document.getElementById('link').click()")
		c.Await(func(m proxytest.Msg) bool {
			return m.Is(tab.SessionID, "Target.detachedFromTarget") && m.Param("sessionId") == old.Session
		})
		begun := time.Now()
		c.Await(func(m proxytest.Msg) bool { // Puppeteer swaps on this one
			var event struct {
				TargetInfo struct{ TargetID, Subtype string }
			}
			if !m.Is("", "Target.targetInfoChanged") {
				return false
			}
			decode(t, m.Params, &event)
			return event.TargetInfo.TargetID == prerendered.TargetInfo.TargetID && event.TargetInfo.Subtype == ""
		})
		p := c.On(prerendered.TargetInfo.TargetID, prerendered.SessionID)
		seeTo(t, c, p)
		took = append(took, time.Since(begun))

		if got := string(p.Eval("[document.prerendering, performance.getEntriesByType('navigation')[0].activationStart > 0].join()")); got != `"false,true"` {
			t.Errorf("prerendering now, activated once: want false,true, got %s", got)
		}
		p.Close()
	}
	slices.Sort(took)
	t.Logf("from the old page's end to the last answer of the new one: median %v, longest %v of %d", took[len(took)/2], slices.Max(took), len(took))
}

// Puppeteer itself follows each activation for which the machine is fast
// enough: directly on Chrome it loses those that take longer, too. So beside
// neighbours the number is told, and only other errors count.
func TestPuppeteerFollowsPrerender(t *testing.T) {
	m := serveBinary(t, plainBinary(t), tempHome(t))
	site := proxytest.StartSite(t)
	follow := func(attempts int) int {
		cmd := exec.CommandContext(t.Context(), "node", "prerender.mjs", m.ws("/client-puppeteer"), site.URL, strconv.Itoa(attempts))
		cmd.Dir = filepath.Join(clientsDir(t), "puppeteer")
		out, err := cmd.CombinedOutput()
		followed, late := strings.Count(string(out), "followed\n"), strings.Count(string(out), "too late\n")
		if err != nil || followed+late != attempts {
			t.Errorf("activations that Puppeteer followed: want %d, got %d and %d too late (%v):\n%s", attempts, followed, late, err, out)
		}
		return followed
	}
	const quiet = 10
	alone := follow(quiet)
	t.Logf("activations that Puppeteer followed alone: %d of %d", alone, quiet)
	if alone == 0 {
		t.Error("activations that Puppeteer followed alone: want some, got none")
	}
	beBusy(t, m, site)
	attempts := scaled(t, 20)
	t.Logf("activations that Puppeteer followed beside three busy neighbours: %d of %d", follow(attempts), attempts)
}

// seeTo is what Puppeteer sends to a page that it swaps in.
func seeTo(t *testing.T, c *proxytest.Client, p proxytest.Page) {
	t.Helper()
	var open []*proxytest.Pending
	ask := func(method string, params any) { open = append(open, c.Go(p.Session, method, params)) }
	ask("Network.enable", nil)
	ask("Page.enable", nil)
	ask("Page.getFrameTree", nil)
	ask("Page.setLifecycleEventsEnabled", params{"enabled": true})
	ask("Runtime.enable", nil)
	for _, each := range open {
		if reply := each.Reply(); reply.Err() != nil {
			t.Errorf("%s of the activated page: %s", each.Method, reply)
		}
	}
	p.Call("Page.addScriptToEvaluateOnNewDocument", params{"source": "", "worldName": "utility"})
	p.Call("Page.createIsolatedWorld", params{"frameId": p.TargetID, "worldName": "utility"})
}

// beBusy keeps three neighbours at work until the test ends: one that holds
// and runs its own popups, one that attaches everything and is silent, and one
// that opens and closes tabs.
func beBusy(t *testing.T, m *mux, site *proxytest.Site) {
	t.Helper()
	holder, silent, churner := m.dial(t, "holder"), m.dial(t, "silent"), m.dial(t, "churner")
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { // before the clients are dropped
		cancel()
		all.Wait()
	})

	discover(silent)
	autoAttach(silent, "", true)
	autoAttach(holder, "", true)
	opener := beginPage(t, holder)
	opener.Navigate(site.Other + "/popup")
	all.Go(func() {
		for ctx.Err() == nil {
			opening := gesture(holder, opener.Session, "document.getElementById('open').click()")
			popup := awaitAttached(t, holder, "", "page")
			begin(holder, popup.SessionID)
			opening.Wait()
			if !initialised(t, holder, popup.SessionID, "/plain") {
				t.Error("a neighbour's popup: want its init script before the document, got none")
			}
			closePopup(t, holder, popup)
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			tab := churner.NewPage("about:blank")
			tab.Navigate(site.Other + "/plain")
			tab.Close()
		}
	})
}
