package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// The tabs of clients whose browser ended with nobody there to close them come
// back with Chrome's session restore: they are closed. A human's tab stays.
func TestRestoredTabsOfClientsAreClosed(t *testing.T) {
	t.Parallel()
	site := proxytest.StartSite(t)
	home := tempHome(t)
	m := serveAt(t, home, "--grace", "1s")
	c := m.dial(t, "a")
	for _, path := range []string{"/plain?own=1", "/plain?own=2", "/plain?both"} {
		c.NewPage("about:blank").Navigate(site.URL + path)
	}
	human := proxytest.Dial(t, m.browserURL(t))
	for _, path := range []string{"/plain?human", "/plain?both"} {
		human.Call("", "Target.createTarget", params{"url": site.URL + path, "newWindow": true})
	}
	want := []string{site.URL + "/plain?both", site.URL + "/plain?human"}
	pages := func(c *proxytest.Client) (urls []string) {
		var targets struct {
			TargetInfos []struct{ Type, URL string }
		}
		decode(t, c.Call("", "Target.getTargets", nil), &targets)
		for _, i := range targets.TargetInfos {
			if i.Type == "page" {
				urls = append(urls, i.URL)
			}
		}
		slices.Sort(urls)
		return urls
	}
	eventually(t, 20*time.Second, "pages of all", func() bool { return len(pages(human)) == 6 })
	eventually(t, 20*time.Second, "word of the tabs in the state directory", func() bool {
		text, _ := os.ReadFile(filepath.Join(home, "state", "t.tabs.json"))
		return bytes.Count(text, []byte(`"url":"`+site.URL)) == 3
	})
	human.Close()
	m.kill(t)
	eventually(t, 40*time.Second, "end of the browser by its keeper", func() bool { return !m.hasBrowser(t) })

	m = serveAt(t, home)
	if got := text(t, m.dial(t, "b").NewPage("about:blank").Eval(`"works"`)); got != "works" {
		t.Fatalf("after the restore: got %q", got)
	}
	human = proxytest.Dial(t, m.browserURL(t))
	defer human.Close()
	var got []string
	eventually(t, 20*time.Second, "end of the tabs of before, and of all empty ones but the client's and one", func() bool {
		got = pages(human)
		return len(got) <= len(want)+2
	})
	got = slices.DeleteFunc(got, func(url string) bool { return !strings.HasPrefix(url, site.URL) })
	if !slices.Equal(got, want) {
		t.Errorf("pages after the restore: got %v, want %v", got, want)
	}
}
