package leasetest

import (
	"slices"
	"strings"
	"sync"
)

// What a build has to be made to do.

func checkCarrier(c *caller) {
	s := c.session()
	ws := c.create(s).want(201).body["ws_url"].(string)
	plain := strings.Replace(c.URL, "http", "ws", 1) + "/client-" + s.client
	if !strings.Contains(ws, "/t/") || !strings.HasSuffix(ws, "/client-"+s.client) || strings.Contains(ws, s.token) {
		c.t.Errorf("ws_url %s", ws)
	}
	before, capability, _ := strings.Cut(ws, "/t/")
	for _, address := range []string{plain, before + "/t/" + strings.Repeat("A", 32) + capability[32:], strings.Replace(ws, s.client, s.client+"x", 1)} {
		if _, err := c.Connect(address); err == nil {
			c.t.Errorf("let in by %s", address)
		}
	}
	leave, err := c.Connect(ws)
	if err != nil {
		c.t.Fatalf("connect: %v", err)
	}
	shown := func() float64 {
		return c.create(s).want(200).body["clients_connected"].(float64)
	}
	if n := shown(); n != 1 {
		c.t.Errorf("%v clients connected, want 1", n)
	}
	c.close(s).want(200)
	leave()
	if _, err := c.Connect(ws); err == nil {
		c.t.Error("let in after the close")
	}
	leave, err = c.Connect(plain)
	if err != nil {
		c.t.Fatalf("the name is free again: %v", err)
	}
	taken := c.session()
	taken.client = s.client
	c.create(taken).wantKind(409, "client_in_use")
	leave()
}

func checkCancelled(c *caller) {
	resume := sync.OnceFunc(c.HoldStarts())
	defer resume()
	var held []session
	for range c.Capacity {
		s := c.session()
		s.wait = new(float64)
		pending := c.create(s).want(202)
		if pending.body["state"] != "creating" || pending.header.Get("Location") != "/v1/sessions/"+s.id {
			c.t.Errorf("under way: %s, %v", pending.text, pending.header)
		}
		held = append(held, s)
	}
	c.create(c.session()).wantKind(503, "capacity_unavailable")
	resume()
	for _, s := range held {
		s.wait = nil
		c.create(s).want(200)
		c.close(s).want(200)
	}
}

func checkCloseWhileCreating(c *caller) {
	resume := sync.OnceFunc(c.HoldStarts())
	defer resume()
	s := c.session()
	s.wait = new(float64)
	c.create(s).want(202)
	if p := c.close(s).want(202); p.body["closed"] != false || p.body["status"] != "closing" {
		c.t.Errorf("closing: %s", p.text)
	}
	c.create(s).wantKind(409, "session_closed")
	resume()
	s.wait = nil
	c.close(s).want(200)
	c.create(s).wantKind(409, "session_closed")
}

func checkFailedRelease(c *caller) {
	var held []session
	for range c.Capacity {
		s := c.session()
		c.create(s).want(201)
		held = append(held, s)
	}
	mend := sync.OnceFunc(c.FailReleases())
	defer mend()
	p := c.close(held[0]).wantKind(503, "session_release_failed")
	want := []string{"attempts", "closed", "error", "failure_kind", "next", "retryable", "survivors"}
	if names := p.names(); !slices.Equal(names, want) || p.body["closed"] != false || p.body["error"] != "browser processes could not be verified gone" || p.header.Get("Retry-After") == "" {
		c.t.Errorf("failed release: %s, %v", p.text, p.header)
	}
	c.create(held[0]).wantKind(503, "session_release_failed")
	c.create(c.session()).wantKind(503, "capacity_unavailable")
	mend()
	for _, s := range held {
		c.close(s).want(200)
	}
}
