package main_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// What /json/version says, at the root and below a client's path.
func TestVersion(t *testing.T) {
	m := serve(t)
	c := m.dial(t, "a")
	own := c.NewPage("about:blank")
	hidden, _ := m.browserAddress(t)
	_, port, _ := strings.Cut(hidden, ":")
	store := regexp.MustCompile(`^t/[0-9a-f]{8}$`)
	anonymous := regexp.MustCompile(`^ws://` + regexp.QuoteMeta(m.addr) + `/devtools/browser/[A-Za-z0-9_-]{22}$`)
	for _, path := range []string{"/json/version", "/json/version/", "/client-a/json/version", "/client-a/json/version/"} {
		body := get(t, m.http(path))
		var version map[string]string
		decode(t, body, &version)
		for _, key := range []string{"Browser", "Protocol-Version", "User-Agent", "V8-Version", "WebKit-Version"} {
			if version[key] == "" {
				t.Errorf("%s: want %s in it, got %s", path, key, body)
			}
		}
		if !store.MatchString(version["Cdpmux-Store"]) {
			t.Errorf("%s: Cdpmux-Store: want %s, got %q", path, store, version["Cdpmux-Store"])
		}
		if strings.Contains(string(body), port) {
			t.Errorf("%s: want Chrome's port %s nowhere, got %s", path, port, body)
		}

		address := version["webSocketDebuggerUrl"]
		if strings.HasPrefix(path, "/client-a") {
			if want := m.ws("/client-a"); address != want && !strings.HasPrefix(address, want+"/") {
				t.Errorf("%s: webSocketDebuggerUrl: want the client's path %s kept, got %s", path, want, address)
			}
			continue
		}
		if !anonymous.MatchString(address) {
			t.Errorf("%s: webSocketDebuggerUrl: want %s, got %s", path, anonymous, address)
		}
		if got := pages(t, proxytest.Dial(t, address)); len(got) != 0 {
			t.Errorf("tabs of an anonymous client: want none, got %v", got)
		}
	}
	mustBeAlive(t, "the client", own)
}

// Every address that a client may be given leads to a view of its own.
func TestAddresses(t *testing.T) {
	m := serve(t)
	var all []*proxytest.Client
	for _, path := range []string{"/client-a", "/client-a-w2", "/client-" + strings.Repeat("x", 64), "/devtools/browser/b", "/devtools/browser", "/devtools/browser", "/", "/"} {
		c := proxytest.Dial(t, m.ws(path))
		c.NewPage("about:blank")
		all = append(all, c)
	}
	for _, c := range all {
		if got := pages(t, c); len(got) != 1 {
			t.Errorf("tabs of each client: want its one, got %v", got)
		}
	}
}

// Tabs made over HTTP: who made them, lists them, and nobody else.
func TestTabsOverHTTP(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	ofB := b.NewPage("about:blank")
	a.Call("", "Target.setDiscoverTargets", params{"discover": true})

	put := func(path string) string {
		t.Helper()
		status, body := request(t, http.MethodPut, m.http(path))
		if status != http.StatusOK {
			t.Fatalf("PUT %s: want 200, got %d %s", path, status, body)
		}
		var made target
		decode(t, body, &made)
		if want := m.ws("/"); made.Type != "page" || !strings.HasPrefix(made.WS, want) || !strings.Contains(made.WS, "/devtools/page/"+made.ID) {
			t.Errorf("PUT %s: want a page with its address below %s, got %s", path, want, body)
		}
		return made.ID
	}
	atRoot := put("/json/new?" + site.URL + "/plain")
	ofA := put("/client-a/json/new?" + site.URL + "/title?t=A")
	ofAway := put("/client-away/json/new")

	t.Run("lists", func(t *testing.T) {
		for path, want := range map[string]string{
			"/json/list": atRoot, "/json/list/": atRoot, "/json": atRoot,
			"/client-a/json/list": ofA, "/client-a/json": ofA,
			"/client-b/json/list":    ofB.TargetID,
			"/client-away/json/list": ofAway,
		} {
			if got := list(t, m.http(path)); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: want [%s], got %v", path, want, got)
			}
		}
		if got := pages(t, a); !slices.Equal(got, []string{ofA}) {
			t.Errorf("getTargets of a: want the tab made under its path, [%s], got %v", ofA, got)
		}
		a.Await(func(m proxytest.Msg) bool {
			return m.Is("", "Target.targetCreated") && strings.Contains(string(m.Params), ofA)
		})
		mustBeAlive(t, "a on its tab made over HTTP", a.Attach(ofA))
	})

	t.Run("foreign is unknown", func(t *testing.T) {
		for _, path := range []string{
			"/json/close/" + ofA, "/json/close/" + ofB.TargetID, "/client-a/json/close/" + ofB.TargetID, "/client-a/json/close/" + atRoot,
			"/json/activate/" + ofA, "/client-b/json/activate/" + ofA, "/json/close/" + unknownID, "/json/activate/" + unknownID,
		} {
			status, body := request(t, http.MethodGet, m.http(path))
			id := path[strings.LastIndex(path, "/")+1:]
			if want := "No such target id: " + id; status != http.StatusNotFound || strings.TrimSpace(string(body)) != want {
				t.Errorf("GET %s: want 404 %q, got %d %q", path, want, status, body)
			}
		}
	})

	t.Run("activate and close", func(t *testing.T) {
		for path, want := range map[string]string{
			"/json/activate/" + atRoot:       "Target activated",
			"/client-a/json/activate/" + ofA: "Target activated",
		} {
			if got := string(get(t, m.http(path))); strings.TrimSpace(got) != want {
				t.Errorf("GET %s: want %q, got %q", path, want, got)
			}
		}
		for _, each := range []struct{ base, id string }{{"", atRoot}, {"/client-a", ofA}, {"/client-away", ofAway}} {
			path := each.base + "/json/close/" + each.id
			if got := string(get(t, m.http(path))); strings.TrimSpace(got) != "Target is closing" {
				t.Errorf("GET %s: want %q, got %q", path, "Target is closing", got)
			}
			eventually(t, 5*time.Second, "empty list at "+each.base+"/json/list", func() bool {
				return len(list(t, m.http(each.base+"/json/list"))) == 0
			})
		}
		mustBeAlive(t, "b", ofB)
	})
	mustBeStrangers(t, a, b)
}

// Methods and paths answer as Chrome's do.
func TestDiscoveryAnswersLikeChrome(t *testing.T) {
	m := serve(t)
	m.dial(t, "a").NewPage("about:blank")
	browser, _ := m.browserAddress(t)
	for _, each := range []struct{ method, path string }{
		{http.MethodGet, "/json/"},
		{http.MethodGet, "/json/foo"},
		{http.MethodGet, "/json/new"},
		{http.MethodDelete, "/json/new"},
		{http.MethodPost, "/json/version"},
		{http.MethodHead, "/json/version"},
		{http.MethodGet, "/json/version?x"},
		{http.MethodGet, "/json/close/" + unknownID},
		{http.MethodGet, "/json/activate/" + unknownID},
		{http.MethodGet, "/json/protocol"},
	} {
		wantStatus, want := request(t, each.method, "http://"+browser+each.path)
		status, got := request(t, each.method, m.http(each.path))
		if status != wantStatus {
			t.Errorf("%s %s: want Chrome's %d %.200s, got %d %.200s", each.method, each.path, wantStatus, want, status, got)
			continue
		}
		if !strings.Contains(each.path, "version") && strings.TrimSpace(string(got)) != strings.TrimSpace(string(want)) {
			t.Errorf("%s %s: want Chrome's %.200q, got %.200q", each.method, each.path, want, got)
		}
	}
}
