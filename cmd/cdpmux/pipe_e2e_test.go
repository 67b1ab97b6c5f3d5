package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
	"cdpmux/proxy/proxytest"
)

// With --upstream pipe Chrome has no port through which anybody could go round
// the proxy. All else is as ever, also after the death of the proxy, although
// for Chrome the next one is still the same client.
func TestUpstreamPipe(t *testing.T) {
	t.Parallel()
	m := serve(t, "--upstream", "pipe", "--grace", "60s")
	site := proxytest.StartSite(t)
	a := m.downloader(t, site, "a", "default", "")
	if open := listening(t, m.home); len(open) > 0 {
		t.Errorf("listening on TCP: %v", open)
	}
	if fi, err := os.Stat(filepath.Join(m.home, "run", "t.up")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket of the pipe: %v, %v", fi, err)
	}
	if status, body := request(t, "GET", m.http("/json/protocol")); status != 501 || !strings.Contains(string(body), "--upstream ws") {
		t.Errorf("/json/protocol: want 501 and what to do, got %d %s", status, body)
	}
	work := func(a *agent) {
		t.Helper()
		a.page.Navigate(site.URL + "/cookie?n=kept&v=1")
		if got := len(text(t, a.page.Eval(`"x".repeat(8 << 20)`))); got != 8<<20 {
			t.Errorf("reply of 8 MiB: got %d bytes", got)
		}
		long := strings.Repeat("y", 3<<20)
		if got := string(a.page.Eval(`"` + long + `".length`)); got != fmt.Sprint(len(long)) {
			t.Errorf("command of 3 MiB: got %s", got)
		}
		a.page.Navigate(site.URL + "/download")
		a.fetch(link(site, "/file", "got.txt", "m", 1000))
		a.mustArrive(t, a.begun(t).GUID, proxytest.FileText("m", 1000))
	}
	work(a)

	// The proxy dies in the middle of everything: with other clients' tabs,
	// attachments and open commands.
	b := m.dial(t, "b")
	b.Call("", "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true})
	b.Call("", "Target.setDiscoverTargets", params{"discover": true})
	bTab := b.NewPage("about:blank")
	b.Go(bTab.Session, "Runtime.evaluate", params{"expression": "new Promise(done => setTimeout(done, 3000))", "awaitPromise": true})
	a.page.Eval("window.mark = 7")
	eventually(t, 10*time.Second, "tabs in the state file", func() bool {
		kept, _ := os.ReadFile(filepath.Join(m.home, "state", "t.tabs.json"))
		return bytes.Contains(kept, []byte(a.page.TargetID)) && bytes.Contains(kept, []byte(bTab.TargetID))
	})
	pid := m.browserPID(t)
	m.kill(t)
	m = serveAt(t, m.home, "--upstream", "pipe", "--grace", "60s")
	again := &agent{Client: m.dial(t, "a"), site: site}
	again.Call("", "Browser.setDownloadBehavior", params{"behavior": "default", "eventsEnabled": true})
	again.page = again.Attach(a.page.TargetID)
	again.page.Call("Page.enable", nil)
	if got := string(again.page.Eval("window.mark")); got != "7" {
		t.Errorf("mark of the tab after the proxy's death: got %s", got)
	}
	if got := pages(t, again.Client); len(got) != 1 {
		t.Errorf("tabs of a: want its own, got %v", got)
	}
	if got := pages(t, m.dial(t, "b")); len(got) != 1 || got[0] != bTab.TargetID {
		t.Errorf("tabs of b: want %s, got %v", bTab.TargetID, got)
	}
	if now := m.browserPID(t); now != pid {
		t.Errorf("browser: want pid %d still, got %d", pid, now)
	}
	work(again)

	_, answer, _ := m.control(t, "POST", "/v1/browser/stop", params{"force": true})
	var receipt lifecycle.Receipt
	decode(t, answer, &receipt)
	if receipt.Method != lifecycle.MethodGraceful || !receipt.Verified || receipt.DataRisk || receipt.Escalated {
		t.Errorf("receipt: %s", answer)
	}
	if _, err := os.Stat(filepath.Join(m.home, "run", "t.up")); err == nil {
		t.Error("the socket outlives the browser")
	}
	p := m.dial(t, "a").NewPage("about:blank")
	p.Navigate(site.URL + "/cookie")
	if got := text(t, p.Eval("document.cookie")); !strings.Contains(got, "kept=1") {
		t.Errorf("cookie after the stop: got %q", got)
	}
}

// listening are the TCP sockets on which the store's browser and its keeper listen.
func listening(t *testing.T, home string) (open []string) {
	t.Helper()
	rec, err := keeper.ReadRecord(filepath.Join(home, "state", "t.browser.json"))
	if err != nil || rec == nil {
		t.Fatalf("record: %v, %v", rec, err)
	}
	servers := map[string]string{} // link of the socket: address
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		rows, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(string(rows)) {
			if f := strings.Fields(row); len(f) > 9 && f[3] == "0A" {
				servers["socket:["+f[9]+"]"] = f[1]
			}
		}
	}
	family, seen := append(descendants(t, rec.Keeper), rec.Keeper), 0
	for _, p := range family {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID))
		for _, file := range files {
			link, _ := os.Readlink(file)
			seen++
			if where := servers[link]; where != "" {
				open = append(open, fmt.Sprintf("pid %d, %s", p.PID, where))
			}
		}
	}
	if len(family) < 5 || seen < 100 || len(servers) == 0 {
		t.Fatalf("looked at %d processes, %d files, %d listening sockets", len(family), seen, len(servers))
	}
	return open
}

// descendants are the live processes below p.
func descendants(t *testing.T, p proc.ID) (out []proc.ID) {
	t.Helper()
	var all []proc.Info
	if err := proc.Each(func(i proc.Info) { all = append(all, i) }); err != nil {
		t.Fatal(err)
	}
	below := map[int]bool{p.PID: true}
	for grown := true; grown; {
		grown = false
		for _, i := range all {
			if below[i.Parent] && !below[i.PID] && !i.Dead() {
				below[i.PID], grown = true, true
				out = append(out, i.ID)
			}
		}
	}
	return out
}
