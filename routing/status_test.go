package routing

import (
	"reflect"
	"testing"
	"time"
)

// TestStatus takes a tab through what a navigation can come to.
func TestStatus(t *testing.T) {
	p := playerWithPage(t)
	p.grace = time.Minute
	p.step(`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"TAB2","type":"tab","url":"","attached":false,"embedderData":{}}}}`)
	p.step(`c1> {"id":50,"method":"Target.createTarget","params":{"url":"u2"}}`)
	p.step(`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"PAGE2","type":"page","title":"Two","url":"u2","attached":false}}}`)
	p.step(`b< Target.createTarget "result":{"targetId":"PAGE2"}`)
	p.step(`b> {"method":"Target.attachedToTarget","params":{"sessionId":"EYE-TAB","targetInfo":{"targetId":"TAB2","type":"tab","url":"","attached":true},"waitingForDebugger":false}}`)
	p.step(`b> {"method":"Target.attachedToTarget","params":{"sessionId":"EYE","targetInfo":{"targetId":"PAGE2","type":"page","url":"u2","attached":true},"waitingForDebugger":false},"sessionId":"EYE-TAB"}`)
	p.step(`b< Page.enable "result":{}`)
	p.step(`c1> {"id":51,"method":"Target.attachToTarget","params":{"targetId":"PAGE2","flatten":true}}`)
	p.step(`b> {"method":"Target.attachedToTarget","params":{"sessionId":"S2","targetInfo":{"targetId":"PAGE2","type":"page","url":"u2","attached":true},"waitingForDebugger":false},"sessionId":"ROOT-c1"}`)
	eye := func(event, params string) {
		p.step(`b> {"method":"Page.` + event + `","params":{` + params + `},"sessionId":"EYE"}`)
	}
	navigate := func() {
		p.step(`c1> {"id":60,"method":"Page.navigate","params":{"url":"u3"},"sessionId":"S2"}`)
		eye("frameStartedNavigating", `"frameId":"PAGE2","url":"u3","navigationType":"differentDocument"`)
	}
	want := TabStatus{ID: "PAGE2", Title: "Two", URL: "u2", Order: 1, State: "ready"}
	check := func(when, state, text string) {
		t.Helper()
		want.State, want.Error = state, text
		for _, cl := range p.r.Status().Clients {
			for _, tab := range cl.Tabs {
				if tab.ID == "PAGE2" && tab != want {
					t.Errorf("%s: got %+v, want %+v", when, tab, want)
				}
			}
		}
	}
	check("at first", "ready", "")
	navigate()
	want.Last = "Page.navigate"
	check("under way", "navigating", "")
	eye("frameNavigated", `"frame":{"id":"PAGE2","url":"u3"},"type":"Navigation"`)
	eye("frameNavigated", `"frame":{"id":"F","parentId":"PAGE2","url":"u4","unreachableUrl":"u4"}`)
	p.step(`b< Page.navigate "result":{"frameId":"PAGE2","loaderId":"L1"}`)
	check("committed", "navigating", "")
	eye("frameStoppedLoading", `"frameId":"PAGE2"`)
	check("loaded", "ready", "")
	navigate()
	p.step(`b< Page.navigate "result":{"frameId":"PAGE2","errorText":"net::ERR_ABORTED"}`)
	check("a download", "ready", "")
	navigate()
	p.step(`b< Page.navigate "result":{"frameId":"PAGE2","errorText":"net::ERR_CONNECTION_REFUSED"}`)
	eye("frameNavigated", `"frame":{"id":"PAGE2","url":"chrome-error://chromewebdata/","unreachableUrl":"u3"}`)
	eye("frameStoppedLoading", `"frameId":"PAGE2"`)
	check("failed", "failed", "net::ERR_CONNECTION_REFUSED")
	eye("frameStartedNavigating", `"frameId":"PAGE2","url":"u3#x","navigationType":"sameDocument"`)
	check("a step within the error page", "failed", "net::ERR_CONNECTION_REFUSED")
	p.step(`b> {"method":"Target.targetCrashed","params":{"targetId":"PAGE2","status":"crashed","errorCode":5}}`)
	check("crashed", "crashed", "")

	st := p.r.Status()
	if len(st.Clients) != 1 {
		t.Fatalf("clients: %+v", st.Clients)
	}
	cl := st.Clients[0]
	if cl.ID != "alice" || cl.Last != "Page.navigate" || len(cl.Conns) != 1 || cl.Sessions != 2 || len(cl.Tabs) != 2 || cl.Tabs[1].Order != 2 || !cl.Until.IsZero() {
		t.Errorf("connected: %+v", cl)
	}
	p.r.clients["alice"].grace = time.Minute
	p.step("gone c1")
	cl = p.r.Status().Clients[0]
	if cl.Until != p.now.Add(time.Minute) || len(cl.Conns) != 0 || cl.Pending != 0 || len(cl.Tabs) != 2 {
		t.Errorf("in grace: %+v", cl)
	}
	p.step("tick 60s")
	if st := p.r.Status(); len(st.Clients) != 0 || st.Strays != 2 {
		t.Errorf("after it: %+v, want two strays", st)
	}
	p.step("open c2 bob")
	if got := p.r.Status().Clients; !reflect.DeepEqual(got, []ClientStatus{{ID: "bob", Conns: []ConnID{p.conns["c2"]}, Tabs: []TabStatus{}}}) {
		t.Errorf("a client without anything: %+v", got)
	}
}
