package proxytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEvaluateKnowsItsExpressions(t *testing.T) {
	c := Dial(t, Start(t).URL())
	page := c.NewPage("http://site/path")
	for expression, want := range map[string]string{
		`12.5`:             `12.5`,
		`true`:             `true`,
		`null`:             `null`,
		`"a\ud83cb\u0000"`: `"a\ud83cb\u0000"`,
		`'é"'`:             `"\u00e9\""`,
		`document.title`:   `"site/path"`,
		`location.href`:    `"http://site/path"`,
		`after(1)`:         `1`,
		`after(1,"x")`:     `"x"`,
		`big(5)`:           `"xxxxx"`,
		`burst(3,10)`:      `3`,
	} {
		if got := string(page.Eval(expression)); got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
	if got := len(page.Eval(`big(3000000)`)); got != 3000002 {
		t.Errorf("big(3000000) is %d bytes with its quotes, want 3000002", got)
	}
	if raw := string(page.Call("Runtime.evaluate", map[string]any{"expression": "nope"})); !strings.Contains(raw, "exceptionDetails") {
		t.Errorf("nope is %s, want an exception", raw)
	}
}

func TestFaults(t *testing.T) {
	b := Start(t)
	c := Dial(t, b.URL())
	const method = "Target.createBrowserContext"
	contexts := func() int {
		var list struct{ BrowserContextIds []string }
		if err := json.Unmarshal(c.Call("", "Target.getBrowserContexts", nil), &list); err != nil {
			t.Fatal(err)
		}
		return len(list.BrowserContextIds)
	}
	b.Fault(method, Fault{Ignore: true})
	ignored := c.Go("", method, nil)
	if n := contexts(); n != 0 || ignored.Answered() {
		t.Errorf("ignored: %d contexts, answered %v", n, ignored.Answered())
	}
	b.Fault(method, Fault{LoseReply: true})
	lost := c.Go("", method, nil)
	if n := contexts(); n != 1 || lost.Answered() {
		t.Errorf("reply lost: %d contexts, answered %v", n, lost.Answered())
	}
	b.Fault(method, Fault{Delay: 20 * time.Millisecond})
	delayed := c.Go("", method, nil)
	if n := contexts(); n != 1 {
		t.Errorf("delayed: %d contexts before its time", n)
	}
	delayed.Wait()
	if n := contexts(); n != 2 {
		t.Errorf("delayed: %d contexts after it", n)
	}
	b.Handle(method, func(Command) Reply { return Reply{Error: &Error{Code: 1, Message: "no", Data: "why"}} })
	if _, err := c.CallErr("", method, nil); err == nil || err.Error() != "1 no (why)" {
		t.Errorf("scripted error: %v", err)
	}
	b.Handle(method, func(cmd Command) Reply { return Reply{Result: cmd.Params} })
	if got := string(c.Call("", method, map[string]int{"a": 1})); got != `{"a":1}` {
		t.Errorf("scripted result: %s", got)
	}
	b.Fault(method, Fault{})
	c.Call("", method, nil)
	if n := contexts(); n != 3 {
		t.Errorf("fault taken back: %d contexts", n)
	}
}

func TestRestartIsAnotherBrowser(t *testing.T) {
	b := Start(t)
	url := b.URL()
	c := Dial(t, url)
	c.NewPage("about:blank")
	if err := b.Restart(); err != nil {
		t.Fatal(err)
	}
	if code, _ := c.CloseStatus(); code != 1006 {
		t.Errorf("the old connection ended with %d, want 1006", code)
	}
	if b.URL() == url {
		t.Error("the address is the old one")
	}
	if _, resp, err := DialErr(t.Context(), url, nil); err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("the old address: %v, want 404", err)
	}
	var list struct{ TargetInfos []struct{ URL string } }
	if err := json.Unmarshal(Dial(t, b.URL()).Call("", "Target.getTargets", map[string]any{"filter": []map[string]string{{"type": "page"}}}), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.TargetInfos) != 1 || list.TargetInfos[0].URL != "chrome://new-tab-page-third-party/" {
		t.Errorf("pages after the restart: %v", list.TargetInfos)
	}
}

func TestBrowserCloseEndsAll(t *testing.T) {
	b := Start(t)
	c, other := Dial(t, b.URL()), Dial(t, b.URL())
	c.Call("", "Browser.close", nil)
	for _, c := range []*Client{c, other} {
		if code, _ := c.CloseStatus(); code != 1006 {
			t.Errorf("ended with %d, want 1006", code)
		}
	}
	if !b.Closed() {
		t.Error("not closed")
	}
}

func TestPauseAndResume(t *testing.T) {
	b := Start(t)
	c := Dial(t, b.URL())
	c.Call("", "Browser.getVersion", nil)
	b.Pause()
	pending := c.Go("", "Browser.getVersion", nil)
	dialled := make(chan *Client)
	go func() {
		late, _, err := DialErr(t.Context(), b.URL(), nil)
		if err != nil {
			t.Error(err)
		}
		dialled <- late
	}()
	select {
	case <-dialled:
		t.Error("a hanging browser took a connection")
	case <-time.After(50 * time.Millisecond):
	}
	if pending.Answered() {
		t.Error("a hanging browser answered")
	}
	b.Resume()
	pending.Wait()
	if late := <-dialled; late != nil {
		late.Close()
	}
}

func TestTooMuchUnreadIsLost(t *testing.T) {
	b, err := New(Options{Unread: 20 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := Dial(t, b.URL())
	page := c.NewPage("about:blank")
	c.StopReading()
	var pending []*Pending
	for range 8 {
		pending = append(pending, c.Go(page.Session, "Runtime.evaluate", map[string]any{"expression": "big(6000000)"}))
	}
	// Commands are performed in order: when this one is, the others are.
	c.Go("", "Target.createBrowserContext", nil)
	other := Dial(t, b.URL())
	awaitTrue(t, func() bool {
		return !strings.Contains(string(other.Call("", "Target.getBrowserContexts", nil)), `"browserContextIds":[]`)
	})
	c.ResumeReading()
	page.Eval("1")
	answered := 0
	for _, p := range pending {
		if p.Answered() {
			answered++
		}
	}
	if answered == 0 || answered == len(pending) {
		t.Errorf("%d of %d replies came, want some lost", answered, len(pending))
	}
}

func awaitTrue(t *testing.T, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not become true")
		}
	}
}

func TestACrashedPageIsSilentUntilReloaded(t *testing.T) {
	b := Start(t)
	c := Dial(t, b.URL())
	page := c.NewPage("about:blank")
	before := c.Go(page.Session, "Runtime.evaluate", map[string]any{"expression": "never()"})
	b.Crash(page.TargetID)
	c.AwaitEvent(page.Session, "Inspector.targetCrashed")
	after := c.Go(page.Session, "Runtime.evaluate", map[string]any{"expression": "1"})
	c.Call("", "Browser.getVersion", nil)
	if before.Answered() || after.Answered() {
		t.Error("a crashed page answered")
	}
	c.Go(page.Session, "Page.reload", nil)
	c.AwaitEvent(page.Session, "Inspector.targetReloadedAfterCrash")
	for _, p := range []*Pending{before, after} {
		if _, err := p.Wait(); err == nil || err.Message != "Target crashed" {
			t.Errorf("reply %v, want Target crashed", err)
		}
	}
	page.Eval("1")
}

func TestEventsOfTargetsThatNobodyAskedFor(t *testing.T) {
	b := Start(t)
	c := Dial(t, b.URL())
	page := c.NewPage("http://a/")
	c.Call("", "Target.setDiscoverTargets", json.RawMessage(`{"discover":true,"filter":[{"type":"page"},{"type":"iframe"},{"type":"worker"}]}`))
	created := func(id string) string {
		return string(c.Await(func(m Msg) bool {
			return m.Is("", "Target.targetCreated") && strings.Contains(string(m.Params), `"targetId":"`+id)
		}).Params)
	}
	if info := created(b.OpenPopup(page.TargetID, "http://a/popup")); !strings.Contains(info, `"openerId":"`+page.TargetID) {
		t.Errorf("popup: %s", info)
	}
	if info := created(b.OpenHuman("http://b/")); strings.Contains(info, "opener\"") || !strings.Contains(info, "http://b/") {
		t.Errorf("a person's page: %s", info)
	}
	frame := b.AddFrame(page.TargetID, "http://c/")
	if info := created(frame); !strings.Contains(info, `"parentId":"`+page.TargetID) {
		t.Errorf("frame: %s", info)
	}
	created(b.AddWorker(frame, "http://c/worker.js"))
	b.CloseTarget(page.TargetID)
	for range 3 { // the page, its frame, the frame's worker
		c.AwaitEvent("", "Target.targetDestroyed")
	}
	b.Emit(b.OpenHuman("http://d/"), "Page.nothing", "{}") // no session, no event
}

func TestWindows(t *testing.T) {
	c := Dial(t, Start(t).URL())
	window := func(params string) string {
		page := c.Attach(member(c.Call("", "Target.createTarget", json.RawMessage(params)), "targetId"))
		var result struct{ WindowID json.RawMessage }
		if err := json.Unmarshal(page.Call("Browser.getWindowForTarget", nil), &result); err != nil {
			t.Fatal(err)
		}
		return string(result.WindowID)
	}
	first := window(`{"url":"about:blank"}`)
	second := window(`{"url":"about:blank","newWindow":true}`)
	if first == second {
		t.Errorf("newWindow opened in window %s", first)
	}
	if third := window(`{"url":"about:blank"}`); third != second {
		t.Errorf("opened in window %s, want the one made last, %s", third, second)
	}
}

func TestDiscoveryOverHTTP(t *testing.T) {
	b := Start(t)
	id := b.OpenHuman("http://a/")
	get := func(path string) string {
		resp, err := http.Get(b.HTTP() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || !json.Valid(body) {
			t.Fatalf("%s: %d %v\n%s", path, resp.StatusCode, err, body)
		}
		return string(body)
	}
	defer http.DefaultClient.CloseIdleConnections()
	for _, path := range []string{"/json/version", "/json/version/"} {
		if body := get(path); !strings.Contains(body, `"webSocketDebuggerUrl": "`+b.URL()+`"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	for _, path := range []string{"/json", "/json/list", "/json/list/"} {
		if body := get(path); !strings.Contains(body, id) {
			t.Errorf("%s lacks the page: %s", path, body)
		}
	}
	get("/json/protocol")
}

func TestManyClientsAtOnce(t *testing.T) {
	b := Start(t)
	var clients sync.WaitGroup
	for i := range 8 {
		c := Dial(t, b.URL())
		clients.Go(func() {
			page := c.NewPage("about:blank")
			var pending []*Pending
			for n := range 200 {
				pending = append(pending, c.Go(page.Session, "Runtime.evaluate", map[string]any{"expression": fmt.Sprint(i*1000 + n)}))
			}
			for n, p := range pending {
				if raw, _ := p.Wait(); !strings.Contains(string(raw), fmt.Sprintf(`"value":%d,`, i*1000+n)) {
					t.Errorf("client %d, evaluate %d: %s", i, n, raw)
				}
			}
			page.Close()
		})
	}
	clients.Wait()
}

func BenchmarkEvaluate(b *testing.B) {
	browser, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer browser.Close()
	for _, inFlight := range []int{1, 32} {
		b.Run(fmt.Sprint(inFlight, " in flight"), func(b *testing.B) {
			c := Dial(b, browser.URL())
			page := c.NewPage("about:blank")
			var pending []*Pending
			for b.Loop() {
				pending = append(pending, c.Go(page.Session, "Runtime.evaluate", map[string]any{"expression": "1"}))
				if len(pending) == inFlight {
					for _, p := range pending {
						p.Wait()
					}
					pending = pending[:0]
				}
			}
		})
	}
}
