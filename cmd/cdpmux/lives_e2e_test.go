package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/proxy/proxytest"
)

// A login, and a session's cookie, outlive each way in which a browser is
// ended gently, be it at once or 2 s after the login.
func TestLoginsOutliveEveryEnd(t *testing.T) {
	t.Parallel()
	site := proxytest.StartSite(t)
	home := tempHome(t)
	var m *mux
	up := func() { m = serveAt(t, home, "--grace", "2s", "--browser-idle", "1s") }
	ends := map[string]func(){
		"stop": func() {
			_, answer, _ := m.control(t, "POST", "/v1/browser/stop", params{"force": true})
			var receipt lifecycle.Receipt
			decode(t, answer, &receipt)
			if !receipt.Verified || receipt.DataRisk {
				t.Errorf("receipt of a stop: %s", answer)
			}
		},
		"SIGTERM": func() {
			_ = m.cmd.Process.Signal(syscall.SIGTERM)
			if code := m.wait(t, 30*time.Second); code != 0 {
				t.Errorf("exit code after SIGTERM: %d", code)
			}
			// With KillMode=mixed systemd would now kill what is left.
			for pid, line := range processesOf(t, m.profile()) {
				t.Errorf("process %d is left for SIGKILL: %.100s", pid, line)
			}
			up()
		},
		"kill": func() { // and nobody comes back within the grace
			m.kill(t)
			eventually(t, 30*time.Second, "end of a browser whose proxy is gone", func() bool { return !m.hasBrowser(t) })
			up()
		},
		"idle sweep": func() {
			m.control(t, "POST", "/v1/clients/a/close", nil) // with its grace, each round would take 2 s more
			eventually(t, 30*time.Second, "end of the idle browser", func() bool { return !m.hasBrowser(t) })
		},
	}
	up()
	for name, end := range ends {
		for i := range scaled(t, 20) {
			p := m.dial(t, "a").NewPage("about:blank")
			cookie := fmt.Sprint(name, i)
			p.Navigate(site.URL + "/cookie?n=" + cookie + "&v=kept")
			p.Eval(`document.cookie = "s` + cookie + `=kept"`)
			if i%2 == 1 {
				p.Call("Runtime.evaluate", params{"expression": "new Promise(done => setTimeout(done, 2000))", "awaitPromise": true})
			}
			end()
			p = m.dial(t, "a").NewPage("about:blank")
			p.Navigate(site.URL + "/cookie")
			got := text(t, p.Eval("document.cookie"))
			for _, want := range []string{cookie + "=kept", "s" + cookie + "=kept"} {
				if !strings.Contains(got, want) {
					t.Errorf("after %s: cookie %s is lost", name, want)
				}
			}
		}
	}
}

// Stores that start together take turns, and none is starved.
func TestStoresStartTogether(t *testing.T) {
	t.Parallel()
	var all []func()
	for i := range scaled(t, 8) {
		home := tempHome(t)
		all = append(all, func() {
			m := serveAt(t, home)
			c := m.dial(t, fmt.Sprint("s", i))
			c.Timeout = 60 * time.Second
			c.NewPage("about:blank").Eval("1")
		})
	}
	together(all...)
}

// Each client library finds a stopped browser as it finds one that runs.
func TestLibrariesWakeTheBrowser(t *testing.T) {
	t.Parallel()
	m := serve(t, unhurried...)
	site := proxytest.StartSite(t)
	for _, each := range libraries[:min(len(libraries), scaled(t, len(libraries)))] {
		if status, answer, _ := m.control(t, "POST", "/v1/browser/stop", params{"force": true}); status != 200 {
			t.Fatalf("stop: %d %s", status, answer)
		}
		done := each.run(t, fmt.Sprintf(each.endpoint, m.addr), site)
		if len(done) == 0 || !done[len(done)-1].OK {
			t.Errorf("%s before a stopped browser: got %v", each.name, done)
		}
	}
}
