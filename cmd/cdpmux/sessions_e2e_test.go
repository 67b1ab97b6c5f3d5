package main_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/lifecycle/lease/leasetest"
	"cdpmux/proxy/proxytest"
)

// secret reads a token of a served store.
func (m *mux) secret(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.home, "run", "t."+kind))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestSessionsContract(t *testing.T) {
	t.Parallel()
	browser := proxytest.Start(t)
	m := serve(t, "--browser", "attach", "--endpoint", browser.HTTP(), "--max-clients", "3")
	leasetest.CheckContract(t, leasetest.Build{
		URL: m.http(""), Store: "t", Token: m.secret(t, "token"), Admin: m.secret(t, "admin"), Capacity: 3,
		Connect: func(url string) (func(), error) {
			c, _, err := proxytest.DialErr(t.Context(), url, nil)
			if err != nil {
				return nil, err
			}
			c.Call("", "Browser.getVersion", nil)
			return c.Close, nil
		},
	})
	if log := m.stderr.String(); strings.Contains(log, "close-") {
		t.Errorf("the log shows a close token:\n%s", log)
	}
}

// Who comes by another proxy is told where a session is to be found there.
func TestSessionIsFoundBehindAPrefix(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-asked }))
	t.Cleanup(silent.Close)
	defer close(asked)
	m := &mux{home: tempHome(t), addr: freeAddr(t)}
	serveGuarded(t, m.home, "--listen", m.addr, "--endpoint", silent.URL, "--public-url", "https://cdp.example/shop/")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.http("/v1/sessions"), strings.NewReader(
		`{"session_id":"session-0123456789","close_token":"`+strings.Repeat("c", 32)+`","client":{"name":"a"},"wait_s":0}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.secret(t, "token"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if at := resp.Header.Get("Location"); resp.StatusCode != http.StatusAccepted || at != "/shop/v1/sessions/session-0123456789" {
		t.Errorf("HTTP %d, Location %q", resp.StatusCode, at)
	}
}

// What a session grants outlives a proxy that is killed; the commands make it,
// find it again, list it and close it.
func TestSessionCommands(t *testing.T) {
	t.Parallel()
	browser, home, addr := proxytest.Start(t), tempHome(t), freeAddr(t)
	flags := []string{"--listen", addr, "--browser", "attach", "--endpoint", browser.HTTP(), "--grace", "480s"}
	m := serveAt(t, home, flags...)
	session := func(code int, args ...string) string {
		t.Helper()
		p := start(t, raceBinary(t), append([]string{"session", args[0], "--store", "t", "--home", home}, args[1:]...)...)
		if got := p.wait(t, 60*time.Second); got != code {
			t.Fatalf("session %q: exit code %d, want %d; stderr: %s", args, got, code, &p.stderr)
		}
		return p.stdout.String()
	}
	create := []string{"create", "--client", "task-1", "--tab-cap", "1", "--grace", "100"}
	var made struct {
		ID    string `json:"session_id"`
		Token string `json:"close_token"`
		WS    string `json:"ws_url"`
		State string `json:"state"`
	}
	if err := json.Unmarshal([]byte(session(0, create...)), &made); err != nil || made.State != "ready" || len(made.Token) < 32 {
		t.Fatalf("made: %+v, %v", made, err)
	}
	token := filepath.Join(home, "close-token")
	if err := os.WriteFile(token, []byte(made.Token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := append(create, "--session", made.ID, "--close-token-file", token)
	if text := session(0, again...); !strings.Contains(text, made.WS) || !strings.Contains(text, `"replayed": true`) || strings.Contains(text, made.Token) {
		t.Errorf("found again: %s", text)
	}
	session(1, "create", "--client", "task-1") // it has a session

	c := proxytest.Dial(t, made.WS)
	first, second := c.NewPage("about:blank"), c.NewPage("about:blank")
	c.AwaitEvent(first.Session, "Inspector.detached") // one tab is what it may have
	if list := session(0, "list"); !strings.Contains(list, made.ID) || !strings.Contains(list, "1 connected") {
		t.Errorf("list: %s", list)
	}

	eventually(t, 5*time.Second, "tab in the state file", func() bool {
		text, _ := os.ReadFile(filepath.Join(home, "state", "t.tabs.json"))
		return strings.Contains(string(text), second.TargetID)
	})
	m.kill(t)
	c.Close()
	m = serveAt(t, home, flags...)
	if text := session(0, again...); !strings.Contains(text, made.WS) {
		t.Errorf("after a kill: %s", text)
	}
	if _, resp, err := proxytest.DialErr(t.Context(), m.ws("/client-task-1"), nil); err == nil || resp == nil || resp.StatusCode != 401 {
		t.Errorf("without the capability: %v, %v", resp, err)
	}
	c = proxytest.Dial(t, made.WS)
	if list := string(c.Call("", "Target.getTargets", nil)); !strings.Contains(list, second.TargetID) {
		t.Errorf("its tab is not there after the kill: %s", list)
	}
	if text := session(0, "close", "--session", made.ID, "--close-token-file", token, "--reason", "failed"); !strings.Contains(text, `"status": "closed"`) {
		t.Errorf("close: %s", text)
	}
	c.CloseStatus()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, _, err := proxytest.DialErr(ctx, made.WS, nil); err == nil {
		t.Error("let in after the close")
	}
	session(1, again...)
	if list := session(0, "list", "--json"); strings.TrimSpace(list) != "[]" {
		t.Errorf("list in the end: %s", list)
	}
}

// The proxy's end closes the sessions, with --on-exit keep it does not.
func TestSessionsAtTheEndOfTheProxy(t *testing.T) {
	t.Parallel()
	browser, home, addr := proxytest.Start(t), tempHome(t), freeAddr(t)
	flags := []string{"--listen", addr, "--browser", "attach", "--endpoint", browser.HTTP(), "--grace", "480s"}
	state := func() string {
		text, err := os.ReadFile(filepath.Join(home, "state", "t.sessions"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		var last struct{ State, Reason string }
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(last.State + " " + last.Reason)
	}
	args := []string{"session", "create", "--store", "t", "--home", home, "--client", "a", "--session", "a-session-to-find-again"}
	keep := serveAt(t, home, append(flags, "--on-exit", "keep")...)
	p := start(t, "env", append([]string{"CDPMUX_CLOSE_TOKEN=" + strings.Repeat("secret-", 6), raceBinary(t)}, args...)...)
	if code := p.wait(t, 60*time.Second); code != 0 {
		t.Fatalf("create: exit code %d, stderr: %s", code, &p.stderr)
	}
	keep.stop(t)
	if got := state(); got != "ready" {
		t.Errorf("kept: %s", got)
	}
	serveAt(t, home, flags...).stop(t)
	if got := state(); got != "closed shutdown" {
		t.Errorf("ended: %s", got)
	}
}

// A tab that Chrome does not close, in a browser that lives on, is a session
// that is not released: the exit code says so, and the next proxy has it.
func TestSessionThatIsLeftAtTheEnd(t *testing.T) {
	t.Parallel()
	browser, home, addr := proxytest.Start(t), tempHome(t), freeAddr(t)
	flags := []string{"--listen", addr, "--browser", "attach", "--endpoint", browser.HTTP(), "--grace", "480s", "--log-format", "json"}
	m := serveAt(t, home, flags...)
	args := []string{"--store", "t", "--home", home}
	p := start(t, raceBinary(t), append([]string{"session", "create", "--client", "a"}, args...)...)
	if code := p.wait(t, 60*time.Second); code != 0 {
		t.Fatalf("create: exit code %d, stderr: %s", code, &p.stderr)
	}
	var made struct {
		ID string `json:"session_id"`
		WS string `json:"ws_url"`
	}
	if err := json.Unmarshal([]byte(p.stdout.String()), &made); err != nil {
		t.Fatal(err)
	}
	proxytest.Dial(t, made.WS).NewPage("about:blank")
	browser.Fault("Target.closeTarget", proxytest.Fault{Ignore: true})
	m.killed = true // it does not end with 0
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := m.wait(t, 30*time.Second); code != 4 || !strings.Contains(m.stderr.String(), `"count":1`) || !strings.Contains(m.stderr.String(), "shutdown_cleanup_pending") {
		t.Errorf("exit code %d, want 4; stderr:\n%s", code, &m.stderr)
	}
	browser.Fault("Target.closeTarget", proxytest.Fault{})
	serveAt(t, home, flags...)
	eventually(t, 20*time.Second, "release by the next proxy", func() bool {
		text, err := os.ReadFile(filepath.Join(home, "state", "t.sessions"))
		return err == nil && strings.Contains(string(text), `"state":"closed"`)
	})
}
