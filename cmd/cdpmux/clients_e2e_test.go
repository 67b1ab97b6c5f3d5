package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// Real client libraries work through the proxy as they work without it.
func TestClientLibraries(t *testing.T) {
	site := proxytest.StartSite(t)
	steps := map[string][]string{
		"playwright": {"connect", "context", "open", "navigate", "evaluate", "screenshot", "close"},
		"cri":        {"connect", "open", "navigate", "evaluate", "screenshot", "close"},
	}

	m := serve(t)
	neighbour := m.dial(t, "neighbour")
	stays := neighbour.NewPage("about:blank")
	heard := len(neighbour.Transcript())
	bare := proxytest.StartChromium(t)
	for _, each := range []struct{ name, library, endpoint string }{
		// If these fail, it is not the proxy's fault.
		{"playwright directly", "playwright", bare.WS},
		{"cri directly", "cri", bare.WS},

		{"playwright by WebSocket", "playwright", m.ws("/client-pw")},
		{"playwright by HTTP", "playwright", m.http("/client-pw")},
		{"cri by WebSocket", "cri", m.ws("/client-cri")},
	} {
		t.Run(each.name, func(t *testing.T) {
			got := runScenario(t, each.library, each.endpoint, site.URL+"/plain")
			if !slices.Equal(got, steps[each.library]) {
				t.Errorf("steps done: want %v, got %v", steps[each.library], got)
			}
		})
	}
	mustBeAlive(t, "the neighbour", stays)
	for _, message := range neighbour.Transcript()[heard:] {
		if message.ID == "" {
			t.Errorf("events at the neighbour: want none, got %s", message)
		}
	}
}

// runScenario runs testdata/clients/<library>/scenario.mjs and returns the steps that went well.
func runScenario(t *testing.T, library, endpoint, url string) (done []string) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "testdata", "clients", library))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err != nil {
		install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("npm ci in %s: %v (scripts/setup installs Node)\n%s", dir, err, out)
		}
	}

	run := exec.CommandContext(t.Context(), "node", "scenario.mjs", endpoint, url)
	run.Dir = dir
	var stderr bytes.Buffer
	run.Stderr = &stderr
	out, err := run.Output()
	for line := range bytes.Lines(out) {
		var step struct {
			Step, Error string
			OK          bool
		}
		if err := json.Unmarshal(line, &step); err != nil {
			t.Fatalf("%s printed %q: want a JSON line for each step", library, line)
		}
		if !step.OK {
			t.Fatalf("%s, step %s: %s", library, step.Step, step.Error)
		}
		done = append(done, step.Step)
	}
	if err != nil {
		t.Fatalf("%s: %v after steps %v\n%s", library, err, done, &stderr)
	}
	return done
}

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
