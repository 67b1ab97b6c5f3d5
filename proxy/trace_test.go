package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

const traceToken = "t0ken"

// trace is one reader of a client's trace.
type traceReader struct {
	t    *testing.T
	body *bufio.Scanner
	all  strings.Builder
	end  context.CancelFunc
}

func follow(t *testing.T, s *testServer, id string) (*traceReader, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/v1/clients/"+id+"/trace", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+traceToken)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	return &traceReader{t: t, body: bufio.NewScanner(resp.Body), end: cancel}, resp.StatusCode
}

// until reads lines until one fits.
func (r *traceReader) until(what string, fits func(TraceLine) bool) TraceLine {
	r.t.Helper()
	for r.body.Scan() {
		var l TraceLine
		if err := json.Unmarshal(r.body.Bytes(), &l); err != nil {
			r.t.Fatal(err)
		}
		r.all.Write(append(r.body.Bytes(), '\n'))
		if fits(l) {
			return l
		}
	}
	r.t.Fatalf("%s did not come (%v); got\n%s", what, r.body.Err(), r.all.String())
	return TraceLine{}
}

func kind(want, method string) func(TraceLine) bool {
	return func(l TraceLine) bool { return l.Kind == want && l.Method == method }
}

func TestTrace(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken, s.cfg.Grace = traceToken, 50*time.Millisecond })
	r, status := follow(t, s, "alice")
	if status != 200 {
		t.Fatalf("HTTP %d", status)
	}
	r.until("waiting", kind(TraceWaiting, ""))
	other := proxytest.Dial(t, s.ws("/client-bob"))
	other.Call("", "Browser.getVersion", nil)
	c := proxytest.Dial(t, s.ws("/client-alice"))
	r.until("connected", kind(TraceConnected, ""))
	page := c.NewPage("https://shop.example/?token=SECRET1")
	page.Call("Runtime.evaluate", map[string]any{"expression": "'SECRET2'"})
	r.until("command", kind(TraceCommand, "Target.createTarget"))
	l := r.until("command on a page", kind(TraceCommand, "Runtime.evaluate"))
	if l.Target != "page" || l.Session == "" || !strings.HasPrefix(page.Session, l.Session) || l.ID == nil || l.Bytes == 0 {
		t.Errorf("command %+v", l)
	}
	if l := r.until("reply", kind(TraceReply, "Runtime.evaluate")); l.LatencyMS == nil || *l.LatencyMS <= 0 || l.Target != "page" || l.Error != 0 {
		t.Errorf("reply %+v", l)
	}
	c.CallErr("", "No.such", map[string]string{"password": "SECRET3"})
	if l := r.until("error", kind(TraceReply, "No.such")); l.Error != -32601 {
		t.Errorf("reply %+v, want error -32601", l)
	}
	c.Send(`{"id":77,"method":"SECRET4 \u001b[2J"}`)
	r.until("a method that is none", func(l TraceLine) bool { return l.Method == "(no method)" && l.Kind == TraceReply })
	c.Call("", "Target.setDiscoverTargets", map[string]bool{"discover": true})
	r.until("event", kind(TraceEvent, "Target.targetCreated"))

	// A second connection of the name: both ends are told.
	again := proxytest.Dial(t, s.ws("/client-alice"))
	if l := r.until("the end of the first", kind(TraceEnded, "")); l.Reason != "taken_over" {
		t.Errorf("end %+v", l)
	}
	again.Close()
	if l := r.until("the end of the second", kind(TraceEnded, "")); l.Reason != "client_left" {
		t.Errorf("end %+v", l)
	}
	r.until("gone, with the grace", kind(TraceGone, ""))
	if r.body.Scan() {
		t.Errorf("after the end: %s", r.body.Bytes())
	}
	for _, secret := range []string{"SECRET", "shop.example", "getVersion"} {
		if strings.Contains(r.all.String(), secret) {
			t.Errorf("%s in the trace:\n%s", secret, r.all.String())
		}
	}
	await(t, "the tracer is forgotten", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.tracers) == 0
	})
}

func TestTraceNeedsTheAdmin(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken = "another" })
	if _, status := follow(t, s, "alice"); status != 401 {
		t.Errorf("HTTP %d, want 401", status)
	}
}

func TestTracersAreFew(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken = traceToken })
	c := proxytest.Dial(t, s.ws("/client-alice"))
	c.Call("", "Browser.getVersion", nil)
	var readers []*traceReader
	for range maxTracers {
		r, status := follow(t, s, "alice")
		if status != 200 {
			t.Fatalf("HTTP %d", status)
		}
		readers = append(readers, r)
	}
	if _, status := follow(t, s, "alice"); status != 503 {
		t.Errorf("one too many: HTTP %d, want 503", status)
	}
	if _, status := follow(t, s, "a.b"); status != 400 {
		t.Errorf("no client id: HTTP %d, want 400", status)
	}
	for _, r := range readers {
		r.end()
	}
	await(t, "the tracers are forgotten, and cost nothing", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range s.clients {
			if c.tracers != nil {
				return false
			}
		}
		return len(s.tracers) == 0
	})
}

func TestSlowTracerLosesLines(t *testing.T) {
	tr := &tracer{lines: make(chan TraceLine, 2)}
	for range 5 {
		tr.put(TraceLine{Kind: TraceEvent})
	}
	<-tr.lines
	<-tr.lines
	tr.put(TraceLine{Kind: TraceReply})
	if l := <-tr.lines; l.Kind != TraceLost || l.Lost != 3 {
		t.Errorf("line %+v, want that 3 are lost", l)
	}
	if l := <-tr.lines; l.Kind != TraceReply {
		t.Errorf("line %+v", l)
	}
}
