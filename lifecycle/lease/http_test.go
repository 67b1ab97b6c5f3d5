package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"cdpmux/lifecycle/lease/leasetest"
)

// server serves a registry as a proxy does, with a browser that does as the
// contract's check wants.
func server(t *testing.T) (*kit, *httptest.Server) {
	t.Helper()
	w := newWorld()
	k := open(t, w, nil)
	mux := http.NewServeMux()
	sessions := func(rw http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("Authorization")
		if given != "Bearer store" && given != "Bearer admin" {
			sendError(rw, unauthenticated)
			return
		}
		k.ServeSessions(rw, r, given == "Bearer admin")
	}
	mux.HandleFunc(Path, sessions)
	mux.HandleFunc(Path+"/", sessions)
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(rw http.ResponseWriter, _ *http.Request) {
		if w.world().Refused() != nil {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/v1/drain", func(rw http.ResponseWriter, r *http.Request) {
		body := struct{ Drain *bool }{}
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.set(func() {
			if w.refused = nil; body.Drain == nil || *body.Drain {
				w.refused = draining
			}
		})
	})
	mux.HandleFunc("/status", func(rw http.ResponseWriter, _ *http.Request) {
		c := k.Counts()
		health := "ok"
		if c.Degraded {
			health = "degraded"
		}
		send(rw, http.StatusOK, map[string]any{
			"status": health, "uptime_s": 1, "sessions": c.Sessions, "leases": c.Leases,
			"launch": map[string]int{"ok": w.starts}, "admission": map[string]bool{"ok": true},
		})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return k, s
}

func TestContract(t *testing.T) {
	k, s := server(t)
	w := k.world
	leasetest.CheckContract(t, leasetest.Build{
		URL: s.URL, Store: k.cfg.Store, Token: "store", Admin: "admin", Capacity: w.capacity,
		HoldStarts: func() func() {
			g := newGate()
			w.set(func() { w.start = g.pass })
			return func() { w.set(func() { w.start = nil }); close(g.leave) }
		},
		FailReleases: func() func() {
			w.set(func() { w.release = func(context.Context) error { return errStuck } })
			return func() { w.set(func() { w.release = nil }) }
		},
	})
}

func TestTokenIsShownNowhere(t *testing.T) {
	k, s := server(t)
	const secret = testToken
	q, bad := parseCreate([]byte(`{"session_id":"session-00000001","close_token":"` + secret + `","client":{"name":"a"}}`))
	if len(bad) > 0 || q.Token.text != secret {
		t.Fatalf("%v %v", q, bad)
	}
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	k.must(q)
	shown := []string{string(text), fmt.Sprint(q), fmt.Sprintf("%v %+v %#v %s %q", q, q, q, q.Token, q.Token)}
	for _, body := range []string{
		`{"session_id":"session-00000001","close_token":"` + secret + `","client":{"name":"` + secret + `"}}`,
		`{"session_id":"` + secret + `","close_token":"` + secret + `","client":{"name":"a b"}}`,
		`{"` + secret + `":1,"close_token":["` + secret + `"]}`,
		`{"close_token":"` + secret + `",` + "\x01",
		`{"session_id":"session-00000001","close_token":"` + secret + `x","client":{"name":"a"}}`,
	} {
		req, _ := http.NewRequest(http.MethodPost, s.URL+Path, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer store")
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		var answer any
		_ = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		shown = append(shown, fmt.Sprint(resp.StatusCode, answer, resp.Header))
	}
	if _, err := k.stop(CloseRequest{ID: q.ID, Token: q.Token, Reason: "failed"}); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	shown = append(shown, fmt.Sprintf("%+v", k.records[q.ID]), fmt.Sprintf("%+v", k.journal.last))
	k.mu.Unlock()
	shown = append(shown, k.log.String(), string(readFile(t, k.cfg.Journal)))
	for _, text := range shown {
		if strings.Contains(text, secret) {
			t.Errorf("the token is shown: %s", text)
		}
	}
}

func TestParseCreate(t *testing.T) {
	head := `{"session_id":"session-00000001","close_token":"` + testToken + `","client":`
	for _, c := range []struct {
		body string
		bad  []string
	}{
		{head + `{"name":"a","tab_cap":0,"grace_s":480},"browser":{"start":"if_needed"},"wait_s":0}`, nil},
		{head + `{"name":"a"},"store":"us-1"} `, nil},
		{head + `{"name":"a"},"wait_s":1.5}`, []string{"wait_s"}},
		{head + `{"name":"a"},"wait_s":null}`, []string{"wait_s"}},
		{head + `{"name":"a"},"Wait_S":1}`, []string{"body (unknown field)"}},
		{head + `{"name":"a"},"wait":1}`, []string{"wait (unknown)"}},
		{head + `{"name":"a","name":"b"}}`, []string{"client.name"}},
		{head + `[]}`, []string{"client", "client.name"}},
		{head + `{"name":"a","tab_cap":10001,"grace_s":-1}}`, []string{"client.tab_cap", "client.grace_s"}},
		{`null`, []string{"body", "session_id", "close_token", "client.name"}},
	} {
		if _, bad := parseCreate([]byte(c.body)); !reflect.DeepEqual(bad, c.bad) {
			t.Errorf("%s: %q, want %q", c.body, bad, c.bad)
		}
	}
}

func TestCallsThatThereAreNot(t *testing.T) {
	k, _ := server(t)
	for call, want := range map[string]struct {
		status int
		allow  string
	}{
		"PUT " + Path:                   {405, "GET, POST"},
		"DELETE " + Path + "/x":         {405, "GET"},
		"GET " + Path + "/x/close":      {405, "POST"},
		"PUT " + Path + "/x/heartbeat":  {405, "POST"},
		"POST " + Path + "/x/close/now": {404, ""},
		"GET " + Path + "/x/tabs":       {404, ""},
		"POST " + Path + "/":            {404, ""},
	} {
		method, path, _ := strings.Cut(call, " ")
		rec := httptest.NewRecorder()
		k.ServeSessions(rec, httptest.NewRequest(method, path, nil), false)
		if body := rec.Body.String(); rec.Code != want.status || rec.Header().Get("Allow") != want.allow ||
			!strings.Contains(body, `"failure_kind":"unknown_call"`) || !strings.Contains(body, "/v1/sessions/{id}/heartbeat") {
			t.Errorf("%s: %d, Allow %q, %s; want %+v", call, rec.Code, rec.Header().Get("Allow"), body, want)
		}
	}
}
