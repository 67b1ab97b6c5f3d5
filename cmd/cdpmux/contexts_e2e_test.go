package main_test

import (
	"slices"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// contexts are the browser contexts that somebody is shown.
type contexts struct {
	BrowserContextIDs       []string
	DefaultBrowserContextID string
}

func contextsOf(t *testing.T, c *proxytest.Client) (seen contexts) {
	t.Helper()
	decode(t, c.Call("", "Target.getBrowserContexts", nil), &seen)
	return seen
}

// A browser context is its client's: what is in it, too, and it ends with it.
func TestContexts(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	b.NewPage("about:blank")
	browser := m.dialBrowser(t)
	kept, disposed := newContext(t, a, false), newContext(t, a, true)

	seen, all := contextsOf(t, a), contextsOf(t, browser)
	want := []string{kept, disposed}
	slices.Sort(want)
	slices.Sort(seen.BrowserContextIDs)
	if !slices.Equal(seen.BrowserContextIDs, want) || seen.DefaultBrowserContextID != all.DefaultBrowserContextID {
		t.Errorf("contexts of a: want its %v and the default one, %s, got %+v", want, all.DefaultBrowserContextID, seen)
	}
	if seen := contextsOf(t, b); len(seen.BrowserContextIDs) != 0 || seen.DefaultBrowserContextID != all.DefaultBrowserContextID {
		t.Errorf("contexts of b: want none but the default one, %s, got %+v", all.DefaultBrowserContextID, seen)
	}

	var inside []string
	for _, context := range []string{kept, disposed} {
		var made struct{ TargetID string }
		decode(t, a.Call("", "Target.createTarget", params{"url": "about:blank", "browserContextId": context}), &made)
		p := a.Attach(made.TargetID)
		p.Navigate(site.URL + "/popup")
		gesture(a, p.Session, "document.getElementById('noopener').click()").Wait()
		inside = append(inside, made.TargetID)
	}
	eventually(t, 5*time.Second, "two pages and their popups at a", func() bool { return len(pages(t, a)) == 4 })
	for _, id := range inside {
		if got := pages(t, a); !slices.Contains(got, id) {
			t.Errorf("pages of a: want %s among them, got %v", id, got)
		}
	}
	if got := pages(t, b); len(got) != 1 {
		t.Errorf("pages of b: want its one, got %v", got)
	}

	t.Run("disposed by its client", func(t *testing.T) {
		context := newContext(t, a, false)
		a.Call("", "Target.createTarget", params{"url": "about:blank", "browserContextId": context})
		a.Call("", "Target.disposeBrowserContext", params{"browserContextId": context})
		eventually(t, 5*time.Second, "end of its page", func() bool { return len(pages(t, a)) == 4 })
		if seen := contextsOf(t, browser); slices.Contains(seen.BrowserContextIDs, context) {
			t.Errorf("contexts of the browser: want %s gone, got %v", context, seen)
		}
	})

	t.Run("left by its client", func(t *testing.T) {
		mustBeStrangers(t, a, b)
		a.Drop()
		eventually(t, 5*time.Second, "end of the leaver's contexts and pages", func() bool {
			left := contextsOf(t, browser).BrowserContextIDs
			return !slices.Contains(left, kept) && !slices.Contains(left, disposed) &&
				!slices.ContainsFunc(pages(t, browser), func(id string) bool { return slices.Contains(inside, id) })
		})
	})
}
