// Package leasetest drives any build that serves sessions through their
// contract, over HTTP alone.
package leasetest

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Build is what is checked. Nobody else uses it meanwhile.
type Build struct {
	URL      string // "http://host:port"
	Store    string
	Token    string // the store token
	Admin    string // the admin token
	Capacity int    // sessions that can be held at once

	// What a build cannot be made to do is nil, and is not checked.
	Connect      func(wsURL string) (leave func(), err error) // connects a client
	HoldStarts   func() (resume func())                       // lets starts wait
	FailReleases func() (mend func())                         // lets releases fail
}

// CheckContract checks all that can be seen from outside. After each part the
// numbers of /status must agree, and nothing may be left.
func CheckContract(t *testing.T, b Build) {
	t.Helper()
	c := &caller{Build: b, t: t}
	for _, part := range []struct {
		name  string
		check func(*caller)
		with  bool // the build can be made to do what it takes
	}{
		{"create replay conflict wrong token", checkCreate, true},
		{"close and close again", checkClose, true},
		{"close before create", checkCloseFirst, true},
		{"malformed requests name fields only", checkMalformed, true},
		{"credentials", checkCredentials, true},
		{"show and heartbeat", checkShow, true},
		{"operator", checkOperator, true},
		{"capacity", checkCapacity, true},
		{"ten concurrent closes", checkConcurrentCloses, true},
		{"drain", checkDrain, true},
		{"carrier", checkCarrier, b.Connect != nil},
		{"lost reply and cancelled callers", checkCancelled, b.HoldStarts != nil},
		{"close while creating", checkCloseWhileCreating, b.HoldStarts != nil},
		{"failed release", checkFailedRelease, b.FailReleases != nil},
	} {
		if !part.with {
			continue
		}
		t.Run(part.name, func(t *testing.T) {
			c := &caller{Build: b, t: t}
			part.check(c)
			c.checkNumbers()
		})
	}
	c.checkNumbers()
}

func checkCreate(c *caller) {
	s := c.session()
	first := c.create(s).want(201)
	for _, name := range []string{"session_id", "store", "incarnation", "ws_url", "http_url", "created_at", "last_activity_at", "ownership", "clients_connected", "tabs", "receipt"} {
		if _, ok := first.body[name]; !ok {
			c.t.Errorf("a session has no %s: %s", name, first.text)
		}
	}
	if first.body["state"] != "ready" || first.body["replayed"] != false || first.body["session_id"] != s.id || first.body["store"] != c.Store {
		c.t.Errorf("first reply: %s", first.text)
	}
	again := c.create(s).want(200)
	if again.body["replayed"] != true || again.body["ws_url"] != first.body["ws_url"] || again.body["created_at"] != first.body["created_at"] {
		c.t.Errorf("replay: %s, after %s", again.text, first.text)
	}
	other := s
	other.more = map[string]any{"tab_cap": 3}
	if p := c.create(other).wantKind(409, "session_conflict"); p.body["retryable"] != false {
		c.t.Errorf("a conflict: %s", p.text)
	}
	other.token = newID()
	c.create(other).wantKind(403, "session_forbidden")
	c.close(other).wantKind(403, "session_forbidden")
	elsewhere := c.session()
	elsewhere.store = "no-such-store"
	c.create(elsewhere).wantKind(404, "unknown_store")
	same := c.session()
	same.client = s.client
	c.create(same).wantKind(409, "client_in_use")
	c.close(s).want(200)
}

func checkClose(c *caller) {
	s := c.session()
	c.create(s).want(201)
	closed := c.close(s).want(200)
	if closed.body["closed"] != true || closed.body["status"] != "closed" || closed.body["session_id"] != s.id {
		c.t.Errorf("close: %s", closed.text)
	}
	receipt, _ := closed.body["receipt"].(map[string]any)
	cleanup, _ := receipt["cleanup"].(map[string]any)
	if receipt["action"] != "stop" || cleanup["verified"] != true || cleanup["survivors"] != 0.0 {
		c.t.Errorf("receipt: %s", closed.text)
	}
	again := c.close(s).want(200)
	never := c.session()
	unknown := c.close(never).want(200)
	if strings.ReplaceAll(again.text, s.id, "") != strings.ReplaceAll(unknown.text, never.id, "") || again.body["status"] != "already_closed" {
		c.t.Errorf("closed %s looks unlike unknown %s", again.text, unknown.text)
	}
	c.create(s).wantKind(409, "session_closed")
	next := c.session()
	next.client = s.client
	c.create(next).want(201)
	c.close(next).want(200)
}

func checkCloseFirst(c *caller) {
	s := c.session()
	c.close(s).want(200)
	if p := c.create(s).wantKind(409, "session_closed"); p.body["retryable"] != false {
		c.t.Errorf("closed: %s", p.text)
	}
	s.token = newID()
	c.create(s).wantKind(403, "session_forbidden")
}

func checkMalformed(c *caller) {
	s := c.session()
	for name, change := range map[string]func(m map[string]any){
		"session_id":  func(m map[string]any) { m["session_id"] = "short" },
		"close_token": func(m map[string]any) { m["close_token"] = "short-secret" },
		"client.name": func(m map[string]any) { m["client"] = map[string]any{"name": "a b"} },
		"client.tab_cap": func(m map[string]any) {
			m["client"] = map[string]any{"name": "a", "tab_cap": -1}
		},
		"client.grace_s": func(m map[string]any) {
			m["client"] = map[string]any{"name": "a", "grace_s": "no-secret"}
		},
		"client.colour": func(m map[string]any) {
			m["client"] = map[string]any{"name": "a", "colour": "a-secret"}
		},
		"browser.start": func(m map[string]any) { m["browser"] = map[string]any{"start": "a-secret"} },
		"wait_s":        func(m map[string]any) { m["wait_s"] = 1e9 },
		"colour":        func(m map[string]any) { m["colour"] = "a-secret" },
		"client":        func(m map[string]any) { m["client"] = "a-secret" },
	} {
		m := c.createBody(s)
		change(m)
		p := c.post("/v1/sessions", c.Token, m).wantKind(422, "invalid_request")
		if text, _ := p.body["error"].(string); !strings.Contains(text, name) || strings.Contains(p.text, "secret") || strings.Contains(p.text, s.token) {
			c.t.Errorf("with a bad %s: %s", name, p.text)
		}
	}
	for _, text := range []string{"", "[]", "{", `{"a":1}{}`, strings.Repeat(" ", 1<<17)} {
		c.send(http.MethodPost, "/v1/sessions", c.Token, "", text).wantKind(422, "invalid_request")
	}
	c.post("/v1/sessions/"+s.id+"/close", c.Token, map[string]any{"close_token": s.token, "reason": "a-secret"}).wantKind(422, "invalid_request")
	c.post("/v1/sessions/short/close", c.Token, map[string]any{"close_token": s.token}).wantKind(422, "invalid_request")
}

func checkCredentials(c *caller) {
	s := c.session()
	for _, token := range []string{"", "wrong", c.Token + "x"} {
		c.post("/v1/sessions", token, c.createBody(s)).wantKind(401, "unauthenticated")
		c.post("/v1/sessions/"+s.id+"/close", token, map[string]any{"close_token": s.token}).wantKind(401, "unauthenticated")
	}
	c.create(s).want(201) // nothing of the above counted
	c.close(s).want(200)
}

func checkShow(c *caller) {
	s := c.session()
	path := "/v1/sessions/" + s.id
	c.send(http.MethodGet, path, c.Token, s.token, "").wantKind(404, "unknown_session")
	c.create(s).want(201)
	if got := c.send(http.MethodGet, path, c.Token, s.token, "").want(200); got.body["state"] != "ready" || got.body["session_id"] != s.id {
		c.t.Errorf("shown: %s", got.text)
	}
	c.send(http.MethodGet, path, c.Token, newID(), "").wantKind(403, "session_forbidden")
	c.send(http.MethodGet, path, c.Token, "", "").wantKind(403, "session_forbidden")
	c.send(http.MethodPost, path+"/heartbeat", c.Token, s.token, "").want(204)
	c.send(http.MethodPost, path+"/heartbeat", c.Token, newID(), "").wantKind(403, "session_forbidden")
	c.close(s).want(200)
	c.send(http.MethodGet, path, c.Token, s.token, "").wantKind(410, "session_closed")
	c.send(http.MethodGet, path, c.Token, newID(), "").wantKind(404, "unknown_session")
	c.send(http.MethodPost, path+"/heartbeat", c.Token, s.token, "").wantKind(410, "session_closed")
}

func checkOperator(c *caller) {
	s := c.session()
	c.create(s).want(201)
	c.send(http.MethodGet, "/v1/sessions", c.Token, "", "").wantKind(403, "session_forbidden")
	if list := c.send(http.MethodGet, "/v1/sessions", c.Admin, "", "").want(200); !strings.Contains(list.text, s.id) || !strings.Contains(list.text, s.client) {
		c.t.Errorf("the operator's list: %s", list.text)
	}
	path := "/v1/sessions/" + s.id + "/close"
	c.post(path, c.Token, map[string]any{}).wantKind(422, "invalid_request")
	if closed := c.post(path, c.Admin, map[string]any{"reason": "abandoned"}).want(200); closed.body["status"] != "closed" {
		c.t.Errorf("closed by the operator: %s", closed.text)
	}
	c.post("/v1/sessions/"+newID()+"/close", c.Admin, map[string]any{}).wantKind(404, "unknown_session")
}

func checkCapacity(c *caller) {
	var held []session
	for range c.Capacity {
		s := c.session()
		c.create(s).want(201)
		held = append(held, s)
	}
	extra := c.session()
	full := c.create(extra).wantKind(503, "capacity_unavailable")
	if full.header.Get("Retry-After") == "" || full.body["retryable"] != true {
		c.t.Errorf("full: %v %s", full.header, full.text)
	}
	c.close(held[0]).want(200)
	c.create(extra).want(201)
	for _, s := range append(held[1:], extra) {
		c.close(s).want(200)
	}
}

func checkConcurrentCloses(c *caller) {
	s := c.session()
	before := c.numbers()
	c.create(s).want(201)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { c.close(s).want(200) })
	}
	wg.Wait()
	if after := c.numbers(); after.Leases.Released != before.Leases.Released+1 || after.Leases.Acquired != before.Leases.Acquired+1 {
		c.t.Errorf("from %+v to %+v", before.Leases, after.Leases)
	}
}

func checkDrain(c *caller) {
	s, late := c.session(), c.session()
	c.create(s).want(201)
	c.post("/v1/drain", c.Admin, map[string]any{}).want(200)
	if p := c.create(late).wantKind(503, "draining"); p.header.Get("Retry-After") == "" {
		c.t.Error("draining, and no Retry-After")
	}
	c.send(http.MethodGet, "/readyz", "", "", "").want(503)
	c.send(http.MethodGet, "/healthz", "", "", "").want(200)
	if c.Connect != nil {
		leave, err := c.Connect(c.create(s).want(200).body["ws_url"].(string))
		if err != nil {
			c.t.Errorf("a session may finish while newcomers are turned away: %v", err)
		} else {
			leave()
		}
	}
	c.close(s).want(200)
	c.post("/v1/drain", c.Admin, map[string]any{"drain": false}).want(200)
	c.create(late).want(201)
	c.close(late).want(200)
}

// patience bounds each request.
const patience = 60 * time.Second
