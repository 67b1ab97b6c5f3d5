package main_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// actor is somebody with a page and a root below its own, who tries commands
// at all three.
type actor struct {
	*proxytest.Client
	page   proxytest.Page
	origin string // of its page
	depths map[string]string
}

func newActor(t *testing.T, c *proxytest.Client, origin string) *actor {
	t.Helper()
	a := &actor{Client: c, page: c.NewPage("about:blank"), origin: origin}
	a.page.Navigate(origin + "/plain")
	var sub struct{ SessionID string }
	decode(t, c.Call("", "Target.attachToBrowserTarget", nil), &sub)
	a.depths = map[string]string{"root": "", "sub-root": sub.SessionID, "page session": a.page.Session}
	return a
}

// try sends a command whose params may name things of the actor's own: $page,
// $window, and what is made for this one command: $tab, $context, $session.
func (a *actor) try(t *testing.T, depth string, cmd command) proxytest.Msg {
	t.Helper()
	session := a.depths[depth]
	p := strings.ReplaceAll(cmd.params, "$page", a.page.TargetID)
	p = strings.ReplaceAll(p, "$origin", a.origin)
	for _, each := range []struct {
		name string
		make func() string
	}{
		{"$tab", func() string { return a.NewPage("about:blank").TargetID }},
		{"$session", func() string {
			var made struct{ SessionID string }
			decode(t, a.Call(session, "Target.attachToTarget", params{"targetId": a.page.TargetID, "flatten": true}), &made)
			return made.SessionID
		}},
		{"$context", func() string { return newContext(t, a.Client, false) }},
		{"$window", func() string { return windowOf(t, a.Client, a.page.TargetID) }},
	} {
		if strings.Contains(p, each.name) {
			p = strings.ReplaceAll(p, each.name, each.make())
		}
	}
	return a.Go(session, cmd.method, json.RawMessage(p)).Reply()
}

// newContext makes a browser context.
func newContext(t *testing.T, c *proxytest.Client, dispose bool) string {
	t.Helper()
	var made struct{ BrowserContextID string }
	decode(t, c.Call("", "Target.createBrowserContext", params{"disposeOnDetach": dispose}), &made)
	return made.BrowserContextID
}

// windowOf is the id of a target's window, as written.
func windowOf(t *testing.T, c *proxytest.Client, targetID string) string {
	t.Helper()
	var reply struct{ WindowID json.Number }
	decode(t, c.Call("", "Browser.getWindowForTarget", params{"targetId": targetID}), &reply)
	return reply.WindowID.String()
}

// outcome is what kind of reply it is: the error, or the names in the result.
func outcome(t *testing.T, m proxytest.Msg) string {
	t.Helper()
	if err := m.Err(); err != nil {
		return err.Error()
	}
	var result map[string]json.RawMessage
	decode(t, m.Result, &result)
	return fmt.Sprint("result with ", slices.Sorted(maps.Keys(result)))
}

// What a client may do to its own is answered as Chrome answers it, at every
// depth; so is what a session of that depth does not know.
func TestPolicyPassesAsChrome(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a := newActor(t, m.dial(t, "a"), site.URL)
	native := newActor(t, m.dialBrowser(t), site.Other)
	for _, cmd := range []command{
		{method: "Target.getTargets", params: `{}`},
		{method: "Target.getTargetInfo", params: `{}`},
		{method: "Target.getTargetInfo", params: `{"targetId":"$page"}`},
		{method: "Target.createTarget", params: `{"url":"about:blank"}`},
		{method: "Target.closeTarget", params: `{"targetId":"$tab"}`},
		{method: "Target.activateTarget", params: `{"targetId":"$page"}`},
		{method: "Target.attachToTarget", params: `{"targetId":"$page","flatten":true}`},
		{method: "Target.attachToTarget", params: `{"targetId":"$page"}`},
		{method: "Target.detachFromTarget", params: `{"sessionId":"$session"}`},
		{method: "Target.attachToBrowserTarget", params: `{}`},
		{method: "Target.autoAttachRelated", params: `{"targetId":"$page","waitForDebuggerOnStart":false}`},
		{method: "Target.getDevToolsTarget", params: `{"targetId":"$page"}`},
		{method: "Target.setDiscoverTargets", params: `{"discover":true}`},
		{method: "Target.setDiscoverTargets", params: `{"discover":false}`},
		{method: "Target.setDiscoverTargets", params: `{"discover":false,"filter":[{}]}`},
		{method: "Target.setDiscoverTargets", params: `{}`},
		{method: "Target.setDiscoverTargets", params: `{"discover":1}`},
		{method: "Target.setAutoAttach", params: `{"autoAttach":false,"waitForDebuggerOnStart":false,"flatten":true}`},
		{method: "Target.setAutoAttach", params: `{"autoAttach":false,"waitForDebuggerOnStart":false}`},
		{method: "Target.setAutoAttach", params: `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true,"filter":[{}]}`},
		{method: "Target.setAutoAttach", params: `{"autoAttach":true}`},
		{method: "Target.createBrowserContext", params: `{}`},
		{method: "Target.getBrowserContexts", params: `{}`},
		{method: "Target.disposeBrowserContext", params: `{"browserContextId":"$context"}`},
		{method: "Target.sendMessageToTarget", params: `{"sessionId":"` + unknownID + `","message":"{}"}`},
		{method: "Browser.getVersion", params: `{}`},
		{method: "Browser.getBrowserCommandLine", params: `{}`},
		{method: "Browser.getHistograms", params: `{}`},
		{method: "Browser.getHistogram", params: `{"name":"none"}`},
		{method: "Browser.getWindowForTarget", params: `{"targetId":"$page"}`},
		{method: "Browser.getWindowBounds", params: `{"windowId":$window}`},
		{method: "Browser.setWindowBounds", params: `{"windowId":$window,"bounds":{"width":900}}`},
		{method: "Browser.setContentsSize", params: `{"windowId":$window,"width":800,"height":600}`},
		{method: "Browser.cancelDownload", params: `{"guid":"none"}`},
		{method: "Browser.setDownloadBehavior", params: `{"behavior":"default"}`},
		{method: "Browser.grantPermissions", params: `{"origin":"$origin","permissions":["geolocation"]}`},
		{method: "Browser.setPermission", params: `{"origin":"$origin","permission":{"name":"geolocation"},"setting":"granted"}`},
		{method: "Browser.resetPermissions", params: `{}`},
		{method: "Storage.getCookies", params: `{}`},
		{method: "Storage.setCookies", params: `{"cookies":[{"name":"set","value":"yes","url":"$origin"}]}`},
		{method: "Storage.getUsageAndQuota", params: `{"origin":"$origin"}`},
		{method: "Storage.getTrustTokens", params: `{}`},
		{method: "Network.clearBrowserCache", params: `{}`},
		{method: "Security.enable", params: `{}`},
		{method: "Security.disable", params: `{}`},
		{method: "Fetch.disable", params: `{}`},
		{method: "SystemInfo.getInfo", params: `{}`},
		{method: "SystemInfo.getProcessInfo", params: `{}`},
		{method: "SystemInfo.getFeatureState", params: `{"featureState":"none"}`},
		{method: "Tracing.getCategories", params: `{}`},
		{method: "Tracing.end", params: `{}`},
		{method: "IO.read", params: `{"handle":"none"}`},
		{method: "IO.close", params: `{"handle":"none"}`},
		{method: "Runtime.enable", params: `{}`},
		{method: "Foo.bar", params: `{}`},
	} {
		for depth := range a.depths {
			want := outcome(t, native.try(t, depth, cmd))
			if got := outcome(t, a.try(t, depth, cmd)); got != want {
				t.Errorf("%s %s at the %s: want Chrome's %s, got %s", cmd.method, cmd.params, depth, want, got)
			}
		}
	}
	mustBeAlive(t, "the client", a.page)
}

// What would act on everybody is refused with the documented error, and
// nothing happens.
func TestPolicyRefuses(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	neighbour := m.dial(t, "neighbour")
	stays := neighbour.NewPage("about:blank")
	stays.Navigate(site.URL + "/cookie?n=login&v=yes")
	stays.Eval("localStorage.kept = 'yes'")
	a := newActor(t, m.dial(t, "a"), site.URL)
	pid := m.browserPID(t)

	refused := func(depth string, cmd command, want string) {
		t.Helper()
		if err := a.try(t, depth, cmd).Err(); err == nil || err.Code != -32000 || !strings.Contains(err.Message, want) {
			t.Errorf("%s at the %s: want -32000 with %q, got %v", cmd.method, depth, want, err)
		}
	}
	for depth := range a.depths {
		for _, cmd := range []command{
			{method: "Browser.crash", params: `{}`},
			{method: "Browser.crashGpuProcess", params: `{}`},
			{method: "Browser.setGlobalPrivacyControl", params: `{"enabled":true}`},
			{method: "Browser.addMockCamera", params: `{}`},
			{method: "Browser.setDockTile", params: `{"badgeLabel":"a"}`},
			{method: "Browser.executeBrowserCommand", params: `{"commandId":"openTabSearch"}`},
			{method: "Target.exposeDevToolsProtocol", params: `{"targetId":"$page"}`},
			{method: "Target.setRemoteLocations", params: `{"locations":[]}`},
			{method: "Target.openDevTools", params: `{"targetId":"$page"}`},
		} {
			refused(depth, cmd, "Not allowed")
		}
		for _, cmd := range []command{
			{method: "Storage.clearCookies", params: `{}`},
			{method: "Storage.deleteCookies", params: `{"name":"login"}`},
			{method: "Network.clearBrowserCookies", params: `{}`},
			{method: "Storage.clearDataForOrigin", params: `{"origin":"$origin","storageTypes":"cookies"}`},
			{method: "Storage.clearDataForOrigin", params: `{"origin":"$origin","storageTypes":"local_storage,cookies"}`},
			{method: "Storage.clearDataForOrigin", params: `{"origin":"$origin","storageTypes":"all"}`},
			{method: "Storage.clearDataForStorageKey", params: `{"storageKey":"$origin/","storageTypes":"all"}`},
			{method: "Storage.runBounceTrackingMitigations", params: `{}`},
		} {
			refused(depth, cmd, "--allow-clearing")
		}
		if depth != "page session" {
			refused(depth, command{method: "Fetch.enable", params: `{}`}, "Not allowed")
			refused(depth, command{method: "Security.setIgnoreCertificateErrors", params: `{"ignore":true}`}, "Not allowed")
		}
	}

	stays.Navigate(site.URL + "/cookie")
	if got := text(t, stays.Eval("[document.cookie, localStorage.kept].join('; ')")); got != "login=yes; yes" {
		t.Errorf("the neighbour's cookie and storage: want both kept, got %q", got)
	}
	if got := m.browserPID(t); got != pid {
		t.Errorf("browser's pid: want still %d, got %d", pid, got)
	}
	mustBeAlive(t, "the client", a.page)

	t.Run("in a context of its own it may", func(t *testing.T) {
		if _, err := a.CallErr("", "Storage.clearCookies", params{"browserContextId": newContext(t, a.Client, true)}); err != nil {
			t.Error(err)
		}
	})
}

// The operator may let clients wipe the login.
func TestAllowClearing(t *testing.T) {
	m := serve(t, "--allow-clearing")
	site := proxytest.StartSite(t)
	a := newActor(t, m.dial(t, "a"), site.URL)
	for depth, cmd := range map[string]command{
		"root":         {method: "Storage.clearCookies", params: `{}`},
		"sub-root":     {method: "Storage.clearCookies", params: `{}`},
		"page session": {method: "Network.clearBrowserCookies", params: `{}`},
	} {
		a.page.Navigate(site.URL + "/cookie?n=login&v=yes")
		if err := a.try(t, depth, cmd).Err(); err != nil {
			t.Errorf("%s at the %s: %v", cmd.method, depth, err)
		}
		a.page.Navigate(site.URL + "/cookie")
		if got := text(t, a.page.Eval("document.cookie")); got != "" {
			t.Errorf("cookies after %s at the %s: want none, got %q", cmd.method, depth, got)
		}
	}
}

// A foreign window answers as one that does not exist, and keeps its bounds.
func TestForeignWindowIsUnknown(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := newActor(t, m.dial(t, "a"), site.URL), newActor(t, m.dial(t, "b"), site.Other)
	foreign := windowOf(t, b.Client, b.page.TargetID)
	bounds := func() string {
		return string(b.Call("", "Browser.getWindowBounds", json.RawMessage(`{"windowId":`+foreign+`}`)))
	}
	before := bounds()
	for depth := range a.depths {
		for method, rest := range map[string]string{
			"Browser.getWindowBounds": "",
			"Browser.setWindowBounds": `,"bounds":{"width":333,"height":333}`,
			"Browser.setContentsSize": `,"width":333,"height":333`,
		} {
			want := outcome(t, a.try(t, depth, command{method: method, params: `{"windowId":987654321` + rest + `}`}))
			got := outcome(t, a.try(t, depth, command{method: method, params: `{"windowId":` + foreign + rest + `}`}))
			if got != want || !strings.HasPrefix(got, "-32000") {
				t.Errorf("%s of a foreign window at the %s: want it as for an unknown one, %s, got %s", method, depth, want, got)
			}
		}
	}
	if got := bounds(); got != before {
		t.Errorf("bounds of b's window: want still %s, got %s", before, got)
	}
}

// One client's grants do not take another's away, and end with it.
func TestPermissionsAddUp(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := newActor(t, m.dial(t, "a"), site.URL), newActor(t, m.dial(t, "b"), site.URL)
	states := func(who *actor) string {
		return text(t, who.page.Eval(`Promise.all(["geolocation", "notifications"].map(name => navigator.permissions.query({name}))).then(all => all.map(each => each.state).join())`))
	}
	must := func(who *actor, when, want string) {
		t.Helper()
		eventually(t, 10*time.Second, "geolocation,notifications "+want+" "+when, func() bool { return states(who) == want })
	}
	must(b, "at first", "prompt,"+notifications(t, b))
	for depth := range a.depths {
		if err := a.try(t, depth, command{method: "Browser.grantPermissions", params: `{"origin":"$origin","permissions":["geolocation"]}`}).Err(); err != nil {
			t.Fatal(err)
		}
		if err := b.try(t, depth, command{method: "Browser.grantPermissions", params: `{"origin":"$origin","permissions":["notifications"]}`}).Err(); err != nil {
			t.Fatal(err)
		}
		for _, who := range []*actor{a, b} {
			must(who, "after both granted at the "+depth, "granted,granted")
		}
	}
	a.Close()
	eventually(t, 10*time.Second, "end of a's grant", func() bool { return !strings.HasPrefix(states(b), "granted") })
	if got := states(b); !strings.HasSuffix(got, ",granted") {
		t.Errorf("permissions after a left: want notifications still granted, got %s", got)
	}
}

// notifications is their state while nobody has granted anything.
func notifications(t *testing.T, a *actor) string {
	t.Helper()
	return text(t, a.page.Eval(`navigator.permissions.query({name: "notifications"}).then(each => each.state)`))
}

// One trace at a time: the others hear Chrome's own error, and a client that
// leaves ends its own. A stream can be read by its session only.
func TestOneTraceAtATime(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := newActor(t, m.dial(t, "a"), site.URL), newActor(t, m.dial(t, "b"), site.URL)
	begin := command{method: "Tracing.start", params: `{"transferMode":"ReturnAsStream","traceConfig":{"includedCategories":["none"]}}`}
	started := func(who *actor, depth string) func() bool {
		return func() bool { return who.try(t, depth, begin).Err() == nil }
	}
	for depth, session := range a.depths {
		eventually(t, 5*time.Second, "start of a trace at the "+depth, started(a, depth))
		for other := range b.depths {
			if err := b.try(t, other, begin).Err(); err == nil || !strings.HasPrefix(err.Message, "Tracing has already been started") {
				t.Errorf("Tracing.start of b at the %s: want Chrome's own error, got %v", other, err)
			}
			if err := b.try(t, other, command{method: "Tracing.end", params: "{}"}).Err(); err == nil || err.Message != "Tracing is not started" {
				t.Errorf("Tracing.end of b at the %s: want Chrome's own error, got %v", other, err)
			}
		}
		if err := a.try(t, depth, command{method: "Tracing.end", params: "{}"}).Err(); err != nil {
			t.Fatalf("Tracing.end at the %s: %v", depth, err)
		}
		stream := a.AwaitEvent(session, "Tracing.tracingComplete").Param("stream")
		read := command{method: "IO.read", params: fmt.Sprintf(`{"handle":%q}`, stream)}
		for other := range b.depths {
			if err := b.try(t, other, read).Err(); err == nil || err.Message != "Invalid stream handle" {
				t.Errorf("IO.read of a's stream by b at the %s: want Chrome's own error, got %v", other, err)
			}
		}
		if err := a.try(t, depth, read).Err(); err != nil {
			t.Errorf("IO.read of its own stream at the %s: %v", depth, err)
		}
	}
	eventually(t, 5*time.Second, "start of another trace", started(a, "root"))
	a.Drop()
	// Chrome may leave a start unanswered that comes while it ends the trace.
	n := 0
	eventually(t, 30*time.Second, "start of another client's trace after a left", func() bool {
		n++
		next := m.dial(t, fmt.Sprintf("next-%d", n))
		start := next.Go("", begin.method, json.RawMessage(begin.params))
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && !start.Answered(); {
			next.CallErr("", "Browser.getVersion", nil)
		}
		if !start.Answered() {
			next.Drop()
			return false
		}
		return start.Reply().Err() == nil
	})
}
