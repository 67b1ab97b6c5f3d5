package routing

import (
	"strings"
	"testing"
	"time"
)

// TestLatency counts the wait of a command that was held, of one that Chrome
// answered late, and of none that the proxy answered by itself.
func TestLatency(t *testing.T) {
	p := newPlayer(t)
	p.step("connect c1 alice")
	p.step(`c1> {"id":1,"method":"Browser.getVersion"}`)
	p.step("tick 20ms")
	p.step("start")
	p.root("c1", "ROOT-c1")
	if got := p.r.Totals().Latency; got != (Latency{}) {
		t.Errorf("before any reply: %+v", got)
	}
	p.now = p.now.Add(20 * time.Millisecond)
	p.step(`b< Browser.getVersion "result":{"product":"Chrome/1"}`)
	p.step(`c1> {"id":2,"method":"Browser.crash"}`) // ours to refuse
	p.step(`c1> {"id":3,"method":"Browser.getVersion"}`)
	p.now = p.now.Add(31 * time.Minute)
	p.step(`b< Browser.getVersion "result":{"product":"Chrome/1"}`)
	want := Latency{Sum: 40*time.Millisecond + 31*time.Minute}
	for i, bound := range LatencyBounds {
		if bound == 50*time.Millisecond {
			want.Buckets[i] = 1
		}
	}
	want.Buckets[len(LatencyBounds)] = 1
	if got := p.r.Totals().Latency; got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestLastMethod(t *testing.T) {
	var l lastMethod
	for method, want := range map[string]string{
		"":                                   "",
		"Page.navigate":                      "Page.navigate",
		strings.Repeat("x", 60):              strings.Repeat("x", 47),
		strings.Repeat("x", 46) + "é":        strings.Repeat("x", 46), // no half a letter
		"DOM.getDocument\u0000<script>alert": "DOM.getDocument\u0000<script>alert",
	} {
		if l.set([]byte(method)); l.String() != want {
			t.Errorf("%q: got %q, want %q", method, l.String(), want)
		}
	}
}

// TestPicture takes a picture through the eye, of an owned tab alone.
func TestPicture(t *testing.T) {
	p := playerWithPage(t)
	p.step(`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"HUMAN","type":"page","url":"u","attached":false}}}`)
	picture := func(id string) []Action { return p.note(p.r.Picture(p.now, id, 7, nil)) }
	answer := func(when string, as []Action, picture, text string) {
		t.Helper()
		if len(as) != 1 || as[0].Kind != Answer || as[0].Token != 7 || as[0].Result != (Result{Picture: picture, Err: text}) {
			t.Errorf("%s: got %+v, want picture %q, error %q", when, as, picture, text)
		}
	}
	for _, id := range []string{"NONE", "HUMAN"} {
		answer(id, picture(id), "", "No such target id: "+id)
	}
	answer("no eye", picture("PAGE1"), "", textNoEye)
	const page = "PAGE2"
	for _, line := range []string{
		`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"TAB2","type":"tab","url":"","attached":false,"embedderData":{}}}}`,
		`c1> {"id":50,"method":"Target.createTarget","params":{"url":"u2"}}`,
		`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"PAGE2","type":"page","url":"u2","attached":false}}}`,
		`b< Target.createTarget "result":{"targetId":"PAGE2"}`,
		`b> {"method":"Target.attachedToTarget","params":{"sessionId":"EYE-TAB","targetInfo":{"targetId":"TAB2","type":"tab","url":"","attached":true},"waitingForDebugger":false}}`,
		`b> {"method":"Target.attachedToTarget","params":{"sessionId":"EYE","targetInfo":{"targetId":"PAGE2","type":"page","url":"u2","attached":true},"waitingForDebugger":false},"sessionId":"EYE-TAB"}`,
	} {
		p.step(line)
	}
	ask := p.render(picture(page))
	if len(ask) != 1 || !strings.Contains(ask[0], `"method":"Page.captureScreenshot"`) || !strings.Contains(ask[0], `"sessionId":"EYE"`) {
		t.Fatalf("asks %q", ask)
	}
	answer("taken", p.answer("Page.captureScreenshot", `"result":{"data":"QUJD"}`), "QUJD", "")
	picture(page)
	answer("refused", p.answer("Page.captureScreenshot", `"error":{"code":-32000,"message":"Unable to capture screenshot"}`), "", "Unable to capture screenshot")
	picture(page)
	p.now = p.now.Add(5 * time.Second)
	answer("hidden", p.r.Tick(p.now, nil), "", textNoPicture)
	picture(page)
	as := p.r.BrowserLost(p.now, ReasonBrowserLost, "it went", nil)
	answer("lost", as[:1], "", "it went")
	answer("no browser", p.r.Picture(p.now, page, 7, nil), "", "browser connection lost")
}
