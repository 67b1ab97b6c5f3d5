package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"cdpmux/proxy/access"
	"cdpmux/proxy/proxytest"
	"cdpmux/proxy/wire"
)

// startTLS serves with TLS, and returns a dialer that trusts its certificate.
func startTLS(t *testing.T, setup func(*testServer)) (*testServer, *websocket.Dialer) {
	t.Helper()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	roots := x509.NewCertPool()
	roots.AddCert(proxytest.KeyPair(t, certFile, keyFile))
	config, err := access.TLSConfig(certFile, keyFile, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, func(s *testServer) {
		s.cfg.TLS = config
		if setup != nil {
			setup(s)
		}
	})
	return s, &websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}}}
}

func dialTLS(t *testing.T, d *websocket.Dialer, address string) *websocket.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ws, resp, err := d.DialContext(ctx, address, nil)
	if err != nil {
		t.Fatalf("%s: %v, %+v", address, err, resp)
	}
	t.Cleanup(func() { ws.Close() })
	return ws
}

// askTLS sends a command with id 1 and returns its result, past all events.
func askTLS(t *testing.T, ws *websocket.Conn, method, params string) []byte {
	t.Helper()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"method":"`+method+`","params":`+params+`}`)); err != nil {
		t.Fatal(err)
	}
	for {
		_ = ws.SetReadDeadline(time.Now().Add(patience))
		_, text, err := ws.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		var reply struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(text, &reply); err != nil {
			t.Fatal(err)
		}
		if reply.ID == 1 {
			return reply.Result
		}
	}
}

// askMuch asks a page for replies of a MiB.
func askMuch(t *testing.T, ws *websocket.Conn, count int) {
	t.Helper()
	var page struct{ TargetID, SessionID string }
	if err := json.Unmarshal(askTLS(t, ws, "Target.createTarget", `{"url":"about:blank"}`), &page); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(askTLS(t, ws, "Target.attachToTarget", `{"flatten":true,"targetId":"`+page.TargetID+`"}`), &page); err != nil {
		t.Fatal(err)
	}
	for range count {
		command := `{"id":2,"method":"Runtime.evaluate","params":{"expression":"big(1048576)"},"sessionId":"` + page.SessionID + `"}`
		if err := ws.WriteMessage(websocket.TextMessage, []byte(command)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLS(t *testing.T) {
	s, dialer := startTLS(t, nil)
	ws := dialTLS(t, dialer, "wss://"+s.addr+"/client-a")
	if reply := askTLS(t, ws, "Browser.getVersion", "{}"); !bytes.Contains(reply, []byte(`"product"`)) {
		t.Errorf("reply: %s", reply)
	}
	if state := ws.NetConn().(*tls.Conn).ConnectionState(); state.NegotiatedProtocol != "http/1.1" {
		t.Errorf("protocol %q", state.NegotiatedProtocol)
	}
	conn, err := tls.Dial("tcp", s.addr, dialer.TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /client-a/json/version HTTP/1.0\r\nHost: " + s.addr + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil || !strings.Contains(answer.String(), `"wss://`+s.addr+`/client-a"`) {
		t.Errorf("%v: %s", err, &answer)
	}
	// Without TLS it says what is wrong.
	if status, body := s.raw(t, "GET /json/version HTTP/1.1\r\nHost: "+s.addr+"\r\n\r\n"); status != 400 || !strings.Contains(body, "HTTPS") {
		t.Errorf("without TLS: %d %q", status, body)
	}
	if err := ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, 1000) {
		t.Errorf("its end: %v", err)
	}
}

// A client that reads late gets all of it: a write that waits spoils nothing.
func TestTLSAndASlowReader(t *testing.T) {
	s, dialer := startTLS(t, func(s *testServer) { s.limits.Tick = 5 * time.Millisecond })
	ws := dialTLS(t, dialer, "wss://"+s.addr+"/client-a")
	const count, size = 40, 1 << 20
	askMuch(t, ws, count)
	// More waits than any buffer of the system takes, for many ticks.
	await(t, "a writer that waits", func() bool {
		for _, c := range s.Status().Clients {
			if c.QueuedBytes > 8<<20 {
				return true
			}
		}
		return false
	})
	time.Sleep(20 * s.limits.Tick) // what is tested is that time passes
	_ = ws.SetReadDeadline(time.Now().Add(patience))
	for i := range count {
		if _, reply, err := ws.ReadMessage(); err != nil || len(reply) < size {
			t.Fatalf("reply %d: %d bytes, %v", i, len(reply), err)
		}
	}
}

// A client that reads nothing at all is given up, with TLS as without.
func TestTLSAndASlowConsumer(t *testing.T) {
	s, dialer := startTLS(t, func(s *testServer) {
		s.limits.Tick = 5 * time.Millisecond
		s.limits.client = wire.SlowLimit{Soft: 1 << 20, Hard: 1 << 30, Stall: 50 * time.Millisecond}
	})
	ws := dialTLS(t, dialer, "wss://"+s.addr+"/client-a")
	askMuch(t, ws, 40)
	await(t, "its end", func() bool { return s.Status().CloseReasons["slow_consumer"] == 1 })
}
