package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// webAttacks is what a page can try: it is given the paths to try, and says
// what it got. Where a page cannot know, the test looks for the effect.
const webAttacks = `async (proxy, paths) => {
  const got = [];
  const note = (ok, what) => got.push({ok, what});
  const within = (promise) => Promise.race([promise, new Promise((_, no) => setTimeout(no, 10000))]);
  const tries = [];
  const attempt = (what, run) => tries.push(within(run()).then((ok) => note(ok, what), () => note(false, what)));
  const element = (tag, fields) => new Promise((done) => {
    const e = Object.assign(document.createElement(tag), fields);
    e.onload = e.onerror = () => { try { done((e.contentDocument?.body?.textContent ?? '') != '') } catch { done(false) } };
    document.body.append(e);
  });
  for (const path of paths.filter((path) => !/json|v1|status|metrics|dashboard/.test(path))) { // Chrome slows those down that fail
    attempt('WebSocket ' + path, () => new Promise((yes, no) => { const w = new WebSocket('ws://' + proxy + path); w.onopen = () => yes(true); w.onerror = no }));
  }
  const sockets = tries.splice(0);
  for (const path of paths) {
    const url = 'http://' + proxy + path;
    for (const init of [
      {}, {method: 'POST'}, {method: 'PUT'}, {credentials: 'include'}, {mode: 'no-cors'}, {mode: 'no-cors', method: 'POST', body: '{"force":true}'},
      {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"force":true}'}, {headers: {Authorization: 'Bearer x'}}, {referrerPolicy: 'no-referrer'},
    ]) attempt('fetch ' + path + ' ' + JSON.stringify(init), async () => { const r = await fetch(url, init); return r.ok && (await r.text()) != '' });
    attempt('EventSource ' + path, () => new Promise((yes, no) => { const e = new EventSource(url); e.onopen = () => yes(true); e.onerror = () => { e.close(); no() } }));
    attempt('beacon ' + path, async () => navigator.sendBeacon(url, '{"force":true}') && false); // the effect counts
    attempt('img ' + path, () => element('img', {src: url}).then(() => false));
    attempt('script ' + path, () => element('script', {src: url}).then(() => false));
    attempt('style ' + path, () => element('link', {rel: 'stylesheet', href: url}));
    if (!path.startsWith('/client-')) attempt('iframe ' + path, () => element('iframe', {src: url}));
    for (const [method, enctype] of [['get', 'text/plain'], ['post', 'text/plain'], ['post', 'multipart/form-data']]) {
      attempt('form ' + path, async () => {
        const form = Object.assign(document.createElement('form'), {method, enctype, action: url, target: 'sink'});
        form.innerHTML = '<input name="{&quot;force&quot;:true,&quot;a&quot;:&quot;" value="&quot;}">';
        document.body.append(form);
        form.submit();
        return false;
      });
    }
    await Promise.all(tries.splice(0));
  }
  await Promise.all(sockets);
  return got;
}`

// A page in the very browser reaches nothing of the proxy, whatever server it
// came from: it reads nothing, opens no socket, and nothing comes of its requests.
func TestAttacksByAPage(t *testing.T) {
	t.Parallel()
	m := serve(t, "--grace", "10m")
	a := &tally{t: t}
	defer a.print()
	site := proxytest.StartSite(t)
	victim := m.dial(t, "victim")
	page := victim.NewPage("about:blank")
	var own struct{ ID string } // of whoever uses HTTP without a name
	status, made := request(t, http.MethodPut, m.http("/json/new?about:blank"))
	if decode(t, made, &own); status != 200 || own.ID == "" {
		t.Fatalf("PUT /json/new: %d %s", status, made)
	}
	tabs := func() int { return strings.Count(string(get(t, m.http("/json/list"))), `"id"`) }
	before := tabs()

	paths := append(servedPaths("victim", page.TargetID), "/json/close/"+own.ID, "/json/activate/"+own.ID)
	agent := m.dial(t, "agent")
	agent.Timeout = 2 * time.Minute
	attacker := agent.NewPage("about:blank")
	_, port, _ := strings.Cut(m.addr, ":")
	few := []string{"/json/list", "/client-victim/json/list", "/client-victim/json/close/" + page.TargetID, "/json/close/" + own.ID}
	for _, way := range []struct {
		origin, proxy string
		paths         []string
	}{
		{site.URL, m.addr, paths},
		{site.Other, m.addr, paths},
		{site.URL, "0.0.0.0:" + port, few}, // these lead to 127.0.0.1, too, but Chrome says less of who asks
		{site.URL, "[::ffff:127.0.0.1]:" + port, few},
	} {
		attacker.Navigate(way.origin + "/plain")
		attacker.Call("Page.setDocumentContent", params{"frameId": attacker.TargetID, "html": "<body><iframe name=sink></iframe>"})
		quoted, err := json.Marshal(way.paths)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Result struct {
				Value []struct {
					OK   bool
					What string
				}
			}
			ExceptionDetails json.RawMessage
		}
		decode(t, attacker.Call("Runtime.evaluate", params{
			"expression": fmt.Sprintf("(%s)(%q, %s)", webAttacks, way.proxy, quoted), "awaitPromise": true, "returnByValue": true,
		}), &answer)
		if answer.ExceptionDetails != nil {
			t.Fatalf("the attack itself failed: %s", answer.ExceptionDetails)
		}
		for _, got := range answer.Result.Value {
			a.tried(got.OK, "a page of %s on %s: %s", way.origin, way.proxy, got.What)
		}
		for _, path := range []string{"/json/list", "/client-victim/json/list", "/json/close/" + own.ID} { // it goes there itself
			attacker.Navigate(way.origin + "/plain")
			attacker.Call("Runtime.evaluate", params{"expression": fmt.Sprintf("new Promise(() => { location = 'http://%s%s' })", way.proxy, path)})
			shown := text(t, attacker.Eval("document.documentElement.textContent"))
			a.tried(strings.Contains(shown, own.ID) || strings.Contains(shown, page.TargetID), "navigation to %s%s shows %s", way.proxy, path, shown)
		}
	}
	a.tried(tabs() != before, "tabs without a name: %d, and %d before", tabs(), before)
	a.tried(victim.Ended() || text(t, page.Eval(`"here"`)) != "here", "the victim's tab is gone")
}

// An agent's own tab goes where its client sends it, and from there where its
// page likes: to no path that is not its own client's.
func TestAttacksByAnAgentsOwnTab(t *testing.T) {
	t.Parallel()
	f := fortify(t, serve(t, "--auth", "token"))
	defer f.print()
	own := f.path(t, "mallory")
	mallory := proxytest.Dial(t, f.ws(own))
	tab := mallory.NewPage("about:blank")
	visit := func(path string) (status int, shown string) {
		t.Helper()
		var navigated struct{ ErrorText string }
		if decode(t, tab.Call("Page.navigate", params{"url": f.http(path)}), &navigated); navigated.ErrorText != "" {
			return 0, navigated.ErrorText
		}
		var got struct {
			Status int
			Text   string
		}
		decode(t, tab.Eval(`new Promise((done) => document.readyState == "complete" ? done() : addEventListener("load", done)).then(() =>
			({status: performance.getEntriesByType("navigation")[0].responseStatus, text: document.documentElement.textContent}))`), &got)
		return got.Status, got.Text
	}
	if status, shown := visit(own + "/json/list"); status != 200 || !strings.Contains(shown, tab.TargetID) {
		t.Fatalf("its own list: %d %s", status, shown)
	}
	paths := servedPaths("victim", f.page.TargetID)
	for _, path := range paths {
		ways := []string{path}
		if strings.HasPrefix(path, "/client-") {
			ways = append(ways, strings.TrimSuffix(own, "/client-mallory")+path)
		}
		for _, way := range ways {
			status, shown := visit(way)
			f.tried(status/100 == 2 || strings.Contains(shown, f.page.TargetID), "navigation to %s: %d %s", way, status, shown)
		}
	}
	visit(own + "/json/version") // whose page is of the proxy's own origin
	quoted, err := json.Marshal(paths)
	if err != nil {
		t.Fatal(err)
	}
	var fetched []struct {
		Status int
		What   string
	}
	// With credentials Chrome would ask its user for a password, and wait.
	decode(t, tab.Eval(fmt.Sprintf(`Promise.all(%s.flatMap((path) => ["GET", "POST", "PUT", "DELETE"].map(async (method) =>
		({what: method + " " + path, status: await fetch(path, {method, credentials: "omit"}).then((r) => r.status, () => 0)}))))`, quoted)), &fetched)
	if len(fetched) != 4*len(paths) {
		t.Fatalf("%d fetches of %d paths", len(fetched), len(paths))
	}
	for _, got := range fetched {
		f.tried(got.Status/100 == 2, "its page fetches %s: %d", got.What, got.Status)
	}
	opened := text(t, tab.Eval(`Promise.any(["/client-victim", "/devtools/browser"].map((path) => new Promise((yes, no) => {
		const w = new WebSocket(path); w.onopen = () => yes(path); w.onerror = no }))).catch(() => "")`))
	f.tried(opened != "", "its page opens %s", opened)
	f.holds(t)
}
