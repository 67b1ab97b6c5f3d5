package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// hangsUp waits until the server closes a connection that it was sent nothing
// more on.
func hangsUp(t *testing.T, conn net.Conn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("it is still open")
	}
}

// answers sends a request on an open connection and reads the status.
func answers(t *testing.T, conn net.Conn, request string) int {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// Who sends no whole request keeps nobody out for long, and what is up stays up.
func TestConnectionsWithoutARequestAreBounded(t *testing.T) {
	s := startServer(t, nil)
	c := proxytest.Dial(t, s.ws("/client-a"))
	kept := handshakeNothing(t, s.addr)
	healthz := "GET /healthz HTTP/1.1\r\nHost: " + s.addr + "\r\n\r\n"
	if status := answers(t, kept, healthz); status != 200 {
		t.Fatalf("healthz: %d", status)
	}
	var silent []net.Conn
	for range mostWaiting { // they are counted in their order
		silent = append(silent, handshakeNothing(t, s.addr))
	}
	for range 3 {
		hangsUp(t, handshakeNothing(t, s.addr))
	}
	if st := s.Status(); st.TurnedAway != 3 {
		t.Errorf("turned away: %d, want 3", st.TurnedAway)
	}
	c.Call("", "Browser.getVersion", nil)
	if status := answers(t, kept, healthz); status != 200 {
		t.Errorf("a connection of before: %d", status)
	}
	for _, conn := range silent {
		conn.Close()
	}
	await(t, "room for a newcomer", func() bool {
		b, _, err := proxytest.DialErr(t.Context(), s.ws("/client-b"), nil)
		if err == nil {
			b.Drop()
		}
		return err == nil
	})
}

// A head that does not come to its end in time, and one that is too long.
func TestHeadsAreBounded(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.http.ReadHeaderTimeout = 50 * time.Millisecond })
	slow := handshakeNothing(t, s.addr)
	defer slow.Close()
	fmt.Fprint(slow, "GET /client-a HTTP/1.1\r\n")
	hangsUp(t, slow)

	s = startServer(t, nil)
	if s.http.ReadHeaderTimeout != 5*time.Second {
		t.Errorf("a head may take %s", s.http.ReadHeaderTimeout)
	}
	for size, want := range map[int]int{60 << 10: 200, 64 << 10: 431, 1 << 20: 431} {
		conn := handshakeNothing(t, s.addr)
		go func() { // it may be refused before it is sent
			fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: "+s.addr+"\r\nX: "+strings.Repeat("x", size)+"\r\n\r\n")
		}()
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%d bytes: %+v, %v, want %d", size, resp, err, want)
		}
		conn.Close()
	}
}

// A body that does not come holds nothing for ever, where it is read and where
// it is not; one that came bounds nothing.
func TestBodiesAreBounded(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		s.cfg.AdminToken = testAdmin
		s.limits.body = 50 * time.Millisecond
	})
	for _, line := range []string{"POST /v1/hold", "GET /healthz", "POST /client-a/json/new"} {
		conn := handshakeNothing(t, s.addr)
		fmt.Fprint(conn, line+" HTTP/1.1\r\nHost: "+s.addr+"\r\n"+bearer+testAdmin+"\r\nContent-Length: 1000\r\n\r\n{")
		hangsUp(t, conn)
		conn.Close()
	}
	release := make(chan struct{})
	slow := startServer(t, func(s *testServer) {
		s.limits.body = 50 * time.Millisecond
		s.address = func(ctx context.Context) (string, error) {
			select {
			case <-release:
				return s.browser.URL(), nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	})
	time.AfterFunc(300*time.Millisecond, func() { close(release) }) // well after the bound
	if status, body := slow.raw(t, "POST /v1/browser/start HTTP/1.1\r\nHost: "+slow.addr+"\r\nContent-Length: 2\r\n\r\n{}"); status != 200 {
		t.Errorf("an answer that takes longer than a body may: %d %q", status, body)
	}
}

// Not too many requests wait for the browser at once; the operator's and probes
// are answered all the same.
func TestWaitingRequestsAreBounded(t *testing.T) {
	const most = 4
	up := make(chan struct{})
	s := startServer(t, func(s *testServer) {
		s.cfg.AdminToken = testAdmin
		s.limits.answering = most
		s.address = func(context.Context) (string, error) {
			<-up
			return s.browser.URL(), nil
		}
	})
	answers := make(chan int, most)
	for range most {
		go func() { status, _, _ := s.get(t, "/json/version"); answers <- status }()
	}
	await(t, "all of them", func() bool { return s.answering.Load() == most })
	if status, body := s.raw(t, "GET /client-a/json/list HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n"); status != 503 || !strings.Contains(body, "capacity_unavailable") {
		t.Errorf("one too many: %d %s", status, body)
	}
	for _, request := range []string{"GET /healthz HTTP/1.1\r\n", "GET /readyz HTTP/1.1\r\n", "GET /status HTTP/1.1\r\n" + bearer + testAdmin + "\r\n"} {
		if status, body := s.raw(t, request+"Host: "+s.addr+"\r\n\r\n"); status != 200 {
			t.Errorf("%q: %d %s", request, status, body)
		}
	}
	close(up)
	for range most {
		if status := <-answers; status != 200 {
			t.Errorf("who waited: %d", status)
		}
	}
	if status, _, _ := s.get(t, "/json/version"); status != 200 {
		t.Errorf("when they are answered: %d", status)
	}
}
