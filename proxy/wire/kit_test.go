package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const patience = 20 * time.Second // for what must happen

// bounds are what the links of these tests live by.
type bounds struct {
	Limits
	slow SlowLimit
}

func usual() bounds {
	return bounds{Limits{CloseWait: time.Second, Tick: 250 * time.Millisecond}, SlowLimit{Soft: 64 << 20, Hard: 256 << 20, Stall: 10 * time.Second}}
}

func quick() bounds {
	return bounds{Limits{CloseWait: 200 * time.Millisecond, Tick: 10 * time.Millisecond}, SlowLimit{Soft: 64 << 20, Hard: 256 << 20, Stall: 200 * time.Millisecond}}
}

// serveLink serves one WebSocket with a link, whose reader discards. The link
// is nil when the handshake is refused.
func serveLink(t *testing.T, lim bounds) (addr string, links <-chan *Link) {
	t.Helper()
	ready := make(chan *Link, 1)
	done := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		l := Accept(w, r, lim.Limits, lim.slow, func(w http.ResponseWriter, status int, text string) { http.Error(w, text, status) })
		ready <- l
		if l == nil {
			return
		}
		go l.WriteLoop()
		for {
			if _, _, err := l.ws.NextReader(); err != nil {
				l.HangUp(err)
				return
			}
		}
	}))
	t.Cleanup(func() {
		<-done
		s.Close()
	})
	return s.Listener.Addr().String(), ready
}

func dialLink(t *testing.T, lim bounds) (*Link, *websocket.Conn) {
	t.Helper()
	addr, links := serveLink(t, lim)
	ws, _, err := websocket.DefaultDialer.Dial("ws://"+addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	ws.SetReadDeadline(time.Now().Add(patience))
	return <-links, ws
}

// await polls for what a test cannot be told of.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// readHeader reads the header of one frame of a server.
func readHeader(t *testing.T, r io.Reader) (first byte, length int) {
	t.Helper()
	var head [10]byte
	read := func(n int) []byte {
		if _, err := io.ReadFull(r, head[:n]); err != nil {
			t.Fatal(err)
		}
		return head[:n]
	}
	b := read(2)
	first, length = b[0], int(b[1])
	switch length {
	case 126:
		length = int(binary.BigEndian.Uint16(read(2)))
	case 127:
		length = int(binary.BigEndian.Uint64(read(8)))
	}
	return first, length
}

// skipFrame reads one frame.
func skipFrame(t *testing.T, r io.Reader) (first byte, length int) {
	t.Helper()
	first, length = readHeader(t, r)
	if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
		t.Fatal(err)
	}
	return first, length
}

// handshake sends a WebSocket handshake with a key of the test's own and
// returns the answer and what follows it.
func handshake(t *testing.T, addr, path, key string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n", path, addr, key)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return conn, r, resp
}
