package main_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// cdpmux status shows clients, tabs and what became of their navigations.
func TestStatusCommand(t *testing.T) {
	m := serve(t, grace...)
	site := proxytest.StartSite(t)
	if status, _ := request(t, "GET", m.http("/status")); status != 401 {
		t.Errorf("GET /status without the token: want 401, got %d", status)
	}
	c := m.dial(t, "a")
	loaded, loading, failed, crashed := c.NewPage("about:blank"), c.NewPage("about:blank"), c.NewPage("about:blank"), c.NewPage("about:blank")
	loaded.Navigate(site.URL + "/plain")
	c.Go(loading.Session, "Page.navigate", params{"url": site.URL + "/slow?ms=60000"})
	failed.Call("Page.navigate", params{"url": "http://127.0.0.1:1/"})
	c.Go(crashed.Session, "Page.crash", nil)
	c.AwaitEvent(crashed.Session, "Inspector.targetCrashed")

	status := func(more ...string) string {
		p := start(t, raceBinary(t), append([]string{"status", "--store", "t", "--home", m.home}, more...)...)
		if code := p.wait(t, 10*time.Second); code != 0 {
			t.Fatalf("exit code: want 0, got %d; stderr: %s", code, &p.stderr)
		}
		return p.stdout.String()
	}
	want := map[string]string{loaded.TargetID: "ready", loading.TargetID: "navigating", failed.TargetID: "failed net::ERR_UNSAFE_PORT", crashed.TargetID: "crashed"}
	got := map[string]string{}
	eventually(t, 5*time.Second, "states of the tabs", func() bool {
		var st struct {
			Clients []struct {
				ID, State string
				Tabs      []struct{ ID, State, Error string }
			}
		}
		if err := json.Unmarshal([]byte(status("--json")), &st); err != nil {
			t.Fatal(err)
		}
		for _, tab := range st.Clients[0].Tabs {
			got[tab.ID] = strings.TrimSpace(tab.State + " " + tab.Error)
		}
		for id, state := range want {
			if got[id] != state {
				return false
			}
		}
		return true
	})
	if t.Failed() {
		t.Logf("states: want %v, got %v", want, got)
	}
	for _, word := range []string{"browser ready", "a ", "connected", loaded.TargetID, site.URL + "/plain", "net::ERR_"} {
		if table := status(); !strings.Contains(table, word) {
			t.Errorf("table: want %q in it, got\n%s", word, table)
		}
	}
	mustRefuse(t, 1, []string{"never served"}, "status", "--store", "other", "--home", m.home)
}
