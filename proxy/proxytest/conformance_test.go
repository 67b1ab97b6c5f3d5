package proxytest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFakeIsLikeChromium plays the same scenarios on the fake and on the real
// browser and compares what came, message by message, with the ids replaced by
// names and without what is a matter of time: titles, and URLs that come late.
func TestFakeIsLikeChromium(t *testing.T) {
	site := StartSite(t)
	fake := Start(t)
	chromium := StartChromium(t)
	stages := []*stage{
		{url: fake.URL(), site: site, fake: fake},
		{url: chromium.WS, site: site},
	}
	for _, s := range stages {
		s.clear(t)
	}
	for _, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			var heard [2][]string
			for i, s := range stages {
				s.t, s.c = t, Dial(t, s.url)
				scenario.play(s)
				s.do("", "Browser.getVersion", "")
				heard[i] = normalise(s.c.Transcript(), scenario.name == forPageEvents)
				s.c.Close()
			}
			if !slices.Equal(heard[0], heard[1]) {
				t.Errorf("fake and Chromium differ\n%s", compare(heard[0], heard[1]))
			}
		})
	}
}

// stage is one of the two browsers with a connection to it.
type stage struct {
	t    *testing.T
	url  string
	site *Site
	fake *Browser // nil for the real one
	c    *Client
}

// clear leaves the browser with one page, about:blank.
func (s *stage) clear(t *testing.T) {
	s.t, s.c = t, Dial(t, s.url)
	var before struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	if err := json.Unmarshal(s.c.Call("", "Target.getTargets", nil), &before); err != nil {
		t.Fatal(err)
	}
	s.do("", "Target.setDiscoverTargets", `{"discover":true}`)
	s.do("", "Target.createTarget", `{"url":"about:blank"}`)
	for _, info := range before.TargetInfos {
		if info.Type == "page" {
			s.do("", "Target.closeTarget", `{"targetId":"`+info.TargetID+`"}`)
			s.c.AwaitEvent("", "Target.targetDestroyed")
		}
	}
	s.c.Close()
}

// do sends a command and waits for the reply; session is "" or an id. It
// returns the id in the result, whatever it is of.
func (s *stage) do(session, method, params string) (id string) {
	s.t.Helper()
	reply := s.send(session, method, params).Reply()
	for _, name := range []string{"sessionId", "targetId", "browserContextId"} {
		if id == "" {
			id = member(reply.Result, name)
		}
	}
	return id
}

func (s *stage) send(session, method, params string) *Pending {
	if params == "" {
		return s.c.Go(session, method, nil)
	}
	return s.c.Go(session, method, json.RawMessage(params))
}

// await waits for an event and returns the session or target it speaks of.
func (s *stage) await(session, method string) string {
	s.t.Helper()
	m := s.c.AwaitEvent(session, method)
	if id := m.Param("sessionId"); id != "" {
		return id
	}
	return m.Param("targetId")
}

// load navigates to a page of the site and waits for its load event.
func (s *stage) load(session, path string) {
	s.t.Helper()
	Page{Session: session, c: s.c}.Navigate(s.site.URL + path)
}

// closed closes a page and waits until it and its tab are gone.
func (s *stage) closed(root, page string) {
	s.t.Helper()
	s.do(root, "Target.closeTarget", `{"targetId":"`+page+`"}`)
	s.await("", "Target.targetDestroyed")
	s.await("", "Target.targetDestroyed")
}

const (
	discoverAll   = `{"discover":true,"filter":[{"type":"browser_ui","exclude":true},{}]}`
	discoverPages = `{"discover":true,"filter":[{"type":"browser_ui","exclude":true},{"type":"browser","exclude":true},{}]}`
)

// forPageEvents is the one scenario in which the Page events count: when they
// come depends on the documents elsewhere.
const forPageEvents = "a page session"

var scenarios = []struct {
	name string
	play func(*stage)
}{
	{"discover", func(s *stage) {
		s.do("", "Target.getTargetInfo", "")
		s.do("", "Target.getBrowserContexts", "")
		s.do("", "Target.setDiscoverTargets", discoverAll)
		s.do("", "Target.setDiscoverTargets", `{"discover":true}`)
		s.do("", "Target.setDiscoverTargets", `{"discover":false,"filter":[{}]}`)
		s.do("", "Target.setDiscoverTargets", `{"discover":false}`)
		s.do("", "Target.setDiscoverTargets", `{"discover":true,"filter":[{"type":"page"}]}`)
		s.do("", "Target.setDiscoverTargets", ``)
	}},
	{"create, attach, close", func(s *stage) {
		s.do("", "Target.setDiscoverTargets", discoverPages)
		page := s.do("", "Target.createTarget", `{"url":"about:blank"}`)
		a := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do("", "Target.getTargetInfo", `{"targetId":"`+page+`"}`)
		s.do("", "Target.detachFromTarget", `{"sessionId":"`+a+`"}`)
		s.do("", "Target.detachFromTarget", `{"sessionId":"`+a+`"}`)
		s.do(a, "Page.enable", "")
		s.closed("", page)
		s.do("", "Target.closeTarget", `{"targetId":"`+page+`"}`)
		tab := s.do("", "Target.createTarget", `{"url":"about:blank","forTab":true}`)
		s.closed("", tab)
	}},
	{"two sessions when the page closes", func(s *stage) {
		s.do("", "Target.setDiscoverTargets", discoverPages)
		page := s.do("", "Target.createTarget", `{"url":"about:blank"}`)
		s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		b := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do(b, "Runtime.evaluate", `{"expression":"1"}`)
		s.closed("", page)
	}},
	{"sub-roots", func(s *stage) {
		s.do("", "Target.setDiscoverTargets", discoverAll)
		root := s.do("", "Target.attachToBrowserTarget", "")
		inner := s.do(root, "Target.attachToBrowserTarget", "")
		s.do(root, "Target.getTargetInfo", "")
		s.do(root, "Target.setDiscoverTargets", `{"discover":true,"filter":[{"type":"page"}]}`)
		page := s.do(root, "Target.createTarget", `{"url":"about:blank"}`)
		session := s.do(inner, "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do("", "Target.detachFromTarget", `{"sessionId":"`+session+`"}`)
		s.do(root, "Target.detachFromTarget", `{"sessionId":"`+root+`"}`)
		s.do(session, "Target.attachToBrowserTarget", "")
		s.do(session, "Target.getBrowserContexts", "")
		s.do("", "Target.detachFromTarget", `{"sessionId":"`+root+`"}`)
		s.await("", "Target.targetDestroyed")
		s.await("", "Target.targetDestroyed")
		s.do(session, "Runtime.evaluate", `{"expression":"1"}`)
		s.do(inner, "Target.getTargetInfo", "")
		s.closed("", page)
	}},
	{forPageEvents, func(s *stage) {
		page := s.do("", "Target.createTarget", `{"url":"about:blank"}`)
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do(session, "Page.enable", "")
		s.do(session, "Runtime.enable", "")
		s.load(session, "/plain")
		for _, expression := range []string{`1`, `-2.5`, `'abc'`, `\"a\\u00e9\\n\"`, `true`, `null`, `undefined`, `nope`} {
			s.do(session, "Runtime.evaluate", `{"expression":"`+expression+`"}`)
		}
		s.do(session, "Runtime.evaluate", `{}`)
		s.do(session, "Nope.nope", "")
		s.do("", "Nope.nope", "")
		s.do("", "Page.enable", "")
		s.do("NOPE", "Page.enable", "")
		s.do(session, "Target.getTargetInfo", "")
		s.do(session, "Page.close", "")
		s.await("", "Target.detachedFromTarget")
	}},
	{"unknown things", func(s *stage) {
		s.do("", "Target.attachToTarget", `{"targetId":"X","flatten":true}`)
		s.do("", "Target.attachToTarget", `{}`)
		s.do("", "Target.attachToTarget", ``)
		s.do("", "Target.closeTarget", `{"targetId":"X"}`)
		s.do("", "Target.closeTarget", ``)
		s.do("", "Target.activateTarget", `{"targetId":"X"}`)
		s.do("", "Target.getTargetInfo", `{"targetId":"X"}`)
		s.do("", "Target.createTarget", `{}`)
		s.do("", "Target.createTarget", `{"url":"about:blank","browserContextId":"X"}`)
		s.do("", "Target.disposeBrowserContext", `{"browserContextId":"X"}`)
		s.do("", "Target.detachFromTarget", `{"sessionId":"X"}`)
		s.do("", "Target.detachFromTarget", `{"targetId":"X"}`)
		s.do("", "Target.detachFromTarget", `{}`)
		s.do("", "Target.sendMessageToTarget", `{"sessionId":"X","message":"{}"}`)
		s.do("", "Target.setAutoAttach", `{"autoAttach":true}`)
		s.do("", "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false}`)
		s.do("", "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true,"filter":[{}]}`)
		s.do("", "Browser.getWindowForTarget", `{"targetId":"X"}`)
		s.do("", "Browser.getWindowForTarget", ``)
	}},
	{"a session that is not flat", func(s *stage) {
		page := s.do("", "Target.createTarget", `{"url":"about:blank"}`)
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`"}`)
		s.do("", "Target.sendMessageToTarget", `{"sessionId":"`+session+`","message":"{\"id\":1,\"method\":\"Runtime.evaluate\",\"params\":{\"expression\":\"1\"}}"}`)
		s.await("", "Target.receivedMessageFromTarget")
		s.do(session, "Page.enable", "")
		s.do("", "Target.closeTarget", `{"targetId":"`+page+`"}`)
		s.await("", "Target.detachedFromTarget")
	}},
	{"auto-attach to pages", func(s *stage) {
		root := s.do("", "Target.attachToBrowserTarget", "")
		s.do("", "Target.setDiscoverTargets", discoverPages)
		filter := `,"filter":[{"type":"browser_ui","exclude":true},{"type":"tab","exclude":true},{}]}`
		s.do(root, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true`+filter)
		existing := s.await(root, "Target.attachedToTarget")
		page := s.do(root, "Target.createTarget", `{"url":"about:blank"}`)
		session := s.await(root, "Target.attachedToTarget")
		s.do(session, "Runtime.runIfWaitingForDebugger", "")
		s.do(root, "Target.detachFromTarget", `{"sessionId":"`+existing+`"}`)
		s.do(root, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true`+filter)
		s.do(root, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true`+filter)
		s.closed(root, page)
		s.do(root, "Target.setAutoAttach", `{"autoAttach":false,"waitForDebuggerOnStart":false,"flatten":true}`)
	}},
	{"auto-attach to tabs", func(s *stage) {
		root := s.do("", "Target.attachToBrowserTarget", "")
		s.do("", "Target.setDiscoverTargets", discoverPages)
		s.do(root, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true,"filter":[{"type":"page","exclude":true},{"type":"browser_ui","exclude":true},{}]}`)
		s.await(root, "Target.attachedToTarget")
		page := s.do(root, "Target.createTarget", `{"url":"about:blank"}`)
		tab := s.await(root, "Target.attachedToTarget")
		s.do(tab, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true,"filter":[{}]}`)
		s.do(tab, "Runtime.runIfWaitingForDebugger", "")
		s.do(tab, "Runtime.evaluate", `{"expression":"1"}`)
		session := s.await(tab, "Target.attachedToTarget")
		s.do(session, "Runtime.runIfWaitingForDebugger", "")
		s.closed(root, page)
		s.do("", "Target.detachFromTarget", `{"sessionId":"`+root+`"}`)
	}},
	{"a paused navigation", func(s *stage) {
		root := s.do("", "Target.attachToBrowserTarget", "")
		s.do(root, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true,"filter":[{"type":"page"}]}`)
		s.await(root, "Target.attachedToTarget")
		page := s.do("", "Target.createTarget", `{"url":"about:blank"}`)
		held := s.await(root, "Target.attachedToTarget")
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do(session, "Runtime.evaluate", `{"expression":"1"}`)
		navigation := s.send(session, "Page.navigate", `{"url":"`+s.site.URL+`/plain"}`)
		s.do(held, "Runtime.runIfWaitingForDebugger", "")
		navigation.Reply()
		s.load(session, "/plain")
		s.do("", "Target.closeTarget", `{"targetId":"`+page+`"}`)
		s.await("", "Target.detachedFromTarget")
	}},
	{"contexts", func(s *stage) {
		s.do("", "Target.setDiscoverTargets", discoverPages)
		root := s.do("", "Target.attachToBrowserTarget", "")
		kept := s.do(root, "Target.createBrowserContext", "")
		page := s.do(root, "Target.createTarget", `{"url":"about:blank","browserContextId":"`+kept+`"}`)
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do(session, "Runtime.evaluate", `{"expression":"1"}`)
		s.do("", "Target.getBrowserContexts", "")
		s.do(root, "Target.createBrowserContext", `{"disposeOnDetach":true}`)
		s.do("", "Target.detachFromTarget", `{"sessionId":"`+root+`"}`)
		s.do("", "Target.getBrowserContexts", "")
		s.do("", "Target.disposeBrowserContext", `{"browserContextId":"`+kept+`"}`)
		s.do("", "Target.getBrowserContexts", "")
	}},
	{"popups", func(s *stage) {
		s.do("", "Target.setDiscoverTargets", discoverPages)
		page := s.do("", "Target.createTarget", `{"url":"`+s.site.URL+`/plain"}`)
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.load(session, "/plain")
		var popups []string
		for _, features := range []string{``, `, "", "noopener"`} {
			code, _ := json.Marshal(`window.open("` + s.site.URL + `/plain"` + features + `)`)
			s.do(session, "Runtime.evaluate", `{"userGesture":true,"expression":`+string(code)+`}`)
			m := s.c.Await(func(m Msg) bool {
				return m.Is("", "Target.targetCreated") && strings.Contains(string(m.Raw), `"openerId":"`+page)
			})
			var event struct{ TargetInfo struct{ TargetID string } }
			if err := m.Into(&event); err != nil {
				s.t.Fatal(err)
			}
			popups = append(popups, event.TargetInfo.TargetID)
			s.c.Await(func(m Msg) bool {
				info := string(m.Raw)
				return m.Is("", "Target.targetInfoChanged") && strings.Contains(info, event.TargetInfo.TargetID) && strings.Contains(info, s.site.URL)
			})
		}
		s.closed("", page)
		for _, popup := range popups {
			s.do("", "Target.getTargetInfo", `{"targetId":"`+popup+`"}`)
			s.closed("", popup)
		}
	}},
	{"a frame and a worker", func(s *stage) {
		s.do("", "Target.setDiscoverTargets", discoverPages)
		page := s.do("", "Target.createTarget", `{"url":"about:blank"}`)
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.do(session, "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false,"flatten":true}`)
		s.load(session, "/iframe")
		if s.fake != nil {
			s.fake.AddFrame(page, s.site.Other+"/plain")
		}
		s.await(session, "Target.attachedToTarget")
		if s.fake != nil {
			s.do(session, "Runtime.evaluate", `{"expression":"undefined"}`)
			s.fake.AddWorker(page, s.site.URL+"/worker.js")
		} else {
			s.do(session, "Runtime.evaluate", `{"expression":"void setTimeout(() => { window.w = new Worker('/worker.js') }, 50)"}`)
		}
		s.await(session, "Target.attachedToTarget")
		s.closed("", page)
		s.await("", "Target.targetDestroyed")
		s.await("", "Target.targetDestroyed")
	}},
	{"an evaluate that the navigation ends", func(s *stage) {
		page := s.do("", "Target.createTarget", `{"url":"about:blank"}`)
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		never := `never()`
		if s.fake == nil {
			never = `new Promise(() => 0)`
		}
		pending := s.send(session, "Runtime.evaluate", `{"awaitPromise":true,"expression":"`+never+`"}`)
		s.load(session, "/plain")
		pending.Reply()
		s.do("", "Target.closeTarget", `{"targetId":"`+page+`"}`)
		s.await("", "Target.detachedFromTarget")
	}},
	{"a crash", func(s *stage) {
		s.do("", "Target.setDiscoverTargets", discoverPages)
		page := s.do("", "Target.createTarget", `{"url":"`+s.site.URL+`/plain"}`)
		session := s.do("", "Target.attachToTarget", `{"targetId":"`+page+`","flatten":true}`)
		s.load(session, "/plain")
		s.send(session, "Page.crash", "")
		s.await("", "Target.targetCrashed")
		s.send(session, "Runtime.evaluate", `{"expression":"1"}`)
		s.closed("", page)
	}},
}

var unusable = []string{
	"", " ", "x", "[]", "5", "null", `"a"`, "{}", "\ufeff{}", `{"id":1,"method":"X"}x`, `{"id":1,"method":"X"} {}`,
	"{\"id\":1,\"method\":\"a\xff\"}", `{"id":1,"method":"X","params":{"a":01}}`,
	`{"id":1,"method":"X","params":{"a":` + strings.Repeat("[", 299) + strings.Repeat("]", 299) + `}}`,
	`{"id":1,"method":"X","params":{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}}`,
	`{"method":"X"}`, `{"id":"1","method":"X"}`, `{"id":1.5,"method":"X"}`, `{"id":2147483648,"method":"X"}`,
	`{"id":1e3,"method":"X"}`, `{"id":2.0,"method":"X"}`, `{"id":-0,"method":"X"}`, `{"id":-2147483648,"method":"X"}`,
	`{"id":1}`, `{"id":1,"method":""}`, `{"id":1,"method":5}`, `{"id":1,"method":"é"}`, `{"id":1,"method":"a'b"}`,
	`{"id":1,"method":"X","params":5}`, `{"id":1,"method":"X","params":"a"}`, `{"id":1,"method":"X","params":true}`,
	`{"id":1,"method":"X","params":[1]}`, `{"id":1,"method":"X","params":null}`,
	`{"id":1,"method":"X","sessionId":5}`, `{"id":1,"method":"X","sessionId":null}`, `{"id":1,"method":"X","sessionId":""}`,
	`{"id":1,"method":"X","foo":1}`, `{"foo":1,"id":1,"method":"X"}`, `{"id":1,"foo":2}`, `{"id":1,"method":"X","\u0066oo":1}`,
	`{"id":1,"method":"X","id":2}`, `{"method":"X","method":"Y","id":1}`, `{"id":1,"m\u0065thod":"X","method":"Y"}`,
	`{"id":1,"\u006dethod":"X"}`, ` { "method" : "X" , "id" : 7 } `, `{"id":1,"method":"X","params":5,"sessionId":"NOPE"}`,
	`{"id":1,"method":"X","params":{"a":1,"a":2}}`,
}

func TestFakeRefusesTextsAsChromiumDoes(t *testing.T) {
	clients := []*Client{Dial(t, Start(t).URL()), Dial(t, StartChromium(t).WS)}
	for i, raw := range unusable {
		var said [2]string
		for k, c := range clients {
			c.Send(raw)
			c.until(func() bool { return len(c.messages) > i })
			said[k] = position.ReplaceAllString(string(c.Transcript()[i].Raw), "")
		}
		if said[0] != said[1] {
			t.Errorf("%s\nfake:     %s\nChromium: %s", head([]byte(raw)), said[0], said[1])
		}
	}
}

func TestFakeDropsAsChromiumDoes(t *testing.T) {
	urls := map[string]string{"fake": Start(t).URL(), "Chromium": StartChromium(t).WS}
	for name, url := range urls {
		for what, misbehave := range map[string]func(*Client){
			"a binary frame":    func(c *Client) { c.SendBinary([]byte(`{"id":1,"method":"Browser.getVersion"}`)) },
			"an unmasked frame": func(c *Client) { c.SendBytes([]byte("\x81\x02{}")) },
			"100 MiB in one frame": func(c *Client) {
				c.SendBytes(append([]byte{0x81, 0xff, 0, 0, 0, 0, maxCommand >> 24, maxCommand >> 16 & 0xff, 0, 0, 0, 0, 0, 0}, make([]byte, maxCommand)...))
			},
		} {
			c := Dial(t, url)
			misbehave(c)
			if code, text := c.CloseStatus(); code != 1006 {
				t.Errorf("%s after %s: close code %d %s, want 1006", name, what, code, text)
			}
		}
	}
}

var (
	position = regexp.MustCompile(` at position \d+`)
	anID     = regexp.MustCompile(`\b([0-9A-F]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b`)
	aTitle   = regexp.MustCompile(`"title":"[^"]*",`)
	lateURL  = regexp.MustCompile(`("type":"(?:iframe|worker|tab)",)"url":"[^"]*",`)
	thrown   = regexp.MustCompile(`"result":\{"result":\{"type":"object","(subtype":"error|className":"Window).*\}`)
	aVersion = regexp.MustCompile(`"result":\{"protocolVersion".*\}`)
	tabState = regexp.MustCompile(`,"embedderData":\{.*?\}`)
	ofUI     = regexp.MustCompile(`"targetInfo":\{"targetId":"(\w+)","type":"browser_ui"|"targetInfo":\{"targetId":"(\w+)","type":"tab",.*"canAccessOpener":false,"browserContextId":"\w+"\}`)
)

// normalise renders messages with what may differ between two runs left out.
func normalise(messages []Msg, pageEvents bool) []string {
	navigating := false
	var lines, batch []string
	attached := map[string]string{}
	popups := map[string]bool{} // the address bar's targets
	for i, m := range messages {
		text := string(m.Raw)
		if found := ofUI.FindStringSubmatch(text); found != nil && m.Method == "Target.targetCreated" {
			popups[found[1]+found[2]] = true
		}
		if slices.ContainsFunc(anID.FindAllString(text, -1), func(id string) bool { return popups[id] }) {
			continue
		}
		if strings.HasPrefix(m.Method, "Target.target") && m.Param("targetId") == "" {
			var event struct {
				TargetInfo struct{ TargetID, Attached json.RawMessage }
			}
			_ = m.Into(&event)
			key, state := m.Session+string(event.TargetInfo.TargetID), string(event.TargetInfo.Attached)
			was, known := attached[key]
			attached[key] = state
			if m.Method == "Target.targetInfoChanged" && known && was == state {
				continue
			}
			if m.Method == "Target.targetInfoChanged" && !known {
				continue // told to the one that attached, when the URL changed
			}
		}
		switch domain, _, _ := strings.Cut(m.Method, "."); domain {
		case "Page", "Runtime", "Inspector":
			navigating = navigating || m.Method == "Page.frameStartedNavigating"
			if domain == "Page" && !(pageEvents && navigating) || m.Method == "Page.frameStoppedLoading" || m.Method == "Inspector.workerScriptLoaded" {
				continue
			}
			text = fmt.Sprintf(`{"method":%q,…,"sessionId":%q}`, m.Method, m.Session)
			if len(lines) > 0 && lines[len(lines)-1] == text {
				continue // executionContextsCleared comes twice
			}
		}
		for _, rule := range []struct {
			find *regexp.Regexp
			put  string
		}{
			{position, ""}, {aTitle, ""}, {lateURL, "$1"}, {tabState, ""},
			{thrown, `"result":{…}`}, {aVersion, `"result":{…}`},
		} {
			text = rule.find.ReplaceAllString(text, rule.put)
		}
		// The batch before the reply of setDiscoverTargets comes by id, which
		// is another order in each run.
		if m.Method == "Target.targetCreated" {
			batch = append(batch, text)
			continue
		}
		slices.SortStableFunc(batch, func(a, b string) int { return strings.Compare(kind(b), kind(a)) })
		lines = append(append(lines, batch...), text)
		batch = nil
		// Neither have the replies of two sessions an order.
		if i > 0 && m.ID != "" && later(messages[i-1].ID, m.ID) && messages[i-1].Session != m.Session {
			last := len(lines) - 1
			lines[last-1], lines[last] = lines[last], lines[last-1]
		}
	}
	names := map[string]string{}
	for i, line := range lines {
		lines[i] = anID.ReplaceAllStringFunc(line, func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprintf("ID%d", len(names)+1)
			}
			return names[id]
		})
	}
	return lines
}

// later compares ids, which are counted up.
func later(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

var aKind = regexp.MustCompile(`"type":"(\w+)"`)

func kind(text string) string { return aKind.FindString(text) }

// compare shows two transcripts side by side from where they part.
func compare(fake, chromium []string) string {
	at := 0
	for at < min(len(fake), len(chromium)) && fake[at] == chromium[at] {
		at++
	}
	var b strings.Builder
	for i := max(0, at-3); i < min(at+6, max(len(fake), len(chromium))); i++ {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(end)"
		}
		if line(fake) == line(chromium) {
			fmt.Fprintf(&b, "  both      %s\n", line(fake))
			continue
		}
		fmt.Fprintf(&b, "  fake      %s\n  Chromium  %s\n", line(fake), line(chromium))
	}
	return b.String()
}
