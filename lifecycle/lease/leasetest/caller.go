package leasetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// caller asks one build.
type caller struct {
	Build
	t *testing.T
}

// session is what a caller makes before its first request.
type session struct {
	id, token, store, client string
	more                     map[string]any // members of client
	wait                     *float64       // seconds; nil: as usual
}

func newID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func (c *caller) session() session {
	return session{id: newID(), token: "close-" + newID(), store: c.Store, client: "task-" + newID()[:8]}
}

func (c *caller) createBody(s session) map[string]any {
	client := map[string]any{"name": s.client}
	maps.Copy(client, s.more)
	m := map[string]any{"session_id": s.id, "close_token": s.token, "store": s.store, "client": client, "browser": map[string]any{"start": "if_needed"}}
	if s.wait != nil {
		m["wait_s"] = *s.wait
	}
	return m
}

func (c *caller) create(s session) *reply {
	c.t.Helper()
	return c.post("/v1/sessions", c.Token, c.createBody(s))
}

func (c *caller) close(s session) *reply {
	c.t.Helper()
	m := map[string]any{"close_token": s.token, "reason": "completed"}
	if s.wait != nil {
		m["wait_s"] = *s.wait
	}
	return c.post("/v1/sessions/"+s.id+"/close", c.Token, m)
}

func (c *caller) post(path, token string, body map[string]any) *reply {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.send(http.MethodPost, path, token, "", string(text))
}

// reply is one answer. Its checks fail the test.
type reply struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	text   string
	body   map[string]any // nil: it is no JSON object
}

func (c *caller) send(method, path, token, session, body string) *reply {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if session != "" {
		req.Header.Set("X-Session-Token", session)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	r := &reply{t: c.t, what: method + " " + path, status: resp.StatusCode, header: resp.Header, text: string(bytes.TrimSpace(text))}
	_ = json.Unmarshal(text, &r.body)
	if strings.Contains(r.text, "close-") {
		c.t.Errorf("%s: the answer shows a close token: %s", r.what, r.text)
	}
	return r
}

func (r *reply) want(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Errorf("%s: HTTP %d %s, want %d", r.what, r.status, r.text, status)
	}
	return r
}

// wantKind is want for the one form of errors.
func (r *reply) wantKind(status int, kind string) *reply {
	r.t.Helper()
	r.want(status)
	text, _ := r.body["error"].(string)
	next, _ := r.body["next"].(string)
	_, told := r.body["retryable"].(bool)
	if r.body["failure_kind"] != kind || text == "" || next == "" || !told {
		r.t.Errorf("%s: %s, want kind %s with an error, a next step and whether to retry", r.what, r.text, kind)
	}
	return r
}

func (r *reply) names() []string { return slices.Sorted(maps.Keys(r.body)) }

// numbers are what /status shows of sessions.
type numbers struct {
	Status   string
	Uptime   *int64 `json:"uptime_s"`
	Sessions struct {
		Creating, Ready, Closing, Tombstones, Capacity int
		CleanupPending                                 int `json:"cleanup_pending"`
		LateReleasePending                             int `json:"late_release_pending"`
	}
	Leases struct {
		Acquired, Released, Active int64
		ReleaseFailures            int64 `json:"release_failures"`
	}
	Launch    *struct{ OK, Failed int64 }
	Admission *struct{ OK bool }
}

func (c *caller) numbers() (n numbers) {
	c.t.Helper()
	r := c.send(http.MethodGet, "/status", c.Admin, "", "").want(http.StatusOK)
	if err := json.Unmarshal([]byte(r.text), &n); err != nil {
		c.t.Fatalf("status: %v", err)
	}
	return n
}

// checkNumbers checks what has to hold whenever nothing is under way.
func (c *caller) checkNumbers() {
	c.t.Helper()
	n := c.numbers()
	if n.Leases.Active != n.Leases.Acquired-n.Leases.Released || n.Leases.Active != 0 {
		c.t.Errorf("leases: %+v, want none left", n.Leases)
	}
	if s := n.Sessions; s.Creating+s.Ready+s.Closing+s.CleanupPending+s.LateReleasePending != 0 || s.Capacity != c.Capacity {
		c.t.Errorf("sessions: %+v, want none left, and a capacity of %d", s, c.Capacity)
	}
	if n.Status != "ok" || n.Uptime == nil || n.Launch == nil || n.Admission == nil || !n.Admission.OK {
		c.t.Errorf("status %+v", n)
	}
}
