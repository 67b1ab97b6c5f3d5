package proxy

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/admin"
	"cdpmux/proxy/proxytest"
)

// getStatus asks as an operator does.
func getStatus(t *testing.T, s *testServer, authorization string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+s.addr+"/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

func TestStatus(t *testing.T) {
	token := strings.Repeat("ab", 32)
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken, s.cfg.Grace = token, time.Hour })
	for _, given := range []string{"", "Bearer", "Bearer ", "Bearer " + token[1:], "Basic " + token, token + "x"} {
		if status, body := getStatus(t, s, given); status != 401 || strings.Contains(string(body), "store") && strings.Contains(string(body), "clients\"") {
			t.Errorf("with %q: HTTP %d %s", given, status, body)
		}
	}
	ask := func() (st admin.Status) {
		t.Helper()
		status, body := getStatus(t, s, "Bearer "+token)
		if status != 200 {
			t.Fatalf("HTTP %d %s", status, body)
		}
		if err := json.Unmarshal(body, &st); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		return st
	}
	if st := ask(); st.Browser.State != "stopped" || s.starts.Load() != 0 {
		t.Errorf("at first: %+v after %d starts; want it stopped, and left so", st.Browser, s.starts.Load())
	}

	a, b := proxytest.Dial(t, s.ws("/client-1a2b3c4d5e-w2")), proxytest.Dial(t, s.ws("/client-b"))
	first, second := a.NewPage("https://one.example/"), a.NewPage("https://two.example/")
	b.NewPage("about:blank")
	first.Call("Page.enable", nil)
	s.browser.Fault("Storage.getCookies", proxytest.Fault{Ignore: true})
	a.Go("", "Storage.getCookies", nil)
	s.browser.AwaitCommand(func(cmd proxytest.Command) bool { return cmd.Method == "Storage.getCookies" })
	b.Close()
	s.browser.Crash(second.TargetID)
	a.AwaitEvent(second.Session, "Inspector.targetCrashed")
	await(t, "end of b", func() bool { return s.Status().CloseReasons["client_left"] == 1 })
	st := ask()
	if st.Store != "demo/1a2b3c4d" || st.Browser.State != "ready" || !strings.Contains(st.Browser.Product, "Chrome/") {
		t.Errorf("store and browser: %+v", st)
	}
	if len(st.Clients) != 2 {
		t.Fatalf("clients: %+v", st.Clients)
	}
	ca, cb := st.Clients[0], st.Clients[1]
	if ca.ID != "1a2b3c4d5e-w2" || ca.Short != "1a2b3c4d-w2" || ca.State != "connected" || ca.Connections != 1 || ca.Pending != 1 || ca.Sessions != 2 || !ca.Until.IsZero() {
		t.Errorf("the connected client: %+v", ca)
	}
	var urls, states []string
	for _, tab := range ca.Tabs {
		urls, states = append(urls, tab.URL), append(states, tab.State)
	}
	if !slices.Equal(urls, []string{"https://one.example/", "https://two.example/"}) || !slices.Equal(states, []string{"ready", "crashed"}) {
		t.Errorf("tabs, the one used last first: %v %v", urls, states)
	}
	if left := time.Until(cb.Until); cb.ID != "b" || cb.State != "grace" || left < 59*time.Minute || left > time.Hour || len(cb.Tabs) != 1 {
		t.Errorf("the client in grace: %+v", cb)
	}
	if st.Counts.Conns != 1 || st.Counts.Requests < 1 || st.Counts.Targets < 3 {
		t.Errorf("counts: %+v", st.Counts)
	}
}

// For how long tabs wait depends on how their client was named.
func TestGrace(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.Grace = time.Hour })
	_, _, body := s.get(t, "/json/version")
	var version struct{ WebSocketDebuggerURL string }
	decode(t, []byte(body), &version)
	_, given, _ := strings.Cut(version.WebSocketDebuggerURL, s.addr)
	for path, want := range map[string]time.Duration{
		"/client-a":           time.Hour,
		"/devtools/browser/b": time.Hour,
		"/":                   0,
		"/devtools/browser":   0,
		"/devtools/browser/":  0,
		given:                 30 * time.Second,
	} {
		t.Run(path, func(t *testing.T) {
			c := proxytest.Dial(t, s.ws(path))
			page := c.NewPage("about:blank")
			c.Drop()
			await(t, "end", func() bool { return s.Stats().Conns == 0 })
			if want == 0 {
				await(t, "end of the tab", func() bool { return !hasTarget(t, s.browser, page.TargetID) })
				return
			}
			for _, cl := range s.Status().Clients {
				for _, tab := range cl.Tabs {
					if left := time.Until(cl.Until); tab.ID == page.TargetID && (left > want || left < want-5*time.Second) {
						t.Errorf("left: %s, want %s", left, want)
					}
				}
			}
			again := proxytest.Dial(t, s.ws(path))
			if got := pageIDs(t, again); len(got) != 1 || got[0] != page.TargetID {
				t.Errorf("tabs of who comes back: %v, want %s", got, page.TargetID)
			}
			again.Call("", "Browser.close", nil)
		})
	}
}
