package proxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

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

// handshakeNothing connects and says nothing.
func handshakeNothing(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}
