package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"cdpmux/proxy/admin"
	"cdpmux/proxy/proxytest"
	"cdpmux/routing"
)

// answered is a response that was read to its end.
type answered struct {
	status int
	header http.Header
	body   []byte
}

// visit sends a request as it is: no redirect is followed.
func (s *testServer) visit(t *testing.T, method, path, body string, header map[string]string) answered {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	if v := header["Authorization"]; strings.HasPrefix(v, "password ") {
		req.SetBasicAuth("anybody", strings.TrimPrefix(v, "password "))
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{resp.StatusCode, resp.Header, text}
}

// scrape returns the values of /metrics, by name and labels as they stand there.
func scrape(t *testing.T, s *testServer) map[string]string {
	t.Helper()
	got := s.visit(t, http.MethodGet, "/metrics", "", map[string]string{"Authorization": "Bearer secret"})
	if got.status != 200 {
		t.Fatalf("HTTP %d %s", got.status, got.body)
	}
	values := map[string]string{}
	for _, line := range strings.Split(string(got.body), "\n") {
		if name, value, ok := strings.Cut(line, "} "); ok {
			values[name+"}"] = value
		} else if name, value, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
			values[name] = value
		}
	}
	return values
}

func wantMetrics(t *testing.T, when string, got, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %s is %q, want %s", when, name, got[name], value)
		}
	}
}

// TestMetrics takes a server through what each metric counts.
func TestMetrics(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	s := startServer(t, func(s *testServer) {
		quickRedials(s)
		s.cfg.AdminToken = "secret"
		s.router = routing.New(routing.Config{TabCap: 2})
		s.cfg.Life.Stop = func(bool) (any, bool) { return nil, true }
		s.cfg.Life.View = func() any {
			return map[string]any{"relaunches": 3, "breaker_open": true, "next_trial": "2030-01-01T00:00:00Z"}
		}
		s.address = func(context.Context) (string, error) {
			if fails.Load() {
				return "", noSandbox{}
			}
			return s.browser.URL(), nil
		}
	})
	wantMetrics(t, "at first", scrape(t, s), map[string]string{
		`cdpmux_info{store="demo/1a2b3c4d"}`: "1", `cdpmux_browser_state{state="stopped"}`: "1", `cdpmux_browser_state{state="ready"}`: "0",
		`cdpmux_breaker_open`: "1", `cdpmux_breaker_relaunches`: "3", `cdpmux_clients{state="connected"}`: "0",
		`cdpmux_command_duration_seconds_count`: "0", `cdpmux_messages_total{direction="to_browser"}`: "0",
	})
	early := proxytest.Dial(t, s.ws("/client-early"))
	early.CloseStatus()
	fails.Store(false)

	a := proxytest.Dial(t, s.ws("/client-alice"))
	pages := []proxytest.Page{a.NewPage("about:blank"), a.NewPage("about:blank"), a.NewPage("about:blank")}
	await(t, "the proxy's own commands", func() bool { return s.Stats().Requests == 0 }) // a crashed page answers none
	s.browser.Crash(pages[2].TargetID)
	a.AwaitEvent(pages[2].Session, "Inspector.targetCrashed")
	binary := proxytest.Dial(t, s.ws("/client-binary"))
	binary.SendBinary([]byte("x"))
	binary.CloseStatus()
	s.browser.Fault("Storage.getCookies", proxytest.Fault{Ignore: true})
	a.Go("", "Storage.getCookies", nil)
	s.browser.AwaitCommand(func(cmd proxytest.Command) bool { return cmd.Method == "Storage.getCookies" })
	await(t, "the end of two connections", func() bool { return len(s.Status().Recent) == 2 })
	await(t, "the end of the tab too many", func() bool { return len(s.Status().Clients[0].Tabs) == 2 && s.Stats().Requests == 1 })
	var up *upstream
	received, sent := 0, 0
	await(t, "the writers", func() bool { // they count when it is written
		s.mu.Lock()
		defer s.mu.Unlock()
		up = s.up
		received, sent = len(s.browser.Received()), int(up.Sent.Messages.Load())
		return received == sent
	})
	got := scrape(t, s)
	wantMetrics(t, "in the middle", got, map[string]string{
		`cdpmux_browser_state{state="ready"}`: "1", `cdpmux_browser_state{state="stopped"}`: "0",
		`cdpmux_browser_starts_total{outcome="failed"}`: "1", `cdpmux_browser_starts_total{outcome="started"}`: "1", `cdpmux_browser_starts_total{outcome="adopted"}`: "0",
		`cdpmux_browser_start_failures_total{failure_kind="launch_sandbox"}`: "1",
		`cdpmux_clients{state="connected"}`:                                  "1", `cdpmux_connections`: "1", `cdpmux_tabs{state="ready"}`: "1", `cdpmux_tabs{state="crashed"}`: "1",
		`cdpmux_tab_evictions_total`: "1", `cdpmux_requests_pending`: "1",
		`cdpmux_connections_closed_total{reason="start_failed"}`: "1", `cdpmux_connections_closed_total{reason="binary_frame"}`: "1", `cdpmux_connections_closed_total{reason="taken_over"}`: "0",
		`cdpmux_messages_total{direction="from_clients"}`: "7", // 3 × 2 and the cookies
		`cdpmux_command_duration_seconds_count`:           "6",
		`cdpmux_downloads_total{outcome="arrived"}`:       "0",
	})
	for name, value := range got {
		if strings.HasPrefix(name, "cdpmux_") && strings.Contains(name+value, "alice") {
			t.Errorf("names a client: %s", name)
		}
		if strings.HasPrefix(name, "cdpmux_message") && value == "0" {
			t.Errorf("nothing carried: %s", name)
		}
	}

	s.browser.Drop()
	await(t, "the browser again", func() bool {
		_, err := a.CallErr("", "Browser.getVersion", nil)
		return err == nil
	})
	before := scrape(t, s)
	wantMetrics(t, "after the gap", before, map[string]string{`cdpmux_browser_reconnects_total`: "1", `cdpmux_browser_starts_total{outcome="started"}`: "1"})
	if _, verified, err := s.StopBrowser(context.Background(), true); !verified || err != nil {
		t.Fatal(verified, err)
	}
	a.CloseStatus()
	await(t, "its end", func() bool { return len(s.Status().Recent) == 3 })
	after := scrape(t, s)
	wantMetrics(t, "at the end", after, map[string]string{
		`cdpmux_browser_stops_total{outcome="verified"}`: "1", `cdpmux_browser_stops_total{outcome="unverified"}`: "0",
		`cdpmux_connections_closed_total{reason="browser_stopped"}`: "1", `cdpmux_connections`: "0",
	})
	for name := range before { // the connections that carried them are gone
		if strings.HasPrefix(name, "cdpmux_message") && len(after[name]) < len(before[name]) {
			t.Errorf("%s went from %s down to %s", name, before[name], after[name])
		}
	}
}

// TestMetricsDoor lets in who has the admin token, in either form.
func TestMetricsDoor(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken = "secret" })
	for authorization, want := range map[string]int{"": 401, "Bearer secre": 401, "password secre": 401, "Bearer secret": 200, "password secret": 200} {
		header := map[string]string{"Authorization": authorization}
		if authorization == "" {
			header = nil
		}
		if got := s.visit(t, http.MethodGet, "/metrics", "", header); got.status != want || want != 200 && strings.Contains(string(got.body), "cdpmux_") {
			t.Errorf("with %q: HTTP %d %.100s", authorization, got.status, got.body)
		}
	}
	if got := scrape(t, s)["cdpmux_wrong_credentials_total"]; got != "2" {
		t.Errorf("wrong credentials: %s, want 2", got)
	}
	if got := s.visit(t, http.MethodPost, "/metrics", "", map[string]string{"Authorization": "Bearer secret"}); got.status != 405 {
		t.Errorf("POST: HTTP %d", got.status)
	}
}

// TestMetricsLint holds names, units and help texts to what Prometheus wants,
// and the labels to closed lists: none is a client or free text.
func TestMetricsLint(t *testing.T) {
	s := startServer(t, countLeases)
	proxytest.Dial(t, s.ws("/client-a")).NewPage("about:blank")
	problems, err := testutil.GatherAndLint(s.registry())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%+v", p)
	}
	families, err := s.registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := []string{"store", "state", "outcome", "failure_kind", "reason", "direction"}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if strings.HasPrefix(f.GetName(), "cdpmux_") && !slices.Contains(labels, l.GetName()) {
					t.Errorf("%s has a label %s", f.GetName(), l.GetName())
				}
			}
		}
	}
}

// heldLeases are sessions that only have counts.
type heldLeases struct{ status admin.LeaseStatus }

func (heldLeases) ServeSessions(http.ResponseWriter, *http.Request, bool) {}
func (l heldLeases) Status() admin.LeaseStatus                            { return l.status }

// countLeases gives a server sessions with a count of each kind.
func countLeases(s *testServer) {
	s.cfg.AdminToken = "secret"
	s.cfg.Leases = heldLeases{admin.LeaseStatus{
		Sessions: admin.SessionCounts{Creating: 1, Ready: 2, Closing: 3, CleanupPending: 4, LateReleasePending: 5, Tombstones: 6, Capacity: 7},
		Leases:   admin.LeaseCounts{Acquired: 10, Released: 2, ReleaseFailures: 9, Active: 8}, Launch: admin.LaunchCounts{OK: 11, Failed: 12}, Admission: admin.Admission{OK: true}, Degraded: true,
	}}
}

func TestLeaseMetrics(t *testing.T) {
	wantMetrics(t, "counted", scrape(t, startServer(t, countLeases)), map[string]string{
		`cdpmux_sessions{state="creating"}`: "1", `cdpmux_sessions{state="ready"}`: "2", `cdpmux_sessions{state="closing"}`: "3",
		`cdpmux_sessions{state="cleanup_pending"}`: "4", `cdpmux_sessions{state="late_release_pending"}`: "5", `cdpmux_sessions{state="tombstone"}`: "6",
		`cdpmux_session_capacity`: "7", `cdpmux_leases_active`: "8", `cdpmux_lease_release_failures_total`: "9", `cdpmux_leases_acquired_total`: "10",
		`cdpmux_leases_released_total`: "2", `cdpmux_launches_total{outcome="ok"}`: "11", `cdpmux_launches_total{outcome="failed"}`: "12", `cdpmux_sessions_degraded`: "1", `cdpmux_admission_ok`: "1",
	})
}

// TestGrafana finds every metric that the dashboard of scripts/ asks for.
func TestGrafana(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "scripts", "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		UID    string
		Panels []struct {
			Title, Type string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, countLeases)
	s.mu.Lock()
	s.totals.Failed("launch_sandbox") // a kind is there with its first failure only
	s.mu.Unlock()
	families, err := s.registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]map[string]bool{} // by metric
	for _, f := range families {
		of := map[string]bool{"job": true, "instance": true, "le": true, "store": true}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				of[l.GetName()] = true
			}
		}
		labels[f.GetName()] = of
	}
	name := regexp.MustCompile(`\b(cdpmux|process|go)_[a-z_]+`)
	selector := regexp.MustCompile(`\b((?:cdpmux|process|go)_[a-z_]+)\{([^}]*)\}`)
	series := regexp.MustCompile(`^(cdpmux_command_duration_seconds)_(bucket|sum|count)$`) // of the histogram
	shown := map[string]bool{}
	for _, p := range board.Panels {
		if p.Type != "row" && len(p.Targets) == 0 || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			for _, n := range name.FindAllString(target.Expr, -1) {
				base := series.ReplaceAllString(n, "$1")
				if shown[base] = true; labels[base] == nil {
					t.Errorf("panel %q: %s is none of ours", p.Title, n)
				}
			}
			for _, m := range selector.FindAllStringSubmatch(target.Expr, -1) {
				base := series.ReplaceAllString(m[1], "$1")
				for _, matcher := range strings.Split(m[2], ",") {
					if l := regexp.MustCompile(`^\w+`).FindString(matcher); !labels[base][l] {
						t.Errorf("panel %q: %s has no label %q", p.Title, base, l)
					}
				}
			}
		}
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "cdpmux_") && !shown[f.GetName()] {
			t.Errorf("no panel shows %s", f.GetName())
		}
	}
}
