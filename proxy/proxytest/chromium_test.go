package proxytest

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestChromiumIsDrivenAndGoneAfterwards(t *testing.T) {
	var pid int
	var home string
	t.Run("browser", func(t *testing.T) {
		site := StartSite(t)
		chromium := StartChromium(t)
		pid, home = chromium.Pid, chromium.home
		c := Dial(t, chromium.WS)
		page := c.NewPage("about:blank")
		page.Navigate(site.URL + "/title?t=hello")
		if got := string(page.Eval("document.title")); got != `"hello"` {
			t.Errorf("title %s, want \"hello\"", got)
		}
		if _, err := png.Decode(bytes.NewReader(page.Screenshot())); err != nil {
			t.Errorf("screenshot: %v", err)
		}
	})
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("signal to the browser after the test: %v, want ESRCH", err)
	}
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("profile after the test: %v, want it removed", err)
	}
}

func TestChromiumStopsAndGoesOn(t *testing.T) {
	chromium := StartChromium(t)
	c := Dial(t, chromium.WS)
	c.Call("", "Browser.getVersion", nil)
	chromium.Stop()
	pending := c.Go("", "Browser.getVersion", nil)
	select {
	case <-time.After(100 * time.Millisecond):
	case <-chromium.stopped:
		t.Fatal("it ended")
	}
	if pending.Answered() {
		t.Error("a stopped browser answered")
	}
	chromium.Cont()
	pending.Wait()
	chromium.Kill()
	if code, _ := c.CloseStatus(); code != 1006 {
		t.Errorf("ended with %d, want 1006", code)
	}
}

func TestSiteHasTwoSites(t *testing.T) {
	site := StartSite(t)
	c := Dial(t, StartChromium(t).WS)
	page := c.NewPage("about:blank")
	page.Call("Target.setAutoAttach", json.RawMessage(`{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}`))
	attached := func() (kind string) {
		var event struct{ TargetInfo struct{ Type, URL string } }
		if err := c.AwaitEvent(page.Session, "Target.attachedToTarget").Into(&event); err != nil {
			t.Fatal(err)
		}
		return event.TargetInfo.Type
	}
	page.Navigate(site.URL + "/iframe")
	if got := attached(); got != "iframe" {
		t.Errorf("/iframe attached a %s, want an iframe of its own process", got)
	}
	page.Navigate(site.Other + "/iframe")
	if got := attached(); got != "iframe" {
		t.Errorf("/iframe of the other site attached a %s, want an iframe of its own process", got)
	}
	page.Navigate(site.URL + "/worker")
	if got := attached(); got != "worker" {
		t.Errorf("/worker attached a %s, want a worker", got)
	}
	page.Eval(`new Promise(done => { const poll = () => window.ready ? done() : setTimeout(poll, 5); poll() })`)

	page.Navigate(site.URL + "/cookie?n=a&v=b")
	if got := string(page.Eval("document.cookie")); got != `"a=b"` {
		t.Errorf("cookie %s, want \"a=b\"", got)
	}
	page.Navigate(site.URL + "/cookie")
	if got := string(page.Eval("document.body.innerText.trim()")); got != `"a=b"` {
		t.Errorf("cookie page shows %s, want \"a=b\"", got)
	}
	page.Navigate(site.URL + "/slow?ms=1")
	if got := string(page.Eval("document.title")); got != `"slow"` {
		t.Errorf("title %s, want \"slow\"", got)
	}

	c.Call("", "Target.setDiscoverTargets", json.RawMessage(`{"discover":true}`))
	page.Navigate(site.URL + "/popup")
	for _, id := range []string{"open", "noopener", "blank"} {
		page.Call("Runtime.evaluate", map[string]any{"expression": `document.getElementById("` + id + `").click()`, "userGesture": true})
		c.Await(func(m Msg) bool {
			var event struct{ TargetInfo struct{ OpenerID string } }
			return m.Is("", "Target.targetCreated") && m.Into(&event) == nil && event.TargetInfo.OpenerID == page.TargetID
		})
	}
}
