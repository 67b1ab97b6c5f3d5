package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// browser-harness: its own sequence of commands, from its first to its last.
func TestHarness(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	neighbour := m.dial(t, "neighbour")
	neighbour.NewPage("about:blank")

	// Its helpers give a command 5 s.
	c := proxytest.Dial(t, m.ws("/client-harness"), proxytest.WithTimeout(5*time.Second))
	for range 2 {
		if got := targets(t, c, nil); len(got) != 0 {
			t.Fatalf("targets at connect: want none, got %v", got)
		}
	}
	var made struct{ TargetID string }
	decode(t, c.Call("", "Target.createTarget", params{"url": "about:blank", "background": true}), &made)
	p := c.Attach(made.TargetID)
	var enabled []*proxytest.Pending
	for _, domain := range []string{"Page", "DOM", "Runtime", "Network"} {
		enabled = append(enabled, c.Go(p.Session, domain+".enable", params{}))
	}
	for _, each := range enabled {
		if _, err := each.Wait(); err != nil {
			t.Errorf("%s: %v", each.Method, err)
		}
	}
	var info struct{ TargetInfo target }
	decode(t, c.Call("", "Target.getTargetInfo", params{"targetId": made.TargetID}), &info)
	if info.TargetInfo.TargetID != made.TargetID || info.TargetInfo.Type != "page" {
		t.Errorf("getTargetInfo of the new tab: want page %s, got %+v", made.TargetID, info.TargetInfo)
	}

	p.Navigate(site.URL + "/title?t=harness")
	if got := text(t, p.Eval("document.title")); got != "harness" {
		t.Errorf("title: want harness, got %q", got)
	}
	p.Navigate(site.URL + "/plain")
	mustShowSomething(t, p.Screenshot())
	p.Call("Browser.getVersion", params{}) // it sends Browser.* on the page's session, too
	p.Close()
	c.AwaitEvent("", "Target.detachedFromTarget")
	if _, err := c.CallErr(p.Session, "Runtime.evaluate", params{"expression": "1"}); err == nil || err.Message != "Session with given id not found." {
		t.Errorf("a command for the closed tab: want exactly %q, which the harness looks for, got %v", "Session with given id not found.", err)
	}
	mustBeStrangers(t, c, neighbour)
}

// The real daemon, restarted again and again: each start makes itself a tab,
// and the one before it, which was never used, goes.
func TestHarnessDaemonRestarts(t *testing.T) {
	m := serve(t, grace...)
	site := proxytest.StartSite(t)
	home := tempHome(t)
	harness := func(script string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(pythonDir(t), "browser-harness"), args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, "BH_HOME="+filepath.Join(home, "bh"), "BH_TELEMETRY=0",
			"BU_NAME=restarts", "BU_CDP_WS="+m.ws("/client-restarts"), "NO_PROXY=127.0.0.1,localhost")
		cmd.Stdin = strings.NewReader(script)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("browser-harness %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	defer mustLeaveNothing(t, home)
	defer harness("", "--reload")
	harness(fmt.Sprintf("new_tab(%q); wait_for_load()", site.URL+"/title?t=work"))
	for range scaled(t, 20) {
		harness("", "--reload")
		if got := harness("print(len(list_tabs()))"); strings.TrimSpace(got) == "" {
			t.Fatal("the restarted daemon said nothing")
		}
	}
	browser := m.dialBrowser(t)
	// The tab that was worked in, the newest daemon's own, and Chrome's first.
	eventually(t, 10*time.Second, "end of the tabs that no daemon used", func() bool { return len(pages(t, browser)) <= 4 })
	if got := harness("print([t['url'] for t in list_tabs()])"); !strings.Contains(got, "/title?t=work") {
		t.Errorf("tabs of the restarted daemon: want the one that was worked in, got %s", got)
	}
}
