package main_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/proxy/proxytest"
)

// guarded is a proxy before a fake browser, and how to reach it.
type guarded struct {
	*process
	home   string
	url    string // as in its ready line
	dialer *websocket.Dialer
}

var guardedLine = regexp.MustCompile(`^cdpmux t ready (\S+) connect (\S+)/client-<task_id>\n$`)

// serveGuarded serves store "t" of home with flags by which a credential is
// required, which its ready line has to say.
func serveGuarded(t *testing.T, home string, flags ...string) *guarded {
	t.Helper()
	browser := proxytest.Start(t)
	flags = append([]string{"--browser", "attach", "--endpoint", browser.URL(), "--no-wrapper"}, flags...)
	g := &guarded{process: start(t, raceBinary(t), append(serveFlags(home), flags...)...), home: home, dialer: &websocket.Dialer{}}
	t.Cleanup(func() { g.end(t) })
	eventually(t, 15*time.Second, "a ready line", func() bool { return strings.Contains(g.stdout.String(), "\n") || g.hasExited() })
	line := guardedLine.FindStringSubmatch(g.stdout.String())
	if line == nil || !strings.HasSuffix(line[2], "/t/<capability>") {
		t.Fatalf("ready line: %q; stderr:\n%s", &g.stdout, &g.stderr)
	}
	g.url = line[1]
	return g
}

func (g *guarded) end(t *testing.T) {
	t.Helper()
	if g.hasExited() {
		return
	}
	_ = g.cmd.Process.Signal(os.Interrupt)
	if code := g.wait(t, 30*time.Second); code != 0 {
		t.Errorf("exit code after SIGINT: %d; stderr:\n%s", code, &g.stderr)
	}
	g.mustTellNoSecret(t)
}

// mustTellNoSecret checks that the log has neither a token nor a capability.
func (g *guarded) mustTellNoSecret(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"token", "admin"} {
		secret, err := os.ReadFile(filepath.Join(g.home, "run", "t."+kind))
		if err != nil {
			t.Fatal(err)
		}
		if text := g.stderr.String(); strings.Contains(text, strings.TrimSpace(string(secret))) || strings.Contains(text, "/t/") {
			t.Errorf("a secret is in the log:\n%s", text)
		}
	}
}

// mustGuard checks that it answers our own commands, lets a client in by the
// address that url prints, which begins with base, and nobody without.
func (g *guarded) mustGuard(t *testing.T, base string) {
	t.Helper()
	if got := cdpmux(t, "status", "--store", "t", "--home", g.home); !strings.Contains(got, "browser ") {
		t.Errorf("status: %s", got)
	}
	if got := cdpmux(t, "ensure", "--store", "t", "--home", g.home); got != g.stdout.String() {
		t.Errorf("ensure says %q, and serve said %q", got, &g.stdout)
	}
	address := strings.TrimSpace(cdpmux(t, "url", "--store", "t", "--home", g.home, "--client", "alice"))
	path, ok := strings.CutPrefix(address, base)
	if !ok || !strings.HasPrefix(path, "/t/") {
		t.Fatalf("url: %s, want it to begin with %s/t/", address, base)
	}
	address = strings.Replace(address, "ws+"+g.url+":", "ws://localhost", 1) // of a Unix socket
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ws, _, err := g.dialer.DialContext(ctx, address, nil)
	if err != nil {
		t.Fatalf("dial %s: %v", base, err)
	}
	defer ws.Close()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"id":7,"method":"Browser.getVersion"}`)); err != nil {
		t.Fatal(err)
	}
	if _, reply, err := ws.ReadMessage(); err != nil || !strings.Contains(string(reply), `"product"`) {
		t.Errorf("reply: %s, %v", reply, err)
	}
	for _, path := range []string{"/client-alice", "/", "/t/x/client-alice"} {
		i := strings.Index(address, "/t/")
		ws, resp, err := g.dialer.DialContext(ctx, address[:i]+path, nil)
		if err == nil {
			ws.Close()
		}
		if resp == nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %v, %v", path, resp, err)
		}
	}
}

// Clients come over a Unix socket; one that a killed proxy left is taken over.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	home := tempHome(t)
	socket := filepath.Join(home, "sock", "s")
	flags := []string{"--auth", "token", "--listen", "unix:" + socket}
	g := serveGuarded(t, home, flags...)
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-g.exited
	if _, err := os.Lstat(socket); err != nil {
		t.Fatalf("what a killed proxy leaves: %v", err)
	}
	g = serveGuarded(t, home, flags...)
	if g.url != "unix:"+socket {
		t.Fatalf("ready at %s", g.url)
	}
	g.dialer.NetDialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	g.mustGuard(t, "ws+unix:"+socket+":")
	mustRefuse(t, 3, []string{"store t is served"}, append(serveFlags(home), flags...)...)
	g.end(t)
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is left")
	}
}

// Other machines come in over TLS, with a certificate of our own that the
// commands know again.
func TestTLSToOtherMachines(t *testing.T) {
	t.Parallel()
	home := tempHome(t)
	maker := httptest.NewUnstartedServer(nil)
	maker.StartTLS()
	pair := maker.TLS.Certificates[0]
	maker.Close()
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(home, "cert.pem"), filepath.Join(home, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := serveGuarded(t, home, "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key)
	roots := x509.NewCertPool()
	roots.AddCert(maker.Certificate())
	g.dialer.TLSClientConfig = &tls.Config{RootCAs: roots}
	if !strings.HasPrefix(g.url, "https://127.0.0.1:") {
		t.Errorf("ready at %s", g.url)
	}
	g.mustGuard(t, strings.Replace(g.url, "https", "wss", 1))
	if text := g.stderr.String(); strings.Contains(text, "without TLS") {
		t.Errorf("log:\n%s", text)
	}
	// Whoever has the port but not the certificate is not told the admin token.
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("another")}), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRefuse(t, 1, []string{"another certificate"}, "status", "--store", "t", "--home", home)
}
