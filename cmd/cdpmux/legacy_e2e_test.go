package main_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"cdpmux/proxy/proxytest"
)

// legacy is a session that is not flat: its messages travel inside those of
// its parent.
type legacy struct {
	c      *proxytest.Client
	parent *legacy // nil: this is the connection itself
	id     string
	lastID int
}

// attach makes a session below this one.
func (l *legacy) attach(t *testing.T, targetID string) *legacy {
	t.Helper()
	var made struct{ SessionID string }
	reply := l.call(t, "Target.attachToTarget", params{"targetId": targetID})
	if reply.Err() != nil {
		t.Fatalf("attach to %s: %s", targetID, reply)
	}
	decode(t, reply.Result, &made)
	return l.child(made.SessionID)
}

func (l *legacy) child(session string) *legacy { return &legacy{c: l.c, parent: l, id: session} }

// send sends a command and returns its id.
func (l *legacy) send(t *testing.T, method string, p params) string {
	t.Helper()
	if l.parent == nil {
		return l.c.Go("", method, p).ID
	}
	l.lastID++
	message, err := json.Marshal(params{"id": l.lastID, "method": method, "params": p})
	if err != nil {
		t.Fatal(err)
	}
	l.parent.send(t, "Target.sendMessageToTarget", params{"sessionId": l.id, "message": string(message)})
	return strconv.Itoa(l.lastID)
}

func (l *legacy) call(t *testing.T, method string, p params) proxytest.Msg {
	t.Helper()
	id := l.send(t, method, p)
	return l.await(t, func(m proxytest.Msg) bool { return m.ID == id })
}

func (l *legacy) eval(t *testing.T, expression string) string {
	t.Helper()
	var reply struct {
		Result struct{ Value json.RawMessage }
	}
	decode(t, l.call(t, "Runtime.evaluate", params{"expression": expression, "returnByValue": true}).Result, &reply)
	return string(reply.Result.Value)
}

func (l *legacy) await(t *testing.T, match func(proxytest.Msg) bool) (found proxytest.Msg) {
	t.Helper()
	l.c.Await(func(outer proxytest.Msg) bool {
		m, ok := l.unwrap(t, outer)
		found = m
		return ok && match(m)
	})
	return found
}

// unwrap takes this session's message out of one of the connection's.
func (l *legacy) unwrap(t *testing.T, m proxytest.Msg) (inner proxytest.Msg, ok bool) {
	t.Helper()
	if l.parent == nil {
		return m, true
	}
	if m, ok = l.parent.unwrap(t, m); !ok || !m.Is("", "Target.receivedMessageFromTarget") || m.Param("sessionId") != l.id {
		return m, false
	}
	inner, err := proxytest.ParseMsg([]byte(m.Param("message")))
	if err != nil {
		t.Fatal(err)
	}
	return inner, true
}

// Sessions that are not flat work as in Chrome, nested twice as well, and what
// is inside them is held to the client's own like anything else.
func TestNestedSessions(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	b := m.dial(t, "b")
	ofB := b.NewPage("about:blank")
	a := m.dial(t, "a")
	for _, each := range []struct {
		name    string
		c       *proxytest.Client
		proxied bool
	}{{"directly", m.dialBrowser(t), false}, {"behind the proxy", a, true}} {
		t.Run(each.name, func(t *testing.T) {
			first, second := each.c.NewPage("about:blank"), each.c.NewPage("about:blank")
			first.Navigate(site.URL + "/title?t=first")
			second.Navigate(site.URL + "/title?t=second")
			connection := &legacy{c: each.c}
			outer := connection.attach(t, first.TargetID)
			inner := outer.attach(t, second.TargetID)
			for session, want := range map[*legacy]string{outer: `"first"`, inner: `"second"`} {
				if got := session.eval(t, "document.title"); got != want {
					t.Errorf("title: want %s, got %s", want, got)
				}
			}

			// Children of a page come inside its session, too.
			outer.call(t, "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": false})
			outer.send(t, "Page.navigate", params{"url": site.URL + "/iframe"})
			event := outer.await(t, func(m proxytest.Msg) bool { return m.Is("", "Target.attachedToTarget") && typeOf(t, m) == "iframe" })
			frame := outer.child(event.Param("sessionId"))
			if got, want := frame.eval(t, "1+1"), "2"; got != want {
				t.Errorf("evaluation in the iframe: want %s, got %s", want, got)
			}

			for session, name := range map[*legacy]string{outer: "page session", inner: "session within it"} {
				unknown := session.call(t, "Target.attachToTarget", params{"targetId": unknownID}).Err()
				if want := "-32602 No target with given id found"; unknown == nil || unknown.Error() != want {
					t.Errorf("attach to an unknown target on the %s: want %s, got %v", name, want, unknown)
				}
				if !each.proxied {
					continue
				}
				var seen struct{ TargetInfos []target }
				decode(t, session.call(t, "Target.getTargets", params{}).Result, &seen)
				for _, info := range seen.TargetInfos {
					if !slices.Contains([]string{first.TargetID, second.TargetID}, info.TargetID) && info.Type == "page" {
						t.Errorf("getTargets on the %s: want the client's own, got %+v", name, info)
					}
				}
				if err := session.call(t, "Target.attachToTarget", params{"targetId": ofB.TargetID}).Err(); err == nil || err.Error() != unknown.Error() {
					t.Errorf("attach to a foreign target on the %s: want %v, got %v", name, unknown, err)
				}
				if err := session.call(t, "Browser.crash", params{}).Err(); err == nil || err.Message != "Not allowed" {
					t.Errorf("Browser.crash on the %s: want it not allowed, got %v", name, err)
				}
			}

			if err := outer.call(t, "Target.detachFromTarget", params{"sessionId": inner.id}).Err(); err != nil {
				t.Errorf("detach of the session within: %v", err)
			}
			outer.await(t, func(m proxytest.Msg) bool {
				return m.Is("", "Target.detachedFromTarget") && m.Param("sessionId") == inner.id
			})
		})
	}
	mustBeAlive(t, "the neighbour", ofB)
	mustBeStrangers(t, a, b)
}
