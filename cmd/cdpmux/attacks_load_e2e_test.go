package main_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// memoryMost is what any number of attempts may cost the proxy.
const memoryMost = 64 << 20

// Who never ends a request, or sends an endless one, is dropped in time; it
// costs little, and nobody else notices.
func TestAttacksByWaiting(t *testing.T) {
	t.Parallel()
	f := newFortressOf(t, plainBinary(t))
	defer f.print()
	before := f.memory(t, "VmRSS")
	beginnings := []string{
		"", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: " + f.addr + "\r\nX: ",
		"POST /v1/drain HTTP/1.1\r\nHost: " + f.addr + "\r\nContent-Length: 1000000\r\n\r\n{",
		"POST /v1/drain HTTP/1.1\r\nHost: " + f.addr + "\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n",
		strings.Join(upgrade("/client-x", usualKey, "Host: "+f.addr), "\r\n") + "\r\n", // one line end too few
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	}
	var waiting []net.Conn
	total := scaled(t, 10000)
	peak := 0
	for i := range total {
		conn, err := net.Dial("tcp", f.addr)
		if err != nil { // it does not even listen to so many
			f.tried(false, "")
			continue
		}
		_, _ = conn.Write([]byte(beginnings[i%len(beginnings)]))
		waiting = append(waiting, conn)
		if i%200 == 0 {
			f.holds(t)
			peak = max(peak, f.memory(t, "VmRSS"))
		}
	}
	f.holds(t)
	peak = max(peak, f.memory(t, "VmRSS"))
	for _, conn := range waiting {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err := io.Copy(io.Discard, conn)
		f.tried(errors.Is(err, os.ErrDeadlineExceeded), "a connection that says nothing more is still open after 20 s")
		conn.Close()
	}
	f.tried(peak > before+memoryMost, "%d connections that wait cost %d MiB", total, (peak-before)>>20)
	f.holds(t)
	t.Logf("%d connections: %d KiB before, %d KiB at the most", total, before>>10, peak>>10)
}

// A head of any size is refused, one without an end too.
func TestAttacksByTheHead(t *testing.T) {
	t.Parallel()
	f := newFortressOf(t, plainBinary(t))
	defer f.print()
	before := f.memory(t, "VmRSS")
	for name, line := range map[string]string{
		"one header": "X: " + strings.Repeat("a", 1<<20), "many headers": strings.Repeat("X: a\r\n", 1<<18),
		"a long path": "", "a long token": "Authorization: Bearer " + strings.Repeat("a", 1<<20),
	} {
		path := "/json/list"
		if line == "" {
			path += "?" + strings.Repeat("a", 1<<20)
		}
		conn, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		go func() { _, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n", path, f.addr, line) }()
		answer, err := io.ReadAll(conn)
		f.tried(errors.Is(err, os.ErrDeadlineExceeded) || strings.HasPrefix(string(answer), "HTTP/1.1 200"), "%s: %.60q, %v", name, answer, err)
		conn.Close()
	}
	conn, err := net.Dial("tcp", f.addr) // and one that never ends
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	sent := 0
	for piece := []byte("X: " + strings.Repeat("a", 1000) + "\r\n"); err == nil && sent < 64<<20; {
		var n int
		n, err = conn.Write(piece)
		sent += n
	}
	f.tried(err == nil || errors.Is(err, os.ErrDeadlineExceeded), "%d bytes of one head were taken", sent)
	now := f.memory(t, "VmHWM")
	f.tried(now > before+memoryMost, "heads cost %d MiB", (now-before)>>20)
	f.holds(t)
}

// Frames that break the protocol end their own connection at most.
func TestAttacksByFrames(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	defer f.print()
	path := f.path(t, "mallory")
	browser := f.fake.Conns()
	before := f.memory(t, "VmRSS")
	huge := frameHead(fin|opText, 1<<40)
	for name, bytes := range map[string][]byte{
		"not masked": {fin | opText, 2, '{', '}'}, "reserved bits": {fin | 0x70 | opText, 0x80, 0, 0, 0, 0},
		"unknown opcode": {fin | 0x5, 0x80, 0, 0, 0, 0}, "control frame in pieces": {opPing, 0x80, 0, 0, 0, 0},
		"long control frame":    append([]byte{fin | opPing, 0x80 | 126, 0, 200, 0, 0, 0, 0}, make([]byte, 200)...),
		"continues nothing":     {fin | opContinue, 0x80, 0, 0, 0, 0},
		"message in message":    append(append(frameHead(opText, 1), '{'), append(frameHead(fin|opText, 2), '{', '}')...),
		"binary":                append(frameHead(fin|opBinary, 2), '{', '}'),
		"negative length":       {fin | opText, 0x80 | 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0},
		"announced, never sent": huge, "close of one byte": {fin | opClose, 0x81, 0, 0, 0, 0, 1},
		"close code 0": {fin | opClose, 0x82, 0, 0, 0, 0, 0, 0}, "no UTF-8": append(frameHead(fin|opText, 4), 0xff, 0xfe, 0xc0, 0x80),
		"deep JSON":     append(frameHead(fin|opText, 1<<20), strings.Repeat("[", 1<<20)...),
		"endless array": append(frameHead(fin|opText, 1<<20), `{"id":1,"params":[`+strings.Repeat("[],", (1<<20-18)/3)...),
		"http":          []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		r := dialRaw(t, f.addr)
		r.open(t, path, usualKey)
		_, _ = r.Write(bytes)
		_ = r.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // some of it is answered, some of it waited for
		_, _ = io.Copy(io.Discard, r.read)
		f.tried(f.fake.Conns() != browser || f.hasExited(), "%s: it reached the browser's connection", name)
		r.Close()
	}
	r := dialRaw(t, f.addr) // a flood of pings that nobody reads the answers of
	r.open(t, path, usualKey)
	ping := append(frameHead(fin|opPing, 125), make([]byte, 125)...)
	_ = r.SetWriteDeadline(time.Now().Add(2 * time.Second))
	for range 200_000 {
		if _, err := r.Write(ping); err != nil {
			break
		}
	}
	now := f.memory(t, "VmHWM")
	f.tried(now > before+memoryMost, "frames cost %d MiB", (now-before)>>20)
	f.holds(t)
}
