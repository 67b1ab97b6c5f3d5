package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/proxy/access"
	"cdpmux/proxy/proxytest"
	"cdpmux/proxy/wire"
)

// leased is a server with the session of client "a" in it.
func leased(t *testing.T, tenant Tenant, setup func(*testServer)) (s *testServer, path string) {
	t.Helper()
	s = startServer(t, func(s *testServer) {
		s.cfg.Auth.Token, s.cfg.AdminToken = strings.Repeat("ab", 32), strings.Repeat("cd", 32)
		if setup != nil {
			setup(s)
		}
	})
	digest := sha256.Sum256([]byte("close token"))
	tenant.Digest = digest[:]
	if err := s.Reserve("a", tenant, false); err != nil {
		t.Fatal(err)
	}
	return s, s.keys().Path("a", tenant.Digest)
}

func wantKindOf(t *testing.T, err error, kind string) {
	t.Helper()
	var f interface{ FailureKind() string }
	if !errors.As(err, &f) || f.FailureKind() != kind {
		t.Errorf("got %v, want %s", err, kind)
	}
}

// A client id with a lease admits only who has its capability, by each of its
// addresses.
func TestLeasedClientNeedsItsCapability(t *testing.T) {
	s, path := leased(t, Tenant{}, nil)
	for _, other := range []string{"/client-a", s.keys().Path("a", nil), s.keys().Path("b", nil)[:35] + "/client-a", "/devtools/browser/a", strings.TrimSuffix(path, "a") + "b"} {
		_, resp, err := proxytest.DialErr(t.Context(), s.ws(other), nil)
		if err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %v, %v", other, resp, err)
		}
	}
	for _, page := range []string{"/json/list", "/json/version", "/json/new?about:blank", "/devtools/page/X"} {
		if status, _, _ := s.do(t, http.MethodPut, "/client-a"+page); status != http.StatusUnauthorized {
			t.Errorf("%s: HTTP %d", page, status)
		}
	}
	for _, token := range []string{s.cfg.Auth.Token, s.cfg.AdminToken} { // not even these
		_, _, err := proxytest.DialErr(t.Context(), s.ws("/client-a"), http.Header{"Authorization": {"Bearer " + token}})
		if err == nil {
			t.Error("let in by a token")
		}
	}
	c := proxytest.Dial(t, s.ws(path))
	page := c.NewPage("about:blank")
	if status, _, body := s.get(t, path+"/json/list"); status != 200 || !strings.Contains(body, page.TargetID) || !strings.Contains(body, path+"/devtools/page/") {
		t.Errorf("its list: HTTP %d %s", status, body)
	}
	if connected, tabs, last := s.ClientActivity("a"); connected != 1 || tabs != 1 || time.Since(last) > time.Minute {
		t.Errorf("activity: %d connections, %d tabs, %v", connected, tabs, last)
	}
}

// Who guesses does not keep a lease from expiring; who has its capability does.
func TestWrongCapabilityIsNoActivity(t *testing.T) {
	s, path := leased(t, Tenant{}, nil)
	for _, guess := range []string{"/t/" + strings.Repeat("A", 32) + "/client-a", s.keys().Path("a", nil)} {
		status, _, _ := s.get(t, guess+"/json/list")
		if _, _, last := s.ClientActivity("a"); status != http.StatusUnauthorized || !last.IsZero() {
			t.Errorf("%s: HTTP %d, last activity %v", guess, status, last)
		}
	}
	status, _, _ := s.get(t, path+"/json/list")
	if _, _, last := s.ClientActivity("a"); status != http.StatusOK || last.IsZero() {
		t.Errorf("with the capability: HTTP %d, last activity %v", status, last)
	}
}

// While newcomers are turned away, who has a session goes on, over HTTP too.
func TestLeaseGoesOnWhileDraining(t *testing.T) {
	s, path := leased(t, Tenant{}, nil)
	proxytest.Dial(t, s.ws("/client-b")).NewPage("about:blank") // the browser is up
	if got := s.visit(t, http.MethodPost, "/v1/drain", "{}", map[string]string{"Authorization": "Bearer " + s.cfg.AdminToken}); got.status != 200 {
		t.Fatalf("drain: HTTP %d %s", got.status, got.body)
	}
	var told interface{ RetryAfter() time.Duration }
	if err := s.Refused(); !errors.As(err, &told) || told.RetryAfter() != 5*time.Second {
		t.Errorf("a caller who asks for a session hears %v, %+v", err, told)
	}
	for _, call := range []string{"/json/version", "/json/list", "/json/protocol"} {
		if status, _, body := s.get(t, path+call); status != 200 {
			t.Errorf("with the session, %s: HTTP %d %s", call, status, body)
		}
		if status, _, body := s.get(t, "/client-c"+call); status != 503 || !strings.Contains(body, "draining") {
			t.Errorf("without, %s: HTTP %d %s", call, status, body)
		}
	}
	proxytest.Dial(t, s.ws(path))
}

// A request that waits for the browser while a lease takes its client's id
// gets nothing of it.
func TestLeaseComesWhileTheBrowserIsAwaited(t *testing.T) {
	for _, path := range []string{"/client-a/json/new?about:blank", "/client-a/json/list"} {
		begun, up := make(chan struct{}), make(chan struct{})
		s := startServer(t, func(s *testServer) {
			s.address = func(context.Context) (string, error) {
				close(begun)
				<-up
				return s.browser.URL(), nil
			}
		})
		answer := make(chan int)
		go func() { status, _, _ := s.do(t, http.MethodPut, path); answer <- status }()
		<-begun
		err := s.Reserve("a", Tenant{Digest: []byte("digest")}, false)
		close(up)
		if status := <-answer; err != nil || status != http.StatusUnauthorized {
			t.Errorf("%s: HTTP %d, want 401; %v", path, status, err)
		}
		if connected, tabs, _ := s.ClientActivity("a"); connected != 0 || tabs != 0 {
			t.Errorf("%s: the lease has %d connections, %d tabs", path, connected, tabs)
		}
	}
}

// Who was let in before a lease came, or by one that went, does not get in.
func TestAddressIsCheckedAgainWhenItJoins(t *testing.T) {
	s, path := leased(t, Tenant{}, nil)
	plain := address{client: "a", socket: true}
	if s.enters(plain) {
		t.Error("in without a capability")
	}
	_, by, _ := access.Split(path)
	digest, ok := s.opens(s.keys(), strings.TrimSuffix(strings.TrimPrefix(path, "/t/"), by), by)
	with := address{client: "a", socket: true, digest: digest}
	if !ok || !s.enters(with) {
		t.Error("not in with the capability")
	}
	links := make(chan *wire.Link, 1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { links <- s.upgrade(w, r) }))
	defer front.Close()
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(front.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	// The handshake is over when the lease is there.
	if !s.admit("a") || s.join(<-links, plain) != nil {
		t.Error("joined without a capability")
	}
	ws.SetReadDeadline(time.Now().Add(patience))
	var late interface{ Timeout() bool }
	if _, _, err := ws.ReadMessage(); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Error("the connection was left open")
	}
	s.Free("a")
	if s.enters(with) || !s.enters(plain) {
		t.Error("the lease is gone, and its capability opens the id, or keeps it")
	}
}

func TestReserve(t *testing.T) {
	s, _ := leased(t, Tenant{}, func(s *testServer) { s.cfg.MaxClients, s.cfg.Grace = 3, time.Hour })
	wantKindOf(t, s.Reserve("a", Tenant{}, false), "client_in_use")
	proxytest.Dial(t, s.ws("/client-b"))
	wantKindOf(t, s.Reserve("b", Tenant{}, false), "client_in_use")
	c := proxytest.Dial(t, s.ws("/client-c"))
	wantKindOf(t, s.Reserve("d", Tenant{}, false), "capacity_unavailable")
	if _, resp, err := proxytest.DialErr(t.Context(), s.ws("/client-d"), nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a client when sessions have the last places: %v", err)
	}
	c.NewPage("about:blank")
	c.Close()
	await(t, "end of the connection", func() bool { connected, _, _ := s.ClientActivity("c"); return connected == 0 })
	wantKindOf(t, s.Reserve("c", Tenant{}, false), "client_in_use") // in grace
	if err := s.Reserve("c", Tenant{}, true); err != nil {          // but it may be one of before
		t.Error(err)
	}
}

// A lease of before whose release failed holds its place and lets nobody in.
func TestReserveOfWhatIsBeingReleased(t *testing.T) {
	s, path := leased(t, Tenant{Closing: true}, nil)
	if _, resp, err := proxytest.DialErr(t.Context(), s.ws(path), nil); err == nil || resp == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("let in: %v, %v", resp, err)
	}
	if status, _, body := s.get(t, path+"/json/list"); status != http.StatusUnauthorized {
		t.Errorf("its list: HTTP %d %s", status, body)
	}
	if err := s.Release(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	s.Free("a")
	proxytest.Dial(t, s.ws("/client-a"))
}

// Its tabs and its grace are its own, those of others stay as they are.
func TestTenantHasTabCapAndGraceOfItsOwn(t *testing.T) {
	tabs, grace := 1, time.Duration(0)
	s, path := leased(t, Tenant{TabCap: &tabs, Grace: &grace}, func(s *testServer) { s.cfg.Grace = time.Hour })
	a, b := proxytest.Dial(t, s.ws(path)), proxytest.Dial(t, s.ws("/client-b"))
	first, second := a.NewPage("about:blank"), a.NewPage("about:blank")
	a.AwaitEvent(first.Session, "Inspector.detached")
	kept := []proxytest.Page{b.NewPage("about:blank"), b.NewPage("about:blank")}
	if _, n, _ := s.ClientActivity("b"); n != 2 {
		t.Errorf("the other client has %d tabs", n)
	}
	a.Close()
	b.Close()
	s.browser.AwaitCommand(func(c proxytest.Command) bool {
		return c.Method == "Target.closeTarget" && strings.Contains(string(c.Params), second.TargetID)
	})
	if _, n, _ := s.ClientActivity("b"); n != 2 || kept[0].TargetID == "" {
		t.Errorf("the other client has %d tabs in its grace", n)
	}
	s.Free("a")
}

// A release is over when Chrome has closed the tabs, and no sooner.
func TestReleaseWaitsForTheTabs(t *testing.T) {
	s, path := leased(t, Tenant{}, nil)
	c := proxytest.Dial(t, s.ws(path))
	c.NewPage("about:blank")
	s.browser.Fault("Target.closeTarget", proxytest.Fault{Ignore: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Release(ctx, "a"); err == nil || !strings.Contains(err.Error(), "tabs") {
		t.Errorf("a tab that stays: %v", err)
	}
	if code, text := c.CloseStatus(); code != 1000 || text != "its session was closed" {
		t.Errorf("its client was told %d %q", code, text)
	}
	if _, _, err := proxytest.DialErr(t.Context(), s.ws(path), nil); err == nil {
		t.Error("let in while it is released")
	}
	s.browser.Fault("Target.closeTarget", proxytest.Fault{})
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Release(ctx, "a"); err != nil { // it is retried
		t.Error(err)
	}
	s.Free("a")
	proxytest.Dial(t, s.ws("/client-a"))
}

// What went with the browser is released.
func TestReleaseWithoutABrowser(t *testing.T) {
	s, _ := leased(t, Tenant{}, func(s *testServer) {
		s.cfg.Life.Stop = func(bool) (any, bool) { return nil, true }
	})
	if err := s.Release(t.Context(), "a"); err != nil {
		t.Errorf("before any browser: %v", err)
	}
	s.Free("a")
	if err := s.Reserve("a", Tenant{}, false); err != nil {
		t.Fatal(err)
	}
	proxytest.Dial(t, s.ws("/client-b")).NewPage("about:blank")
	if _, _, err := s.StopBrowser(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), "a"); err != nil {
		t.Errorf("after the browser: %v", err)
	}
}
