package main_test

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// raw is a TCP connection on which the test writes every byte itself.
type raw struct {
	net.Conn
	read *bufio.Reader
}

func dialRaw(t *testing.T, addr string) *raw {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &raw{conn, bufio.NewReader(conn)}
}

// ask sends a request head of these lines and reads the response's head; err is io.EOF when there is none.
func (r *raw) ask(t *testing.T, lines ...string) (*http.Response, error) {
	t.Helper()
	if _, err := r.Write([]byte(strings.Join(lines, "\r\n") + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	return http.ReadResponse(r.read, nil)
}

// upgrade are the lines of a handshake.
func upgrade(path, key string, more ...string) []string {
	return append([]string{
		"GET " + path + " HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + key,
	}, more...)
}

const usualKey = "dGhlIHNhbXBsZSBub25jZQ=="

// open shakes hands and checks the accept value.
func (r *raw) open(t *testing.T, path, key string, more ...string) *http.Response {
	t.Helper()
	resp, err := r.ask(t, upgrade(path, key, append(more, "Host: "+r.RemoteAddr().String())...)...)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("handshake at %s: want 101, got %v %v", path, resp, err)
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	want := base64.StdEncoding.EncodeToString(sum[:])
	if got := resp.Header.Get("Sec-WebSocket-Accept"); got != want {
		t.Errorf("accept value over the key %q: want %s, got %s", key, want, got)
	}
	return resp
}

// Opcodes of RFC 6455, and the bit that ends a message.
const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xA
	fin        = 0x80
)

// frameHead is the head of a client's frame, masked with zeros.
func frameHead(first byte, length int) []byte {
	head := []byte{first, 0x80 | byte(length)}
	if length > 125 {
		head[1] = 0x80 | 127
		head = binary.BigEndian.AppendUint64(head, uint64(length))
	}
	return append(head, 0, 0, 0, 0)
}

// send writes a frame; an error shows in what is read next.
func (r *raw) send(first byte, payload string) {
	_, _ = r.Write(append(frameHead(first, len(payload)), payload...))
}

// frame reads one frame of the server.
func (r *raw) frame() (first byte, payload string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r.read, head[:]); err != nil {
		return 0, "", err
	}
	length := uint64(head[1])
	switch head[1] {
	case 126:
		var long uint16
		err = binary.Read(r.read, binary.BigEndian, &long)
		length = uint64(long)
	case 127:
		err = binary.Read(r.read, binary.BigEndian, &length)
	}
	if err != nil {
		return 0, "", err
	}
	text := make([]byte, length)
	_, err = io.ReadFull(r.read, text)
	return head[0], string(text), err
}

// closeCode reads frames up to the close frame.
func (r *raw) closeCode(t *testing.T) (code int, reason string) {
	t.Helper()
	for {
		first, payload, err := r.frame()
		if err != nil {
			t.Fatalf("close frame: want one, got %v", err)
		}
		if first == fin|opClose && len(payload) >= 2 {
			return int(binary.BigEndian.Uint16([]byte(payload))), payload[2:]
		}
	}
}

// Names that a browser page could give the proxy are refused; so is every page.
func TestHostsAndOrigins(t *testing.T) {
	const refusal = "Host header is specified and is not an IP address or localhost."
	m := serve(t, "--allow-host", "mux.example", "--allow-origin", "http://good.example")
	m.dial(t, "a").NewPage("about:blank") // the browser runs
	self := "Host: " + m.addr
	for _, each := range []struct {
		lines []string
		want  int // of the HTTP request; the upgrade is answered 101 for 200
		body  string
	}{
		{[]string{self}, 200, ""},
		{[]string{"Host: localhost"}, 200, ""},
		{[]string{"Host: localhost:1"}, 200, ""},
		{[]string{"Host: LOCALHOST"}, 200, ""},
		{[]string{"Host: deep.sub.localhost:9222"}, 200, ""},
		{[]string{"Host: 10.1.2.3"}, 200, ""},
		{[]string{"Host: 8.8.8.8:80"}, 200, ""},
		{[]string{"Host: [::1]"}, 200, ""},
		{[]string{"Host: [2001:db8::1]:9222"}, 200, ""},
		{[]string{"Host:"}, 200, ""},
		{[]string{"Host: mux.example"}, 200, ""},
		{[]string{"Host: mux.example:80"}, 200, ""},
		{[]string{"Host: example.com"}, 500, refusal},
		{[]string{"Host: example.com:" + strings.Split(m.addr, ":")[1]}, 500, refusal},
		{[]string{"Host: my-host"}, 500, refusal},
		{[]string{"Host: host.docker.internal"}, 500, refusal},
		{[]string{"Host: localhost.example.com"}, 500, refusal},
		{[]string{"Host: notlocalhost"}, 500, refusal},
		{[]string{"Host: 127.0.0.1.example.com"}, 500, refusal},

		{[]string{self, "Origin: http://good.example"}, 200, ""},
		{[]string{self, "Origin: http://" + m.addr}, 403, ""},
		{[]string{self, "Origin: http://localhost:" + strings.Split(m.addr, ":")[1]}, 403, ""},
		{[]string{self, "Origin: http://example.com"}, 403, ""},
		{[]string{self, "Origin: https://good.example"}, 403, ""},
		{[]string{self, "Origin: http://good.example.evil.example"}, 403, ""},
		{[]string{self, "Origin: devtools://devtools"}, 403, ""},
		{[]string{self, "Origin: chrome-extension://abc"}, 403, ""},
		{[]string{self, "Origin: null"}, 403, ""},
		{[]string{self, "Origin:"}, 403, ""},
		{[]string{self, "Origin: http://good.example", "Origin: http://example.com"}, 403, ""},

		{[]string{self, "Sec-Fetch-Site: cross-site"}, 403, ""},
		{[]string{self, "Sec-Fetch-Site: same-origin"}, 200, ""},
		{[]string{self, "Sec-Fetch-Site: none"}, 200, ""},

		{[]string{self, "X-Forwarded-For: 192.0.2.1"}, 401, ""},
	} {
		name := strings.Join(each.lines, " | ")
		check := func(kind string, want int, lines ...string) {
			resp, err := dialRaw(t, m.addr).ask(t, append(lines, each.lines...)...)
			if err != nil {
				t.Errorf("%s of %s: want %d, got %v", kind, name, want, err)
				return
			}
			if resp.StatusCode != want {
				t.Errorf("%s of %s: want %d, got %d", kind, name, want, resp.StatusCode)
				return
			}
			if want >= 400 {
				body, _ := io.ReadAll(resp.Body)
				if got := strings.TrimSpace(string(body)); got == "" || each.body != "" && got != each.body {
					t.Errorf("%s of %s: want a body that says why, %q, got %q", kind, name, each.body, got)
				}
			}
		}
		check("GET /json/version", each.want, "GET /json/version HTTP/1.1")
		check("GET /client-x/json/list", each.want, "GET /client-x/json/list HTTP/1.1")
		upgraded := each.want
		if upgraded == 200 {
			upgraded = 101
		}
		check("upgrade", upgraded, upgrade("/client-x", usualKey)...)
	}

	t.Run("no Host at all", func(t *testing.T) {
		for _, lines := range [][]string{{"GET /json/version HTTP/1.1"}, upgrade("/client-x", usualKey)} {
			resp, err := dialRaw(t, m.addr).ask(t, lines...)
			if err == nil && resp.StatusCode < 400 {
				t.Errorf("%s without Host: want a refusal, got %s", lines[0], resp.Status)
			}
		}
	})

	t.Run("address in the answer", func(t *testing.T) {
		resp, err := dialRaw(t, m.addr).ask(t, "GET /client-x/json/version HTTP/1.1", "Host: mux.example:123")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if !strings.Contains(string(body), `"ws://mux.example:123/client-x`) {
			t.Errorf("webSocketDebuggerUrl: want it built from the request's Host, ws://mux.example:123/client-x…, got %s", body)
		}
	})
}

// A client id is [A-Za-z0-9_-]{1,64}; what else could be meant is said.
func TestPaths(t *testing.T) {
	m := serve(t)
	for path, want := range map[string]int{
		"/client-ok_-9":                      101,
		"/client-" + strings.Repeat("x", 64): 101,
		"/devtools/browser/ok":               101,
		"/client-":                           400,
		"/client-" + strings.Repeat("x", 65): 400,
		"/client-a.b":                        400,
		"/client-a%20b":                      400,
		"/client-a%2fb":                      400,
		"/client-%C3%A4":                     400,
		"/client-<task_id>":                  400,
		"/devtools/browser/a.b":              400,
		"/client-a/nonsense":                 404,
		"/nonsense":                          404,
	} {
		resp, err := dialRaw(t, m.addr).ask(t, upgrade(path, usualKey, "Host: "+m.addr)...)
		if err != nil {
			t.Errorf("upgrade at %s: want %d, got %v", path, want, err)
			continue
		}
		if resp.StatusCode != want {
			t.Errorf("upgrade at %s: want %d, got %s", path, want, resp.Status)
			continue
		}
		if want == 400 {
			if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "1 to 64 characters of A-Z a-z 0-9 _ -") {
				t.Errorf("upgrade at %s: want a body that says which ids are good, got %q", path, body)
			}
		}
	}
	if status, body := request(t, http.MethodGet, m.http("/client-a.b/json/list")); status != 400 || !strings.Contains(string(body), "1 to 64 characters of A-Z a-z 0-9 _ -") {
		t.Errorf("GET /client-a.b/json/list: want 400 and which ids are good, got %d %q", status, body)
	}
}

// The 17th client is told to come back later, before the upgrade.
func TestMaxClients(t *testing.T) {
	m := serve(t)
	var first *proxytest.Client
	for i := range 16 {
		c := m.dial(t, fmt.Sprint("c", i))
		if first == nil {
			first = c
		}
	}
	refused := func() (*http.Response, bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, resp, err := proxytest.DialErr(ctx, m.ws("/client-c16"), nil)
		if err == nil {
			c.Drop()
		}
		return resp, err != nil
	}
	resp, no := refused()
	if !no || resp == nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the 17th client: want 503 with Retry-After, got %+v", resp)
	}
	m.dial(t, "c15") // one that is there already may come again

	first.Drop()
	eventually(t, 5*time.Second, "place for another client after one left", func() bool {
		_, no := refused()
		return !no
	})
}

// go-rod sends the literal key "nil", and panics on anything but whole text frames.
func TestHandshakeOfRod(t *testing.T) {
	m := serve(t)
	r := dialRaw(t, m.addr)
	r.open(t, "/client-rod", "nil")

	_ = r.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if first, payload, err := r.frame(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("before the client speaks: want not one byte, got frame %#x %q, %v", first, payload, err)
	}
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	r.send(fin|opText, `{"id":1,"method":"Browser.getVersion"}`)
	first, payload, err := r.frame()
	if err != nil || first != fin|opText || !strings.HasPrefix(unpadded(payload), `{"id":1,"result":{`) {
		t.Errorf("reply to rod: want it in one text frame, got %#x %q, %v", first, payload, err)
	}

	// Sent after a shutdown, a close frame with a reason would be a panic there.
	_ = m.cmd.Process.Signal(os.Interrupt)
	if first, payload, err := r.frame(); err == nil {
		t.Errorf("end of rod's connection: want TCP dropped, got frame %#x %q", first, payload)
	}
}

// No compression, whoever offers it; and nothing is said before the client speaks.
func TestHandshakeOfOthers(t *testing.T) {
	m := serve(t)
	r := dialRaw(t, m.addr)
	resp := r.open(t, "/client-a", usualKey, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
	if got := resp.Header.Get("Sec-WebSocket-Extensions"); got != "" {
		t.Errorf("extensions agreed on: want none, got %q", got)
	}
	_ = r.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if first, payload, err := r.frame(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("before the client speaks: want not one byte, got frame %#x %q, %v", first, payload, err)
	}

	// A command in three fragments, a ping between them.
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	r.send(opText, `{"id":1,"method":`)
	r.send(opContinue, `"Browser.get`)
	r.send(fin|opPing, "hello")
	if first, payload, err := r.frame(); err != nil || first != fin|opPong || payload != "hello" {
		t.Errorf("answer to a ping: want its pong at once, got frame %#x %q, %v", first, payload, err)
	}
	r.send(fin|opContinue, `Version"}`)
	if first, payload, err := r.frame(); err != nil || first != fin|opText || !strings.HasPrefix(unpadded(payload), `{"id":1,"result":{`) {
		t.Errorf("reply to a command in fragments: want it in one text frame, got %#x %q, %v", first, payload, err)
	}
}

// Frames on which Chrome would drop the one connection that all share end
// their sender's connection instead.
func TestHarmfulFrames(t *testing.T) {
	const limit = 104857600
	m := serve(t)
	neighbour := m.dial(t, "neighbour")
	stays := neighbour.NewPage("about:blank")
	open := never(neighbour, stays.Session)
	for _, each := range []struct {
		name string
		send func(*raw)
		want int
	}{
		{"binary", func(r *raw) { r.send(fin|opBinary, `{"id":1,"method":"Browser.getVersion"}`) }, 1003},
		{"100 MiB", func(r *raw) { _, _ = r.Write(frameHead(fin|opText, limit)) }, 1009},
		{"2^63-1 bytes", func(r *raw) { _, _ = r.Write(frameHead(fin|opText, 1<<63-1)) }, 1009},
		{"100 MiB in two fragments", func(r *raw) {
			r.send(opText, strings.Repeat(" ", limit/2))
			_, _ = r.Write(frameHead(fin|opContinue, limit/2))
		}, 1009},
	} {
		t.Run(each.name, func(t *testing.T) {
			r := dialRaw(t, m.addr)
			r.open(t, "/client-a", usualKey)
			each.send(r)
			if code, reason := r.closeCode(t); code != each.want {
				t.Errorf("close code: want %d, got %d %q", each.want, code, reason)
			}
			mustBeAlive(t, "the neighbour", stays)
		})
	}
	if open.Answered() {
		t.Errorf("the neighbour's open command: want the browser's connection kept and no answer, got %v", neighbour.Replies(open.ID))
	}
}
