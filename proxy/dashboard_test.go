package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

var update = flag.Bool("update", false, "write the pictures of the dashboard")

// dashboard is the page of a proxy, in a real browser.
type dashboard struct {
	proxytest.Page
	t      *testing.T
	client *proxytest.Client
	server *testServer
}

// until waits until an expression is true in the page, which has no timers
// while scripts are disabled.
func (d dashboard) until(what, expression string) {
	d.t.Helper()
	await(d.t, what, func() bool {
		raw, err := d.client.CallErr(d.Session, "Runtime.evaluate", map[string]any{"expression": "Boolean(" + expression + ")", "returnByValue": true})
		return err == nil && bytes.Contains(raw, []byte(`"value":true`))
	})
}

// open shows the dashboard afresh, as an operator who typed the token.
func (d dashboard) open() {
	d.t.Helper()
	d.Navigate("http://operator:secret@" + d.server.addr + "/")
}

// faults lists what does not fit on the screen, or on a finger.
func (d dashboard) faults(phone bool) (faults []string) {
	d.t.Helper()
	raw := d.Eval(fmt.Sprintf(`(() => {
		const faults = [], name = (e) => e.tagName + "." + e.className + "#" + e.id + " " + e.textContent.trim().slice(0, 40);
		const root = document.scrollingElement;
		if (root.scrollWidth > root.clientWidth) faults.push("the page is " + root.scrollWidth + " wide");
		for (const e of document.querySelectorAll("body *")) {
			if (e.closest(".hidden") || !e.checkVisibility()) continue;
			if (e.clientWidth > 0 && e.scrollWidth > e.clientWidth) faults.push("clipped: " + name(e));
			const box = e.getBoundingClientRect();
			if (box.width > 0 && (box.left < 0 || box.right > root.clientWidth + 0.5)) faults.push("outside: " + name(e));
			if (%t && e.matches("button, .button") && box.width > 0 && Math.min(box.width, box.height) < 40) faults.push("small: " + name(e));
		}
		return faults;
	})()`, phone))
	decode(d.t, raw, &faults)
	return faults
}

// populate gives the proxy a night's worth of clients. The browser behind it is
// the fake one.
func populate(t *testing.T, s *testServer) (busy *proxytest.Client, tabs []proxytest.Page) {
	t.Helper()
	titled := func(p proxytest.Page, title, url string) {
		info, err := json.Marshal(map[string]any{"targetId": p.TargetID, "type": "page", "title": title, "url": url, "attached": true, "canAccessOpener": false})
		if err != nil {
			t.Fatal(err)
		}
		s.browser.Inject(`{"method":"Target.targetInfoChanged","params":{"targetInfo":` + string(info) + `}}`)
	}
	for i := range 6 {
		c := proxytest.Dial(t, s.ws(fmt.Sprintf("/client-restock-%d", i%2)))
		c.NewPage("https://shop.example/restock")
		c.Call("", "Browser.close", nil)
		c.CloseStatus()
	}
	busy = proxytest.Dial(t, s.ws("/client-task-5f0c9a1e77d24b-w2"))
	names := []string{
		"Orders · Seller Central", "Inventory planner", "Campaign manager: autumn sale, all markets", "Messages (3)",
		"A product title that a marketplace made as long as it could: Stainless Steel Vacuum Insulated Water Bottle, 750 ml, Leak Proof, BPA Free, with Straw and Handle, Matte Midnight Blue, Pack of 2",
		"Returns", "Payments overview", "unbrokenwordthatgoesonandonandonandonandonandonandonandonandonandonandonandonandonandonandonandonandon",
		"Listing quality dashboard", "Shipping queue", "Tax documents", "Account health",
	}
	for i, name := range names {
		p := busy.NewPage("about:blank")
		path := strings.ToLower(strings.Fields(strings.NewReplacer(":", "", ",", "").Replace(name))[0])
		if i == 9 {
			path += strings.Repeat("/deeper-and-deeper", 9)
		}
		titled(p, name, "https://seller.example/"+path+"?session=SECRET#frag")
		tabs = append(tabs, p)
	}
	tabs[3].Call("Page.navigate", map[string]any{"url": "https://seller.example/messages"})
	titled(tabs[3], names[3], "https://seller.example/messages?session=SECRET")
	tabs[0].Call("Runtime.evaluate", map[string]any{"expression": "1"})
	s.browser.Crash(tabs[10].TargetID)
	other := proxytest.Dial(t, s.ws("/client-agent-b"))
	p := other.NewPage("about:blank")
	titled(p, `<script>window.stolen = 1</script><img src=x onerror="window.stolen = 2">`, `https://evil.example/"><script>window.stolen = 3</script>`)
	other.Call(p.Session, "DOM.getDocument", nil)
	away := proxytest.Dial(t, s.ws("/client-price-watch"))
	titled(away.NewPage("about:blank"), "Price history", "https://prices.example/item/4711")
	away.Close()
	await(t, "the client in grace", func() bool {
		for _, c := range s.Status().Clients {
			if c.ID == "price-watch" && c.State == "grace" && len(c.Tabs) == 1 && c.Tabs[0].Title == "Price history" {
				return true
			}
		}
		return false
	})
	return busy, tabs
}

// TestDashboardInABrowser looks at the dashboard with a real browser, and
// presses its buttons with a script and without.
func TestDashboardInABrowser(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken, s.cfg.Grace = "secret", 8*time.Minute })
	busy, tabs := populate(t, s)
	chromium := proxytest.StartChromium(t)
	c := proxytest.Dial(t, chromium.WS)
	d := dashboard{Page: c.NewPage("about:blank"), t: t, client: c, server: s}
	d.Call("Network.enable", nil)
	d.Call("Emulation.setScrollbarsHidden", map[string]any{"hidden": true})
	d.open()
	d.until("all tabs", fmt.Sprintf(`document.querySelectorAll(".tabs tbody tr").length === %d`, len(tabs)+2))
	if got := d.Eval(`String(window.stolen) + document.querySelectorAll("main script, main img").length`); string(got) != `"undefined0"` {
		t.Errorf("a title was taken for HTML: %s", got)
	}
	if got := d.Eval(`document.documentElement.outerHTML.includes("SECRET") || document.documentElement.outerHTML.includes("secret")`); string(got) != "false" {
		t.Error("the page shows the query of a URL, or the token")
	}

	for _, width := range []int{1280, 390} {
		phone := width < 700
		height := map[bool]int{false: 900, true: 1500}[phone]
		d.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})
		d.Call("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": phone})
		for _, scheme := range []string{"light", "dark"} {
			d.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
			d.open()
			name := fmt.Sprintf("%d-%s.png", width, scheme)
			shot := d.Screenshot()
			config, _, err := image.DecodeConfig(bytes.NewReader(shot))
			if err != nil || config.Width != width {
				t.Errorf("%s: %d wide, %v", name, config.Width, err)
			}
			if len(shot) > 150<<10 {
				t.Errorf("%s: %d KiB, more than 150", name, len(shot)>>10)
			}
			if *update {
				if err := os.WriteFile(filepath.Join("..", "testdata", "dashboard", name), shot, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, fault := range d.faults(phone) {
				t.Errorf("%s: %s", name, fault)
			}
			d.Eval(`document.querySelectorAll("details").forEach(d => { d.open = true })`)
			for _, fault := range d.faults(phone) {
				t.Errorf("%s, asking back: %s", name, fault)
			}
		}
	}
	d.Call("Emulation.clearDeviceMetricsOverride", nil)
	d.Call("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": false})

	// with the script: what changes is shown, and what the operator does stays
	d.open()
	d.Eval(`window.first = true, document.getElementById("close-` + tabs[0].TargetID + `").open = true`)
	proxytest.Dial(t, s.ws("/client-newcomer"))
	d.until("the newcomer", `document.getElementById("client-newcomer")`)
	if got := d.Eval(`window.first && document.getElementById("close-` + tabs[0].TargetID + `").open`); string(got) != "true" {
		t.Errorf("a refresh closed what was open: %s", got)
	}
	picture := func(tab string) {
		d.Eval(`document.querySelector("#picture-` + tab + ` button").click()`)
	}
	picture(tabs[1].TargetID)
	d.until("the picture", `(document.querySelector("#shot-`+tabs[1].TargetID+` img") || {}).naturalWidth === 1`)
	picture(tabs[1].TargetID)
	d.until("no picture", `!document.querySelector("#shot-`+tabs[1].TargetID+`").firstChild`)
	s.browser.Handle("Page.captureScreenshot", func(proxytest.Command) proxytest.Reply {
		return proxytest.Reply{Error: &proxytest.Error{Code: -32000, Message: "Unable to capture screenshot"}}
	})
	picture(tabs[2].TargetID)
	d.until("why there is no picture", `document.querySelector("#shot-`+tabs[2].TargetID+`").textContent.includes("Unable to capture screenshot; show the tab")`)

	closeTab := func(tab string) {
		t.Helper()
		d.Eval(`document.querySelector("#close-` + tab + ` summary").click(), document.querySelector("#close-` + tab + ` button").click()`)
		s.browser.AwaitCommand(func(cmd proxytest.Command) bool {
			return cmd.Method == "Target.closeTarget" && cmd.Param("targetId") == tab
		})
		d.until("what came of it", `document.querySelector(".notice") && document.querySelector(".notice").textContent === "The tab was told to close."`)
		d.until("one tab less", `!document.getElementById("tab-`+tab+`")`)
	}
	closeTab(tabs[0].TargetID)
	if got := d.Eval(`window.first`); string(got) != "true" {
		t.Error("the button loaded the page again")
	}

	// without it
	d.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	d.open()
	if got := d.Eval(`document.querySelectorAll(".tabs tbody tr").length + " " + document.querySelectorAll(".closes tbody tr").length + " " + document.getElementById("live").innerText`); string(got) != fmt.Sprintf(`"%d 7 Reload"`, len(tabs)+1) {
		t.Errorf("without a script: %s", got)
	}
	closeTab(tabs[1].TargetID)
	d.Call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false})

	// other pages in the operator's browser, which knows the token
	site := proxytest.StartSite(t)
	for _, origin := range []string{site.URL, site.Other} {
		d.Navigate(origin + "/")
		if got := d.Eval(fmt.Sprintf(`(async () => {
			const got = [];
			for (const [path, form] of [["release", "client=agent-b"], ["close-tab", "client=task-5f0c9a1e77d24b-w2&tab=%[2]s"], ["picture", "tab=%[2]s"]]) {
				const url = "http://%[1]s/dashboard/" + path;
				for (const mode of ["cors", "no-cors"]) {
					const response = await fetch(url, {method: "POST", mode, credentials: "include", body: new URLSearchParams(form)}).catch(() => null);
					if (response && response.type !== "opaque") got.push(path + " " + response.status);
				}
				const sink = Object.assign(document.createElement("iframe"), {name: path});
				const button = Object.assign(document.createElement("form"), {method: "post", action: url, target: path});
				for (const [name, value] of new URLSearchParams(form)) button.append(Object.assign(document.createElement("input"), {name, value}));
				document.body.append(sink, button);
				await new Promise(done => { sink.onload = done; button.submit(); });
			}
			for (const path of ["/", "/metrics", "/status", "/dashboard/script.js"]) {
				const image = new Image();
				await new Promise(done => { image.onload = image.onerror = done; image.src = "http://%[1]s" + path; });
				const response = await fetch("http://%[1]s" + path, {credentials: "include", headers: {Accept: "text/html"}}).catch(() => null);
				if (response) got.push(path + " " + response.status);
			}
			return got.join();
		})()`, s.addr, tabs[4].TargetID)); string(got) != `""` {
			t.Errorf("a page of %s reads %s", origin, got)
		}
	}
	for _, c := range s.Status().Clients {
		if want := map[string]int{"agent-b": 1, "task-5f0c9a1e77d24b-w2": len(tabs) - 2}[c.ID]; want > 0 && (c.State != "connected" || len(c.Tabs) != want) {
			t.Errorf("after another page's tries: %s %s with %d tabs, want %d", c.ID, c.State, len(c.Tabs), want)
		}
	}

	d.open()
	const release = `#release-task-5f0c9a1e77d24b-w2`
	d.Eval(`document.querySelector("` + release + ` summary").click(), document.querySelector("` + release + ` button").click()`)
	if code, text := busy.CloseStatus(); code != 1000 || text != "ended by the operator" {
		t.Errorf("the released client: %d %q", code, text)
	}
	d.until("its end", `!document.querySelector("`+release+`") && document.querySelector("#closes tbody").innerText.includes("ended by operator")`)

	for _, m := range c.Transcript() {
		if !m.Is(d.Session, "Network.requestWillBeSent") {
			continue
		}
		var event struct {
			DocumentURL string
			Request     struct{ URL string }
		}
		if err := m.Into(&event); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(event.DocumentURL, site.URL) || strings.HasPrefix(event.DocumentURL, site.Other) {
			continue
		}
		_, rest, _ := strings.Cut(event.Request.URL, "://")
		if own := strings.HasPrefix(strings.TrimPrefix(rest, "operator:secret@"), s.addr+"/"); !own &&
			!strings.HasPrefix(event.Request.URL, "blob:http://"+s.addr+"/") && !strings.HasPrefix(event.Request.URL, "data:") {
			t.Errorf("a request to elsewhere: %s", event.Request.URL)
		}
	}

	// a picture of what a real tab shows
	real := startServer(t, func(s *testServer) {
		s.cfg.AdminToken = "secret"
		s.address = func(context.Context) (string, error) { return chromium.WS, nil }
	})
	red := proxytest.Dial(t, real.ws("/client-a")).NewPage("about:blank")
	red.Navigate("data:text/html,<title>red</title><body style='background:rgb(200,30,30)'>")
	await(t, "the eye on the tab", func() bool {
		resp := real.press(t, "picture", "tab="+red.TargetID)
		picture, kind, err := image.Decode(bytes.NewReader(resp.body))
		if resp.status != 200 {
			return false
		}
		if err != nil || kind != "jpeg" {
			t.Fatalf("picture: %s, %v", kind, err)
		}
		if r, g, _, _ := picture.At(50, 50).RGBA(); r>>8 < 180 || g>>8 > 60 {
			t.Errorf("the tab is red; its picture is %v", picture.At(50, 50))
		}
		return true
	})
}
