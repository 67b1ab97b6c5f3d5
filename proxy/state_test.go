package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
	"cdpmux/routing"
)

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
}

// keepState has a server keep its state in a file, quickly.
func keepState(path string) func(*testServer) {
	return func(s *testServer) {
		s.cfg.StateFile, s.cfg.Grace, s.cfg.Attached = path, time.Hour, true
		s.limits.save = time.Millisecond
		s.restore()
	}
}

func tabsIn(t *testing.T, path string) (tabs []routing.TabState) {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	tabs, err = parseState(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return tabs
}

// A proxy that comes after a killed one finds whose the tabs are, and closes
// those of who stays away, and nobody else's.
func TestStateOutlivesTheProxy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.tabs.json")
	browser := proxytest.Start(t)
	var killed atomic.Bool
	reach := func(context.Context) (string, error) { return browser.URL(), nil }
	human := browser.OpenHuman("https://human.example/")

	first := startServer(t, func(s *testServer) {
		keepState(path)(s)
		s.address = func(ctx context.Context) (string, error) {
			if killed.Load() {
				return "", errors.New("killed")
			}
			return reach(ctx)
		}
	})
	a, b := proxytest.Dial(t, first.ws("/client-a")), proxytest.Dial(t, first.ws("/client-b"))
	nobody := proxytest.Dial(t, first.ws("/"))
	a1, a2, b1 := a.NewPage("about:blank"), a.NewPage("about:blank"), b.NewPage("about:blank")
	orphan := nobody.NewPage("about:blank")
	a1.Call("Page.enable", nil) // used last
	await(t, "the file", func() bool {
		tabs := tabsIn(t, path)
		return len(tabs) == 4 && tabs[3].ID == a1.TargetID
	})
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("state file: %v, %v; want 0600", fi.Mode(), err)
	}
	copied := filepath.Join(t.TempDir(), "killed.tabs.json") // as kill -9 leaves it
	text, _ := os.ReadFile(path)
	if err := os.WriteFile(copied, text, 0o600); err != nil {
		t.Fatal(err)
	}
	killed.Store(true)
	browser.Drop()

	second := startServer(t, func(s *testServer) {
		keepState(copied)(s)
		s.address = reach
		s.cfg.Grace = time.Hour
	})
	a = proxytest.Dial(t, second.ws("/client-a"))
	if got := pageIDs(t, a); len(got) != 2 || got[0] != a1.TargetID || got[1] != a2.TargetID {
		t.Errorf("tabs of a: %v, want the one used last first: %s, %s", got, a1.TargetID, a2.TargetID)
	}
	if got := pageIDs(t, proxytest.Dial(t, second.ws("/client-c"))); len(got) != 0 {
		t.Errorf("tabs of a newcomer: %v", got)
	}
	b = proxytest.Dial(t, second.ws("/client-b"))
	if got := pageIDs(t, b); len(got) != 1 || got[0] != b1.TargetID {
		t.Errorf("tabs of b: %v, want %s", got, b1.TargetID)
	}
	await(t, "end of the tab whose client cannot come back", func() bool {
		return !hasTarget(t, browser, orphan.TargetID)
	})
	if !hasTarget(t, browser, human) {
		t.Error("a human's tab was closed")
	}
}

// hasTarget looks past the proxy.
func hasTarget(t *testing.T, browser *proxytest.Browser, id string) bool {
	t.Helper()
	c := proxytest.Dial(t, browser.URL())
	defer c.Drop()
	for _, page := range pageIDs(t, c) {
		if page == id {
			return true
		}
	}
	return false
}

// A graceful end leaves nothing, unless it is to.
func TestStateAtTheEnd(t *testing.T) {
	for name, keep := range map[string]bool{"close": false, "keep": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "demo.tabs.json")
			s := startServer(t, func(s *testServer) { keepState(path)(s); s.cfg.KeepTabs = keep })
			a := proxytest.Dial(t, s.ws("/client-a"))
			page := a.NewPage("about:blank")
			await(t, "the file", func() bool { return len(tabsIn(t, path)) == 1 })
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Fatal(err)
			}
			if code, _ := a.CloseStatus(); code != 1001 {
				t.Errorf("closed with %d, want 1001", code)
			}
			if got := hasTarget(t, s.browser, page.TargetID); got != keep {
				t.Errorf("tab still there: %t, want %t", got, keep)
			}
			tabs := tabsIn(t, path)
			if keep && (len(tabs) != 1 || tabs[0].ID != page.TargetID || tabs[0].Until.IsZero()) || !keep && len(tabs) != 0 {
				t.Errorf("kept: %+v", tabs)
			}
		})
	}
}

// What makes no sense is set aside, and nobody's tab is touched.
func TestBrokenState(t *testing.T) {
	for name, text := range map[string]string{
		"cut off":         `{"version":1,"tabs":[{"id":"A`,
		"of the future":   `{"version":2,"tabs":[]}`,
		"no id":           `{"version":1,"tabs":[{"client":"a"}]}`,
		"no such client":  `{"version":1,"tabs":[{"id":"A","client":"../a"}]}`,
		"not JSON at all": "\x00\x01",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "demo.tabs.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := startServer(t, keepState(path))
			proxytest.Dial(t, s.ws("/client-a")).Call("", "Browser.getVersion", nil)
			aside, _ := filepath.Glob(path + ".broken-*Z")
			if len(aside) != 1 {
				t.Fatalf("set aside: %v", aside)
			}
			if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != text {
				t.Errorf("kept %q, %v", kept, err)
			}
		})
	}
}
