package main_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// unknownID has the form of a target, session or context id; Chrome never made it.
const unknownID = "0123456789ABCDEF0123456789ABCDEF"

// command is one command without its id.
type command struct{ method, params, session string }

// text writes the command, its keys and method plain or escaped.
func (c command) text(id int, escaped bool) string {
	key, method := "method", c.method
	if escaped {
		key = `\u006dethod`
		method = fmt.Sprintf(`\u%04x%s`, method[0], method[1:])
	}
	text := fmt.Sprintf(`{"id":%d,"%s":"%s","params":%s`, id, key, method, c.params)
	if c.session != "" {
		text += fmt.Sprintf(`,"sessionId":"%s"`, c.session)
	}
	return text + "}"
}

// way is one of the four ways by which a client can send a command.
type way struct {
	name string
	ask  func(command) (reply string)
}

// waysOf returns the four ways of a client that has a page.
func waysOf(t *testing.T, c *proxytest.Client, own proxytest.Page) []way {
	t.Helper()
	var nested struct{ SessionID string }
	decode(t, c.Call("", "Target.attachToTarget", params{"targetId": own.TargetID}), &nested) // not flat
	id := 700_000                                                                             // far from what the client itself counts up
	ask := func(cmd command, escaped bool) string {
		id++
		c.Send(cmd.text(id, escaped))
		return string(c.Await(func(m proxytest.Msg) bool { return m.ID == fmt.Sprint(id) }).Raw)
	}
	return []way{
		{"root", func(cmd command) string { return ask(cmd, false) }},
		{"page session", func(cmd command) string {
			if cmd.session == "" {
				cmd.session = own.Session
			}
			return ask(cmd, false)
		}},
		{"escaped", func(cmd command) string { return ask(cmd, true) }},
		{"nested", func(cmd command) string {
			id++
			inner := id
			c.Go("", "Target.sendMessageToTarget", params{"sessionId": nested.SessionID, "message": cmd.text(inner, false)})
			event := c.Await(func(m proxytest.Msg) bool {
				return m.Is("", "Target.receivedMessageFromTarget") && m.Param("sessionId") == nested.SessionID &&
					strings.HasPrefix(m.Param("message"), fmt.Sprintf(`{"id":%d`, inner))
			})
			return event.Param("message")
		}},
	}
}

// names are the ids that commands can name; own is a tab of the client itself.
type names struct{ own, target, session, context string }

// naming returns one command for each way of naming something of somebody's.
func naming(n names) []command {
	target := fmt.Sprintf(`{"targetId":"%s"}`, n.target)
	session := fmt.Sprintf(`{"sessionId":"%s"}`, n.session)
	context := fmt.Sprintf(`{"browserContextId":"%s"}`, n.context)
	message := `"message":"{\"id\":1,\"method\":\"Page.close\"}"`
	return []command{
		{method: "Target.attachToTarget", params: fmt.Sprintf(`{"targetId":"%s","flatten":true}`, n.target)},
		{method: "Target.attachToTarget", params: target},
		{method: "Target.closeTarget", params: target},
		{method: "Target.closeTarget", params: fmt.Sprintf(`{"target\u0049d":"%s"}`, n.target)},
		// The last of two equal keys is the one that Chrome takes.
		{method: "Target.closeTarget", params: fmt.Sprintf(`{"targetId":"%s","targetId":"%s"}`, n.own, n.target)},
		{method: "Target.closeTarget", params: fmt.Sprintf(`{"targetId":"%s","target\u0049d":"%s"}`, n.own, n.target)},
		{method: "Target.activateTarget", params: target},
		{method: "Target.getTargetInfo", params: target},
		{method: "Target.detachFromTarget", params: session},
		{method: "Target.detachFromTarget", params: target},
		{method: "Target.sendMessageToTarget", params: fmt.Sprintf(`{"sessionId":"%s",%s}`, n.session, message)},
		{method: "Target.sendMessageToTarget", params: fmt.Sprintf(`{"targetId":"%s",%s}`, n.target, message)},
		{method: "Target.createTarget", params: fmt.Sprintf(`{"url":"about:blank","browserContextId":"%s"}`, n.context)},
		{method: "Target.disposeBrowserContext", params: context},
		{method: "Storage.getCookies", params: context},
		{method: "Browser.getWindowForTarget", params: target},
		{method: "Page.close", params: "{}", session: n.session},
	}
}

var (
	anyID     = regexp.MustCompile(`[0-9A-F]{32}`)
	commandID = regexp.MustCompile(`"id":-?\d+`)
	padding   = regexp.MustCompile(`("id":[^ ,]+) +,`)
)

// normal is a reply without what differs between two equal answers: ids.
func normal(reply string) string {
	return commandID.ReplaceAllString(anyID.ReplaceAllString(reply, "(id)"), `"id":(n)`)
}

// unpadded is a reply without the blanks that may stand behind a shorter id,
// which was put in the place of a longer one.
func unpadded(reply string) string { return padding.ReplaceAllString(reply, "$1,") }

// content is what a reply says, in whatever order its members stand.
func content(t *testing.T, reply string) string {
	t.Helper()
	m, err := proxytest.ParseMsg([]byte(reply))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("result %s, error %s, session %q", m.Result, m.Error, m.Session)
}

// What belongs to somebody else answers exactly as what does not exist, and
// that is what Chrome itself answers.
func TestForeignIsUnknown(t *testing.T) {
	m := serve(t)
	a, b, browser := m.dial(t, "a"), m.dial(t, "b"), m.dialBrowser(t)
	ofA, ofB, ofNobody := a.NewPage("about:blank"), b.NewPage("about:blank"), browser.NewPage("about:blank")
	var context struct{ BrowserContextID string }
	decode(t, b.Call("", "Target.createBrowserContext", nil), &context)
	tab := ""
	for _, each := range targets(t, b, []params{{"type": "tab"}}) {
		tab = each.TargetID
	}
	if tab == "" {
		t.Fatal("getTargets of b with filter tab: want the tab of b's page, got none")
	}

	unknown := naming(names{ofA.TargetID, unknownID, unknownID, unknownID})
	native := naming(names{ofNobody.TargetID, unknownID, unknownID, unknownID})
	foreign := map[string][]command{
		"b's page":      naming(names{ofA.TargetID, ofB.TargetID, ofB.Session, context.BrowserContextID}),
		"b's tab":       naming(names{ofA.TargetID, tab, ofB.Session, context.BrowserContextID}),
		"nobody's page": naming(names{ofA.TargetID, ofNobody.TargetID, ofNobody.Session, context.BrowserContextID}),
	}
	ofChrome := waysOf(t, browser, ofNobody)
	for i, way := range waysOf(t, a, ofA) {
		for k, cmd := range unknown {
			want := normal(way.ask(cmd))
			if native := normal(ofChrome[i].ask(native[k])); content(t, want) != content(t, native) {
				t.Errorf("%s by %s of an unknown id, %s:\nwant what Chrome says: %s\ngot:                   %s", cmd.method, way.name, cmd.params, native, want)
			}
			for whose, commands := range foreign {
				if got := normal(way.ask(commands[k])); got != want {
					t.Errorf("%s by %s of %s, %s:\nwant as for an unknown id: %s\ngot:                       %s", cmd.method, way.name, whose, commands[k].params, want, got)
				}
			}
		}
	}
	mustBeAlive(t, "b", ofB)
	mustBeAlive(t, "the browser's own client", ofNobody)
	mustBeStrangers(t, a, b)
}

// Browser.close ends the client that sent it, as if the browser were its own.
func TestBrowserCloseEndsOneClient(t *testing.T) {
	m := serve(t)
	neighbour := m.dial(t, "neighbour")
	stays := neighbour.NewPage("about:blank")
	browser, pid := m.dialBrowser(t), m.browserPID(t)
	for i, name := range []string{"root", "page session", "escaped", "nested"} {
		t.Run(name, func(t *testing.T) {
			c := m.dial(t, "closer")
			own := c.NewPage("about:blank")
			var context struct{ BrowserContextID string }
			decode(t, c.Call("", "Target.createBrowserContext", nil), &context)
			c.Call("", "Target.createTarget", params{"url": "about:blank", "browserContextId": context.BrowserContextID})

			reply := unpadded(normal(waysOf(t, c, own)[i].ask(command{method: "Browser.close", params: "{}"})))
			if !strings.HasPrefix(reply, `{"id":(n),"result":{}`) {
				t.Errorf(`reply to Browser.close: want "result":{}, got %s`, reply)
			}
			if code, text := c.CloseStatus(); code != 1000 {
				t.Errorf("close code after Browser.close: want 1000, got %d %q", code, text)
			}
			eventually(t, 5*time.Second, "end of the closer's tabs", func() bool {
				return !slices.ContainsFunc(targets(t, browser, nil), func(each target) bool {
					return each.TargetID == own.TargetID || each.BrowserContextID == context.BrowserContextID
				})
			})
			var contexts struct{ BrowserContextIDs []string }
			decode(t, browser.Call("", "Target.getBrowserContexts", nil), &contexts)
			if slices.Contains(contexts.BrowserContextIDs, context.BrowserContextID) {
				t.Errorf("contexts of the browser: want the closer's %s gone, got %v", context.BrowserContextID, contexts.BrowserContextIDs)
			}
			if got := m.browserPID(t); got != pid {
				t.Errorf("browser's pid after Browser.close: want still %d, got %d", pid, got)
			}
			mustBeAlive(t, "the neighbour", stays)
		})
	}
}

// What would hurt everybody is refused, whichever way it comes.
func TestHarmfulCommandsAreRefused(t *testing.T) {
	m := serve(t)
	neighbour, c := m.dial(t, "neighbour"), m.dial(t, "a")
	stays, own := neighbour.NewPage("about:blank"), c.NewPage("about:blank")
	pid := m.browserPID(t)
	for _, way := range waysOf(t, c, own) {
		for _, cmd := range []command{
			{method: "Browser.crash", params: "{}"},
			{method: "Browser.crashGpuProcess", params: "{}"},
			{method: "Target.exposeDevToolsProtocol", params: fmt.Sprintf(`{"targetId":"%s"}`, own.TargetID)},
			{method: "Target.setRemoteLocations", params: `{"locations":[{"host":"127.0.0.1","port":1}]}`},
		} {
			want := `{"id":(n),"error":{"code":-32000,"message":"Not allowed"}`
			if got := unpadded(normal(way.ask(cmd))); !strings.HasPrefix(got, want) {
				t.Errorf("%s by %s: want %s…, got %s", cmd.method, way.name, want, got)
			}
		}
	}
	if got := m.browserPID(t); got != pid {
		t.Errorf("browser's pid: want still %d, got %d", pid, got)
	}
	mustBeAlive(t, "the neighbour", stays)
	mustBeAlive(t, "the client itself", own)
}
