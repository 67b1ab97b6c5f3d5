package routing

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

var seed = flag.Uint64("history", 0, "play the history of this seed alone, and print it")

// TestHistories plays random histories of three clients and a human on a model
// of Chrome, and checks the Router against a naive twin: who made a tab is
// written in its url, so the twin knows whose each id is without any table.
func TestHistories(t *testing.T) {
	if *seed != 0 {
		play(t, *seed)
		return
	}
	for s := range uint64(max(2, int(20_000*testScale(t)))) {
		if play(t, s+1); t.Failed() {
			return
		}
	}
}

func play(t *testing.T, seed uint64) {
	h := &history{t: t, r: New(Config{}), rand: rand.New(rand.NewPCG(seed, 0)), chrome: newModel(), conns: map[ConnID]*twin{}}
	defer func() {
		if t.Failed() {
			t.Logf("history %d (play it alone: -history %d)", seed, seed)
		}
	}()
	if h.coin() {
		h.grace = time.Duration(h.rand.IntN(10)) * time.Second
	}
	if h.coin() {
		h.ready()
	}
	for range 20 + h.rand.IntN(200) {
		h.step()
		if err := h.r.Check(); err != nil {
			t.Fatal(err)
		}
	}
	h.finish()
}

type history struct {
	t      *testing.T
	r      *Router
	rand   *rand.Rand
	now    time.Time
	grace  time.Duration
	chrome *model
	up     bool
	conns  map[ConnID]*twin
	order  []ConnID
	n      int // numbers commands: each has a value of its own
}

// twin is what is expected of one connection.
type twin struct {
	client string
	open   map[int]string  // id → what the reply must hold; "" anything, never: an error at the end of its session
	got    map[string]bool // session ids announced to it
	ended  bool
	nextID int
}

const never = "(never)"

const textGap = "browser connection lost"

var clientIDs = []string{"alice", "bob", "carol"}

func (h *history) ready() { h.up = true; h.act(h.r.BrowserReady(h.now, false, nil)) }

func (h *history) coin() bool { return h.rand.IntN(2) == 0 }

// log prints the history when it is played alone.
func (h *history) log(format string, args ...any) {
	if *seed != 0 {
		h.t.Logf(format, args...)
	}
}

func (h *history) step() {
	live := h.live()
	switch k := h.rand.IntN(20); {
	case k == 0 || len(live) == 0:
		cl := clientIDs[h.rand.IntN(len(clientIDs))]
		id, out := h.r.Connect(h.now, cl, h.grace, nil)
		h.conns[id] = &twin{client: cl, open: map[int]string{}, got: map[string]bool{}, nextID: 1}
		h.order = append(h.order, id)
		h.act(out)
	case k == 1:
		id := live[h.rand.IntN(len(live))]
		h.conns[id].ended = true
		h.act(h.r.Disconnect(h.now, id, nil))
	case k == 2 && !h.up:
		h.ready()
	case k == 3:
		h.chrome.human()
	case k == 4:
		h.chrome.popup(h.rand.IntN(100))
	case k == 5:
		h.chrome.closesItself(h.rand.IntN(100))
	case k == 6:
		h.chrome.crash(h.rand.IntN(100))
	case k == 9 && h.up && h.rand.IntN(4) == 0: // the upstream connection ends
		h.chrome.cut(h.coin())
		h.up = false
		h.act(h.r.BrowserGone(h.now, textGap, nil))
	case k == 7:
		h.chrome.forgetful = h.coin()
	case k == 8 && h.rand.IntN(4) == 0: // it says nothing, for a while
		h.act(h.r.Silent(h.now, textGap, nil))
	case k == 8:
		h.tick(time.Duration(h.rand.IntN(6000)) * time.Millisecond)
	case k < 14:
		h.deliver(1 + h.rand.IntN(8))
	default:
		h.command(live[h.rand.IntN(len(live))])
	}
}

// tick lets time pass.
func (h *history) tick(d time.Duration) {
	h.now = h.now.Add(d)
	if next := h.r.Next(); !next.IsZero() && !next.After(h.now) {
		h.act(h.r.Tick(h.now, nil))
	}
}

func (h *history) live() (ids []ConnID) {
	for _, id := range h.order {
		if !h.conns[id].ended {
			ids = append(ids, id)
		}
	}
	return ids
}

// command sends one command, often about something of somebody else's.
func (h *history) command(id ConnID) {
	c := h.conns[id]
	h.n++
	target := h.chrome.anyTarget(h.rand.IntN(100))
	session := h.chrome.anySession(h.rand.IntN(100))
	method, params, want, on := "", "", "", ""
	switch h.rand.IntN(14) {
	case 0, 1:
		method, params = "Target.createTarget", fmt.Sprintf(`{"url":"by:%s"}`, c.client)
	case 2, 3:
		method, params = "Target.attachToTarget", fmt.Sprintf(`{"targetId":"%s","flatten":true}`, target)
	case 4, 5:
		want = fmt.Sprintf("value-%s-%d", c.client, h.n)
		method, params, on = "Runtime.evaluate", `{"expression":"`+want+`"}`, session
		if !c.got[session] {
			want = textNoSession
		}
	case 6:
		method, params, on, want = "Runtime.evaluate", `{"expression":"never"}`, session, never
	case 7:
		method, params = "Target.closeTarget", fmt.Sprintf(`{"targetId":"%s"}`, target)
	case 8:
		method, params = "Target.detachFromTarget", fmt.Sprintf(`{"sessionId":"%s"}`, session)
	case 9:
		method, params = "Target.getTargets", `{}`
	case 10:
		method, params = "Target.setDiscoverTargets", fmt.Sprintf(`{"discover":%t}`, h.coin())
	case 11:
		filter := ""
		if h.coin() { // tab mode
			filter = `,"filter":[{"type":"page","exclude":true},{}]`
		}
		method, params = "Target.setAutoAttach", fmt.Sprintf(`{"autoAttach":%t,"waitForDebuggerOnStart":%t,"flatten":true%s}`, h.coin(), h.coin(), filter)
	case 12:
		method, params, on = "Runtime.runIfWaitingForDebugger", `{}`, session
	case 13:
		method, params, on = "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true,"filter":[{}]}`, session
	}
	if foreign := h.chrome.owner(target); strings.Contains(params, `"targetId"`) && foreign != c.client {
		want = "No target with given id found"
	}
	text := fmt.Sprintf(`{"id":%d,"method":"%s","params":%s`, c.nextID, method, params)
	if on != "" {
		text += `,"sessionId":"` + on + `"`
	}
	c.open[c.nextID] = want
	c.nextID++
	h.log("%s %d> %s}", c.client, id, text)
	m := NewMessage(text + "}")
	var env Envelope
	if ref := ScanCommand(m.Text(), &env); ref != nil {
		h.t.Fatalf("refused %s: %+v", text, ref)
	}
	h.act(h.r.FromClient(h.now, id, m, &env, nil))
}

// deliver lets the Router hear what Chrome said.
func (h *history) deliver(n int) {
	for ; n > 0 && len(h.chrome.said) > 0; n-- {
		m := NewMessage(h.chrome.said[0])
		h.log("b> %s", m.Text())
		h.chrome.said = h.chrome.said[1:]
		var env Envelope
		if !Scan(m.Text(), &env) {
			h.t.Fatalf("the model says %s", m.Text())
		}
		h.act(h.r.FromBrowser(h.now, m, &env, nil))
	}
}

func (h *history) act(as []Action) {
	for _, a := range as {
		switch a.Kind {
		case ToBrowser:
			h.log("    >b %s", a.Msg.Text())
			h.chrome.hear(h.t, a.Msg.Text())
		case ToClient:
			h.log("    >%d %s", a.Conn, a.Msg.Text())
			h.toClient(a.Conn, string(a.Msg.Text()))
		case Close:
			h.conns[a.Conn].ended = true
		}
	}
}

var anyID = regexp.MustCompile(`[TS][0-9]+-`)

// toClient is the oracle: exactly one reply to each id, with its own value,
// and no id of anybody else's in any byte.
func (h *history) toClient(id ConnID, text string) {
	c := h.conns[id]
	if c.ended {
		h.t.Fatalf("%s ended and gets %s", c.client, text)
	}
	var m struct {
		ID     *int
		Method string
		Params struct{ SessionID string }
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		h.t.Fatalf("%s gets %s: %v", c.client, text, err)
	}
	if m.Method == eventAttachedToTarget {
		c.got[m.Params.SessionID] = true
	}
	if m.ID != nil {
		want, ok := c.open[*m.ID]
		if !ok {
			h.t.Fatalf("%s gets a reply that it does not wait for: %s", c.client, text)
		}
		delete(c.open, *m.ID)
		lost := m.Error != nil && (m.Error.Message == textClosed || m.Error.Message == textCrashed || m.Error.Message == textNoSession || m.Error.Message == textGap || strings.HasPrefix(m.Error.Message, "No answer from the browser"))
		if !strings.Contains(text, want) && !lost {
			h.t.Fatalf("%s waits for %q and gets %s", c.client, want, text)
		}
	}
	for _, found := range anyID.FindAllString(text, -1) {
		if strings.HasPrefix(found, "S") {
			if s := h.chrome.made[found]; s != nil && !c.got[found] {
				h.t.Fatalf("%s sees session %s that it never got: %s", c.client, found, text)
			}
		} else if o := h.chrome.owner(found); o != c.client {
			h.t.Fatalf("%s sees target %s of %q: %s", c.client, found, o, text)
		}
	}
}

// finish closes every tab, by which each request must be answered, lets
// everybody leave, and finds the tables empty.
func (h *history) finish() {
	h.chrome.forgetful = false
	if !h.up {
		h.ready()
	}
	h.deliver(1 << 20)
	for id, t := range h.chrome.targets {
		if t.owner == "" && t.paused {
			h.t.Fatalf("a human's tab %s is held paused", id)
		}
	}
	for t := h.chrome.page(0); t != nil; t = h.chrome.page(0) {
		h.chrome.close(t)
	}
	h.deliver(1 << 20)
	for _, id := range h.live() {
		for rid := range h.conns[id].open {
			h.t.Fatalf("%s %d: request %d was never answered", h.conns[id].client, id, rid)
		}
	}
	h.chrome.human()
	for _, id := range h.live() {
		h.conns[id].ended = true
		h.act(h.r.Disconnect(h.now, id, nil))
	}
	h.deliver(1 << 20)
	for range 20 { // a close that Chrome forgot is sent again
		h.tick(10 * time.Second)
		h.deliver(1 << 20)
	}
	if err := h.r.Check(); err != nil {
		h.t.Fatal(err)
	}
	if s := h.r.Stats(); s.Conns+s.Clients+s.Requests+s.Held != 0 || s.Sessions != 1 {
		h.t.Fatalf("left over: %+v, want the hub's session alone", s)
	}
	for id, t := range h.chrome.targets {
		if t.owner != "" {
			h.t.Fatalf("tab %s of %s is still open", id, t.owner)
		}
		if t.paused {
			h.t.Fatalf("tab %s is left paused", id)
		}
	}
	if len(h.chrome.sessions) != 1 {
		h.t.Fatalf("sessions left in Chrome: %d, want the hub's alone", len(h.chrome.sessions))
	}
}
