package proxy

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
	"cdpmux/routing"
)

// fromPage is what a browser sends with what the operator does on the page.
func (s *testServer) fromPage() map[string]string {
	return map[string]string{
		"Authorization": "password secret", "Accept": "text/html", "Sec-Fetch-Site": "same-origin",
		"Origin": "http://" + s.addr, "Content-Type": "application/x-www-form-urlencoded",
	}
}

// press presses a button of the dashboard.
func (s *testServer) press(t *testing.T, button, form string) answered {
	t.Helper()
	return s.visit(t, http.MethodPost, "/dashboard/"+button, form, s.fromPage())
}

// TestDashboardDoor tries to get in without what the operator's own browser has.
func TestDashboardDoor(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		s.cfg.AdminToken, s.cfg.AllowOrigins = "secret", []string{"https://listed.example"}
	})
	tab := proxytest.Dial(t, s.ws("/client-a")).NewPage("about:blank").TargetID
	paths := []struct{ method, path, form string }{
		{"GET", "/", ""}, {"GET", "/dashboard/style.css", ""}, {"GET", "/dashboard/else", ""},
		{"POST", "/dashboard/close-tab", "client=a&tab=" + tab}, {"POST", "/dashboard/release", "client=a"}, {"POST", "/dashboard/picture", "tab=" + tab},
	}
	with := func(changes ...string) map[string]string {
		header := maps.Clone(s.fromPage())
		for i := 0; i < len(changes); i += 2 {
			if header[changes[i]] = changes[i+1]; changes[i+1] == "" {
				delete(header, changes[i])
			}
		}
		return header
	}
	for _, p := range paths {
		plain := func(changes ...string) map[string]string {
			if p.method == "GET" {
				changes = append(changes, "Origin", "")
			}
			return with(changes...)
		}
		for name, header := range map[string]map[string]string{
			"without the token":        plain("Authorization", "", "Origin", ""),
			"with a wrong one":         plain("Authorization", "password secre", "Origin", ""),
			"with none as password":    plain("Authorization", "password ", "Origin", ""),
			"from another site":        with("Sec-Fetch-Site", "cross-site"),
			"from another port":        with("Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"),
			"another port, no Origin":  plain("Sec-Fetch-Site", "same-site", "Origin", ""),
			"from a listed origin":     with("Sec-Fetch-Site", "cross-site", "Origin", "https://listed.example"),
			"no token, own Origin":     with("Authorization", ""),
			"own Origin, another path": with("X", "Y"),
			"Origin null":              with("Origin", "null"),
		} {
			path := p.path
			if name == "own Origin, another path" {
				path = "/v1/drain"
			}
			got := s.visit(t, p.method, path, p.form, header)
			if got.status != 401 && got.status != 403 && (got.status != 429 || name != "with a wrong one") {
				t.Errorf("%s %s %s: HTTP %d %.100s", p.method, path, name, got.status, got.body)
			}
			if challenge := got.header.Get("WWW-Authenticate"); got.status == 401 && !strings.HasPrefix(challenge, "Basic ") {
				t.Errorf("%s %s %s: WWW-Authenticate %q does not let a browser ask", p.method, path, name, challenge)
			}
			if strings.Contains(string(got.body), "secret") || strings.Contains(string(got.body), tab) {
				t.Errorf("%s %s %s: tells %.200s", p.method, path, name, got.body)
			}
		}
		if p.method != "POST" {
			continue
		}
		for name, header := range map[string]map[string]string{
			"no browser":        with("Sec-Fetch-Site", "", "Origin", ""),
			"typed in":          with("Sec-Fetch-Site", "none", "Origin", ""),
			"listed, unvouched": with("Sec-Fetch-Site", "", "Origin", "https://listed.example"),
		} {
			if got := s.visit(t, "POST", p.path, p.form, header); got.status != 403 {
				t.Errorf("%s %s: HTTP %d, want 403", p.path, name, got.status)
			}
		}
		if got := s.visit(t, "GET", p.path+"?"+p.form, "", with("Origin", "")); got.status != 405 {
			t.Errorf("GET %s: HTTP %d, want 405", p.path, got.status)
		}
	}
	if st := s.Status(); len(st.Clients) != 1 || len(st.Clients[0].Tabs) != 1 {
		t.Fatalf("something of it worked: %+v", st.Clients)
	}

	got := s.visit(t, "GET", "/", "", map[string]string{"Authorization": "password secret", "Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Site": "none"})
	policy := got.header.Get("Content-Security-Policy")
	if got.status != 200 || !strings.Contains(string(got.body), tab) || !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page: HTTP %d %v", got.status, got.header)
	}
	if got := s.visit(t, "GET", "/", "", nil); got.status != 200 || len(got.body) != 0 {
		t.Errorf("a program at /: HTTP %d %q; want what Chrome answers", got.status, got.body)
	}
}

// TestDashboardAsksForTheToken: whatever is wrong with a password, a browser
// asks for another one, and a page behind a front server is our own, too.
func TestDashboardAsksForTheToken(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		s.cfg.AdminToken, s.cfg.Auth = "secret", Auth{Token: "store", Required: true}
		s.cfg.PublicURL = &url.URL{Scheme: "https", Host: "front.example", Path: "/shop"}
	})
	for _, given := range []string{"", "password store", "password wrong"} {
		header := map[string]string{"Accept": "text/html"}
		if given != "" {
			header["Authorization"] = given
		}
		if got := s.visit(t, "GET", "/", "", header); got.status != 401 || got.header.Get("WWW-Authenticate") != askForToken {
			t.Errorf("with %q: HTTP %d, WWW-Authenticate %q", given, got.status, got.header.Get("WWW-Authenticate"))
		}
	}
	if got := s.visit(t, "GET", "/", "", map[string]string{"Accept": "text/html", "Authorization": "password secret"}); got.status != 200 || got.header.Get("WWW-Authenticate") != "" {
		t.Errorf("with the token: HTTP %d", got.status)
	}
	if got := s.visit(t, "GET", "/status", "", nil); got.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a program is asked for %q", got.header.Get("WWW-Authenticate"))
	}
	for origin, want := range map[string]int{"https://front.example": 303, "https://other.example": 403, "http://" + s.addr: 403} {
		header := s.fromPage()
		header["Origin"] = origin
		if got := s.visit(t, "POST", "/dashboard/release", "client=a", header); got.status != want {
			t.Errorf("from %s: HTTP %d %s, want %d", origin, got.status, got.body, want)
		}
	}
}

// TestDashboardButtons presses buttons, some of which have nothing to act on
// any more. What clients may not do holds back no operator.
func TestDashboardButtons(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		s.cfg.AdminToken, s.cfg.Grace = "secret", time.Hour
		s.router = routing.New(routing.Config{Rules: &routing.Rules{Rules: []routing.Rule{{Clients: []string{"*"}, Refuse: []string{"Target.closeTarget"}}}}})
	})
	a := proxytest.Dial(t, s.ws("/client-a"))
	page := a.NewPage("about:blank")
	for _, p := range []struct{ button, form, location string }{
		{"close-tab", "client=a&tab=NONE", "../?notice=tab-gone"},
		{"close-tab", "client=b&tab=" + page.TargetID, "../?notice=tab-gone"},
		{"close-tab", "", "../?notice=tab-gone"},
		{"release", "client=b", "../?notice=client-gone"},
		{"release", "client=", "../?notice=client-gone"},
		{"close-tab", "client=a&tab=" + page.TargetID, "../?notice=tab-closed"},
		{"close-tab", "client=a&tab=" + page.TargetID, "../?notice=tab-gone"},
		{"release", "client=a", "../?notice=released"},
		{"release", "client=a", "../?notice=client-gone"},
	} {
		await(t, "its turn", func() bool { return p.location != "../?notice=tab-gone" || !closing(s, page.TargetID) })
		if got := s.press(t, p.button, p.form); got.status != 303 || got.header.Get("Location") != p.location {
			t.Errorf("%s %s: HTTP %d to %q, want %q", p.button, p.form, got.status, got.header.Get("Location"), p.location)
		}
	}
	if code, _ := a.CloseStatus(); code != 1000 {
		t.Errorf("the released client: closed with %d", code)
	}
	if got := s.visit(t, "GET", "/?notice=%3Cb%3Eno", "", map[string]string{"Authorization": "password secret", "Accept": "text/html"}); strings.Contains(string(got.body), "class=\"notice\"") || got.status != 200 {
		t.Errorf("a notice that is none of ours is shown: HTTP %d", got.status)
	}
}

// closing reports whether a tab is still in the browser and in nobody's list.
func closing(s *testServer, tab string) bool {
	for _, c := range s.Status().Clients {
		for _, t := range c.Tabs {
			if t.ID == tab {
				return false
			}
		}
	}
	for _, t := range s.list(address{client: "a"}, false) {
		if t.ID == tab {
			return true
		}
	}
	return false
}

// TestPictures holds the operator to one picture at a time, and one a second.
func TestPictures(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken = "secret" })
	tab := proxytest.Dial(t, s.ws("/client-a")).NewPage("about:blank").TargetID
	s.browser.Fault("Page.captureScreenshot", proxytest.Fault{Ignore: true})
	first := make(chan answered)
	go func() { first <- s.press(t, "picture", "tab="+tab) }()
	s.browser.AwaitCommand(func(cmd proxytest.Command) bool { return cmd.Method == "Page.captureScreenshot" })
	if got := s.press(t, "picture", "tab="+tab); got.status != 429 || got.header.Get("Retry-After") != "1" {
		t.Errorf("a second one at once: HTTP %d %s", got.status, got.body)
	}
	if got := <-first; got.status != 502 || !strings.Contains(string(got.body), "within 5s") || !strings.Contains(string(got.body), `"failure_kind":"no_picture"`) {
		t.Errorf("of a tab that gives none: HTTP %d %s", got.status, got.body)
	}
	if got := s.press(t, "picture", "tab=NONE"); got.status != 502 || !strings.Contains(string(got.body), "No such target id: NONE") {
		t.Errorf("of no tab: HTTP %d %s", got.status, got.body)
	}
	now := time.Now()
	var p pictures
	for _, step := range []struct {
		after time.Duration
		busy  bool
		want  bool
	}{{0, false, true}, {time.Second, true, false}, {999 * time.Millisecond, false, false}, {time.Second, false, true}} {
		p.busy = step.busy
		if got := p.begin(now.Add(step.after)); got != step.want {
			t.Errorf("after %s, busy %t: turn %t", step.after, step.busy, got)
		}
	}
}
