package access

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const patience = 20 * time.Second // for what must happen

// await polls for what a test cannot be told of.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// connect connects and sends some text.
func connect(t *testing.T, s *httptest.Server, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(conn, text)
	return conn
}

// status is that of the next answer.
func status(t *testing.T, conn net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// hangsUp waits until the server closes a connection that it was sent nothing
// more on.
func hangsUp(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("it is still open")
	}
}

const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

func serveCrowd(t *testing.T, c *Crowd) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = c.Note
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (c *Crowd) waiting(state http.ConnState) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count[state]
}

// Of those that send no whole request, the newest go.
func TestCrowdWithoutARequest(t *testing.T) {
	const most = 8
	c := NewCrowd(most)
	s := serveCrowd(t, c)
	kept := connect(t, s, request)
	if got := status(t, kept); got != 200 {
		t.Fatalf("HTTP %d", got)
	}
	var silent []net.Conn
	for i := range most {
		silent = append(silent, connect(t, s, request[:i])) // some of it, or nothing
	}
	await(t, "a crowd", func() bool { return c.waiting(http.StateNew) == most })
	for range 3 {
		hangsUp(t, connect(t, s, ""))
	}
	if n := c.TurnedAway(); n != 3 {
		t.Errorf("turned away: %d, want 3", n)
	}
	fmt.Fprint(kept, request)
	if got := status(t, kept); got != 200 {
		t.Errorf("a connection of before: HTTP %d", got)
	}
	for i, conn := range silent {
		fmt.Fprint(conn, request[i:])
		if got := status(t, conn); got != 200 {
			t.Errorf("a slow one: HTTP %d", got)
		}
		conn.Close()
	}
	await(t, "an end of the crowd", func() bool { return c.waiting(http.StateNew)+c.waiting(http.StateIdle) == 1 })
	if got := status(t, connect(t, s, request)); got != 200 {
		t.Errorf("a newcomer: HTTP %d", got)
	}
}

// Connections that are kept for a further request are bounded, too.
func TestIdleCrowd(t *testing.T) {
	const most = 4
	c := NewCrowd(most)
	s := serveCrowd(t, c)
	for i := range most + 2 {
		conn := connect(t, s, request)
		if got := status(t, conn); got != 200 {
			t.Fatalf("HTTP %d", got)
		}
		if i < most {
			await(t, "it is idle", func() bool { return c.waiting(http.StateIdle) == i+1 })
			defer func() {
				fmt.Fprint(conn, request)
				if got := status(t, conn); got != 200 {
					t.Errorf("connection %d: HTTP %d", i, got)
				}
			}()
		} else {
			hangsUp(t, conn)
		}
	}
	if n := c.TurnedAway(); n != 0 {
		t.Errorf("turned away: %d", n)
	}
}
