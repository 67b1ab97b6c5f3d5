package main_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// mustRefuse runs the command and checks that it ends by itself, says why in
// at most three lines that hold each of the words, and shows no stack.
func mustRefuse(t *testing.T, code int, words []string, args ...string) {
	t.Helper()
	p := start(t, raceBinary(t), args...)
	if got := p.wait(t, 30*time.Second); got != code {
		t.Errorf("exit code of %v: want %d, got %d", args, code, got)
	}
	said := p.stderr.String()
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) > 3 || strings.Contains(said, "goroutine ") || strings.Contains(said, "panic") {
		t.Errorf("stderr of %v: want one clear line, got:\n%s", args, said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("stderr of %v: want %q in it, got:\n%s", args, word, said)
		}
	}
	if got := p.stdout.String(); got != "" {
		t.Errorf("stdout of %v: want nothing, got %q", args, got)
	}
}

// Whoever types it wrong is told what and why. Exit code 2 is for usage.
func TestWrongUsage(t *testing.T) {
	for name, each := range map[string]struct {
		words []string
		args  []string
	}{
		"unknown command":   {[]string{"frobnicate"}, []string{"frobnicate"}},
		"unknown flag":      {[]string{"--frobnicate"}, []string{"serve", "--store", "t", "--frobnicate"}},
		"no store":          {[]string{"--store"}, []string{"serve"}},
		"two stores":        {[]string{"--store", "--web"}, append(serveFlags("HOME"), "--web")},
		"too many workers":  {[]string{"--worker-slots 100", "99"}, append(serveFlags("HOME"), "--worker-slots", "100")},
		"no such policy":    {[]string{"--windows", "sideways"}, append(serveFlags("HOME"), "--windows", "sideways")},
		"not a number":      {[]string{"--max-clients", "many"}, append(serveFlags("HOME"), "--max-clients", "many")},
		"negative number":   {[]string{"--max-clients", "-1"}, append(serveFlags("HOME"), "--max-clients", "-1")},
		"no such browser":   {[]string{"--browser", "netscape"}, append(serveFlags("HOME"), "--browser", "netscape")},
		"no endpoint":       {[]string{"--endpoint"}, append(serveFlags("HOME"), "--browser", "attach")},
		"pipe to another's": {[]string{"--upstream pipe"}, append(serveFlags("HOME"), "--browser", "attach", "--endpoint", "http://127.0.0.1:1", "--upstream", "pipe")},
		"keep for no time":  {[]string{"--on-exit keep", "--grace"}, append(serveFlags("HOME"), "--on-exit", "keep")},
		"open to the net":   {[]string{"--auth none", "0.0.0.0:0", "leave --auth away"}, append(serveFlags("HOME"), "--listen", "0.0.0.0:0", "--auth", "none")},
		"half a key pair":   {[]string{"--tls-cert and --tls-key"}, append(serveFlags("HOME"), "--tls-cert", "/cert")},
		"no such port":      {[]string{"127.0.0.1:99999"}, append(serveFlags("HOME"), "--listen", "127.0.0.1:99999")},
		"no such id":        {[]string{"a b"}, append(serveFlags("HOME"), "--id", "a b")},
		"our own flag":      {[]string{"--remote-debugging-port=9222"}, append(serveFlags("HOME"), "--chrome-arg", "--remote-debugging-port=9222")},
		"slug that clashes": {[]string{"x-aux"}, append(serveFlags("HOME"), "--store", "x-aux")},
	} {
		t.Run(name, func(t *testing.T) {
			home := tempHome(t)
			for i, arg := range each.args {
				if arg == "HOME" {
					each.args[i] = home
				}
			}
			mustRefuse(t, 2, each.words, each.args...)
		})
	}
}

// What stands in the way of a start is named.
func TestStartRefused(t *testing.T) {
	t.Run("busy port", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		addr := listener.Addr().String()
		mustRefuse(t, 1, []string{addr, "in use"}, append(serveFlags(tempHome(t)), "--listen", addr)...)
	})

	t.Run("no Chrome", func(t *testing.T) {
		mustRefuse(t, 1, []string{"/nonexistent"}, append(serveFlags(tempHome(t)), "--chrome", "/nonexistent", "--eager")...)
	})

	t.Run("not a Chrome", func(t *testing.T) {
		mustRefuse(t, 75, []string{"/bin/false"}, append(serveFlags(tempHome(t)), "--chrome", "/bin/false", "--eager")...)
	})

	t.Run("nobody at the endpoint", func(t *testing.T) {
		for _, endpoint := range []string{"http://127.0.0.1:1", "ws://127.0.0.1:1/devtools/browser/u"} {
			mustRefuse(t, 75, []string{"127.0.0.1:1"}, append(serveFlags(tempHome(t)), "--browser", "attach", "--endpoint", endpoint, "--eager")...)
		}
	})

	t.Run("used profile", func(t *testing.T) {
		chromium := proxytest.StartChromium(t)
		mustRefuse(t, 75, []string{chromium.Profile, "in use"}, append(serveFlags(tempHome(t)), "--profile", chromium.Profile, "--eager")...)
		mustBeAlive(t, "the browser that was there first", proxytest.Dial(t, chromium.WS).NewPage("about:blank"))
	})

	t.Run("store of another proxy", func(t *testing.T) {
		m := serve(t)
		pid := strconv.Itoa(m.cmd.Process.Pid)
		mustRefuse(t, 3, []string{pid}, serveFlags(m.home)...)
		m.dial(t, "a").Call("", "Browser.getVersion", nil)
	})
}

// A browser that cannot start fails the commands that wait for it, with the
// kind of failure, and not the proxy.
func TestLazyStartFails(t *testing.T) {
	chromium := proxytest.StartChromium(t)
	for name, each := range map[string]struct {
		kind  string
		flags []string
	}{
		"no Chrome":    {"browser_missing", []string{"--chrome", "/nonexistent"}},
		"used profile": {"profile_in_use", []string{"--profile", chromium.Profile}},
	} {
		t.Run(name, func(t *testing.T) {
			m := serve(t, each.flags...)
			for range 2 { // the second client starts a browser, too
				c := m.dial(t, "a")
				c.Send(`{"id":1,"method":"Browser.getVersion"}`)
				if code, text := c.CloseStatus(); code != 1013 || !strings.Contains(text, each.kind) {
					t.Errorf("close after a failed start: want 1013 with %s, got %d %q", each.kind, code, text)
				}
				// A start that fails at once may end before the command is read.
				for _, reply := range c.Transcript() {
					if reply.ID != "1" || !strings.Contains(string(reply.Raw), each.kind) {
						t.Errorf("reply to a held command: want an error with %s, got %s", each.kind, reply.Raw)
					}
				}
			}

			resp, err := dialRaw(t, m.addr).ask(t, "GET /json/version HTTP/1.1", "Host: "+m.addr)
			if err != nil {
				t.Fatal(err)
			}
			var problem struct {
				Error string `json:"error"`
				Kind  string `json:"failure_kind"`
				Next  string `json:"next"`
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			decode(t, body, &problem)
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
				problem.Kind != each.kind || problem.Error == "" || problem.Next == "" {
				t.Errorf("GET /json/version: want 503 with Retry-After, %s, an error and what to do next, got %s %s", each.kind, resp.Status, body)
			}
		})
	}
}

// Commands that come while the browser starts are held, and answered in order.
func TestCommandsWhileStarting(t *testing.T) {
	m := serve(t)
	const n = 100
	clients := []*proxytest.Client{m.dial(t, "a"), m.dial(t, "b")}
	for i := 1; i <= n; i++ {
		for _, c := range clients {
			method := "Browser.getVersion"
			if i%3 == 0 {
				method = "Target.getTargets"
			}
			c.Send(fmt.Sprintf(`{"id":%d,"method":%q}`, i, method))
		}
	}
	for _, c := range clients {
		c.Timeout = 30 * time.Second
		await(c, strconv.Itoa(n))
		var order []string
		for _, message := range c.Transcript() {
			if message.ID == "" || message.Error != nil {
				t.Errorf("message while starting: want results only, got %s", message)
			}
			order = append(order, message.ID)
		}
		for i := range n {
			if len(order) != n || order[i] != strconv.Itoa(i+1) {
				t.Fatalf("replies to %d commands: want each, in the order sent, got %v", n, order)
			}
		}
	}
	c := clients[0]
	c.Timeout = 10 * time.Second
	c.Send(`{"id":1000,"method":"Target.createTarget","params":{"url":"about:blank"}}`)
	if reply := await(c, "1000"); reply.Err() != nil {
		t.Errorf("createTarget afterwards: want a tab, got %s", reply)
	}
}

// Whoever reads the log may go away: the proxy stays, and so does its grip on
// the browser.
func TestLogReaderGoes(t *testing.T) {
	script := filepath.Join(t.TempDir(), "serve")
	text := fmt.Sprintf("#!/bin/bash\nexec %q \"$@\" 2> >(:)\n", raceBinary(t))
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	m := serveBinary(t, script, tempHome(t), "--log-level", "debug")
	for _, name := range []string{"a", "b"} { // each is a line in the log
		mustBeAlive(t, "client "+name, m.dial(t, name).NewPage("about:blank"))
	}
}

// The browser without a store is served like a store's.
func TestServeWeb(t *testing.T) {
	home := tempHome(t)
	web := start(t, raceBinary(t), "serve", "--web", "--home", home, "--listen", "127.0.0.1:0")
	eventually(t, 15*time.Second, "a ready line", func() bool { return strings.Contains(web.stdout.String(), "\n") || web.hasExited() })
	if got := web.stdout.String(); !strings.HasPrefix(got, "cdpmux _web ready http://127.0.0.1:") {
		t.Errorf("stdout: want the ready line of _web, got %q; stderr: %s", got, &web.stderr)
	}
	for _, path := range []string{"stores/_web.json", "profiles/_web"} {
		if _, err := os.Stat(filepath.Join(home, path)); err != nil {
			t.Error(err)
		}
	}
	mustRefuse(t, 3, []string{"store _web is served"}, "serve", "--web", "--home", home)
	_ = web.cmd.Process.Signal(os.Interrupt)
	if code := web.wait(t, 30*time.Second); code != 0 {
		t.Errorf("exit code after SIGINT: want 0, got %d", code)
	}
}

// The ready line of an eager start comes when the browser is up.
func TestEagerStart(t *testing.T) {
	m := serve(t, "--eager")
	m.browserPID(t) // it runs already
	if status, answer, _ := m.control(t, "GET", "/v1/browser", nil); status != 200 || !strings.Contains(string(answer), `"state":"ready"`) {
		t.Errorf("browser of an eager start, before any client: %d %s", status, answer)
	}
	mustBeAlive(t, "the first client", m.dial(t, "a").NewPage("about:blank"))
}

// A browser that somebody else started is used, and left as it was.
func TestAttach(t *testing.T) {
	chromium := proxytest.StartChromium(t)
	for _, endpoint := range []string{chromium.HTTP, chromium.WS} {
		t.Run(endpoint[:4], func(t *testing.T) {
			m := serve(t, "--browser", "attach", "--endpoint", endpoint)
			mustBeAlive(t, "the client", m.dial(t, "a").NewPage("about:blank"))
			m.stop(t)
			mustBeAlive(t, "the browser after its proxy stopped", proxytest.Dial(t, chromium.WS).NewPage("about:blank"))
		})
	}
}
