package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
	"cdpmux/proxy/proxytest"
)

// control sends a call of the control API with the admin token.
func (m *mux) control(t *testing.T, method, path string, body any) (status int, answer []byte, header http.Header) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(m.home, "run", "t.admin"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(method, m.http(path), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer, resp.Header
}

// hasBrowser reports whether a process of the profile is there.
func (m *mux) hasBrowser(t *testing.T) bool { return len(processesOf(t, m.profile())) > 0 }

// A browser that nobody needs is stopped, and the next client has another one.
func TestIdleSweep(t *testing.T) {
	t.Parallel()
	m := serve(t, "--browser-idle", "2s")
	site := proxytest.StartSite(t)
	c := m.dial(t, "a")
	p := c.NewPage("about:blank")
	p.Navigate(site.URL + "/cookie?n=kept&v=1")
	p.Call("Runtime.evaluate", params{"expression": "new Promise(done => setTimeout(done, 5000))", "awaitPromise": true})
	if !m.hasBrowser(t) {
		t.Fatal("swept with a command under way")
	}
	if status, answer, _ := m.control(t, "POST", "/v1/hold", params{"name": "job", "ttl_s": 4}); status != 200 {
		t.Errorf("hold: got %d %s", status, answer)
	}
	held := time.Now()
	c.Close()
	eventually(t, 20*time.Second, "end of the idle browser", func() bool { return !m.hasBrowser(t) })
	if took := time.Since(held); took < 4*time.Second {
		t.Errorf("swept after %v, in spite of a hold of 4 s", took)
	}
	p = m.dial(t, "a").NewPage("about:blank")
	p.Navigate(site.URL + "/cookie")
	if got := text(t, p.Eval("document.cookie")); !strings.Contains(got, "kept=1") {
		t.Errorf("cookie after the sweep: got %q", got)
	}
}

// Who connects at the very moment of the sweep has a working browser.
func TestConnectsRaceTheSweep(t *testing.T) {
	t.Parallel()
	m := serve(t, "--browser-idle", "1s")
	for i := range scaled(t, 20) {
		eventually(t, 30*time.Second, "sweep", func() bool {
			status, answer, _ := m.control(t, "GET", "/v1/browser", nil)
			return status == 200 && (strings.Contains(string(answer), `"stopping"`) || strings.Contains(string(answer), `"stopped"`))
		})
		var all []func()
		for j := range 10 {
			all = append(all, func() {
				c := proxytest.Dial(t, m.ws(fmt.Sprintf("/client-r%d-%d", i, j)))
				c.Timeout = 60 * time.Second
				if got := text(t, c.NewPage("about:blank").Eval(`"works"`)); got != "works" {
					t.Errorf("got %q", got)
				}
				c.Close()
			})
		}
		together(all...)
	}
}

// The operator stops the browser; with clients only by force.
func TestStopOverTheControlAPI(t *testing.T) {
	t.Parallel()
	m := serve(t)
	c := m.dial(t, "a")
	c.NewPage("about:blank")
	if status, answer, _ := m.control(t, "POST", "/v1/browser/stop", params{}); status != 409 || !strings.Contains(string(answer), `"browser_in_use"`) {
		t.Errorf("stop with a client: got %d %s", status, answer)
	}
	status, answer, _ := m.control(t, "POST", "/v1/browser/stop", params{"force": true})
	var receipt lifecycle.Receipt
	decode(t, answer, &receipt)
	if status != 200 || receipt.Method != lifecycle.MethodGraceful || !receipt.Verified || receipt.DataRisk {
		t.Errorf("stop by force: got %d %s", status, answer)
	}
	if m.hasBrowser(t) {
		t.Error("a browser is left")
	}
	if code, _ := c.CloseStatus(); code != 1012 {
		t.Errorf("client closed with %d, want 1012", code)
	}
	again := m.dial(t, "a")
	again.NewPage("about:blank").Eval("1")

	if status, answer, _ := m.control(t, "POST", "/v1/clients/a/close", nil); status != 200 || !strings.Contains(string(answer), `"tabs":1`) {
		t.Errorf("close of a client: got %d %s", status, answer)
	}
	if code, _ := again.CloseStatus(); code != 1000 {
		t.Errorf("client closed with %d, want 1000", code)
	}
	m.control(t, "POST", "/v1/drain", params{})
	if _, resp, err := proxytest.DialErr(t.Context(), m.ws("/client-late"), nil); err == nil || resp == nil || resp.StatusCode != 503 {
		t.Errorf("newcomer while draining: got %v", err)
	}
	if status, _ := request(t, "GET", m.http("/readyz")); status != 503 {
		t.Errorf("/readyz while draining: want 503, got %d", status)
	}
	if status, _ := request(t, "POST", m.http("/v1/drain")); status != 401 {
		t.Errorf("drain without the token: want 401, got %d", status)
	}
	m.control(t, "POST", "/v1/drain", params{"drain": false})
	m.dial(t, "late").Call("", "Browser.getVersion", nil)
}

// A proxy that is killed leaves its browser, and the next one takes it over
// with its tabs and owners.
func TestBrowserIsAdopted(t *testing.T) {
	t.Parallel()
	m := serve(t, "--grace", "60s")
	site := proxytest.StartSite(t)
	c := m.dial(t, "a")
	p := c.NewPage("about:blank")
	p.Navigate(site.URL + "/title?t=mine")
	p.Eval("window.mark = 7")
	state := filepath.Join(m.home, "state", "t.tabs.json")
	eventually(t, 10*time.Second, "tab in the state file", func() bool {
		kept, _ := os.ReadFile(state)
		return bytes.Contains(kept, []byte(p.TargetID))
	})
	pid := m.browserPID(t)
	m.kill(t)
	next := serveAt(t, m.home, "--grace", "60s")
	again := next.dial(t, "a").Attach(p.TargetID)
	if got := string(again.Eval("window.mark")); got != "7" {
		t.Errorf("mark of the tab after the proxy's death: got %s", got)
	}
	if now := next.browserPID(t); now != pid {
		t.Errorf("browser: want pid %d still, got %d", pid, now)
	}

	// A machine that is short of time: the browser does not answer when the
	// next proxy comes, and is sought until it does.
	next.kill(t)
	chrome := proc.Identify(pid)
	if err := chrome.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	next = serveAt(t, m.home, "--grace", "60s")
	eventually(t, 30*time.Second, "an attempt in vain", func() bool {
		return strings.Contains(next.stderr.String(), "browser not reached")
	})
	_ = chrome.Signal(syscall.SIGCONT)
	eventually(t, 30*time.Second, "the browser", func() bool {
		return strings.Contains(next.stderr.String(), "browser connected")
	})
	if got := string(next.dial(t, "a").Attach(p.TargetID).Eval("window.mark")); got != "7" {
		t.Errorf("mark of the tab in a slow browser: got %s", got)
	}
}
