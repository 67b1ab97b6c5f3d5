package main_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
)

// Two clients that count from 1 like everybody does: each reply goes to its
// sender, once, whatever order the page answers in.
func TestEveryReplyToItsSender(t *testing.T) {
	m := serve(t)
	n := scaled(t, 1000)
	clients := map[string]*proxytest.Client{"a": m.dial(t, "a"), "b": m.dial(t, "b")}
	pagesOf := map[string]proxytest.Page{}
	for name, c := range clients {
		// The ids of the test begin where nothing was sent yet.
		var made, attached struct{ TargetID, SessionID string }
		c.Send(`{"id":-1,"method":"Target.createTarget","params":{"url":"about:blank"}}`)
		decode(t, await(c, "-1").Result, &made)
		c.Send(`{"id":-2,"method":"Target.attachToTarget","params":{"flatten":true,"targetId":"` + made.TargetID + `"}}`)
		decode(t, await(c, "-2").Result, &attached)
		pagesOf[name] = proxytest.Page{TargetID: made.TargetID, Session: attached.SessionID}
	}

	var run []func()
	for name, c := range clients {
		run = append(run, func() {
			for id := 1; id <= n; id++ {
				value := fmt.Sprintf("'%s %d'", name, id)
				if id%3 == 0 { // slow: answered long after those that follow
					value = fmt.Sprintf("new Promise(done => setTimeout(done, 300, %s))", value)
				}
				c.Send(evaluation(strconv.Itoa(id), pagesOf[name].Session, value))
			}
			for id := 1; id <= n; id++ {
				await(c, strconv.Itoa(id))
			}
			c.Send(evaluation("-3", pagesOf[name].Session, "'the last'"))
			await(c, "-3")
		})
	}
	together(run...)

	for name, c := range clients {
		for id := 1; id <= n; id++ {
			replies := c.Replies(strconv.Itoa(id))
			want := fmt.Sprintf(`"value":"%s %d"`, name, id)
			if len(replies) != 1 || !strings.Contains(string(replies[0].Raw), want) || replies[0].Session != pagesOf[name].Session {
				t.Errorf("replies to id %d of %s: want one with %s in session %s, got %v", id, name, want, pagesOf[name].Session, replies)
			}
		}
	}
}

// An id that is in flight twice at both clients is answered as often as it was
// sent: with the sender's own value, or refused as Chrome itself refuses a
// second one on the same page.
func TestDuplicateIDsInFlight(t *testing.T) {
	m := serve(t)
	var run []func()
	for _, name := range []string{"a", "b"} {
		c := m.dial(t, name)
		p := c.NewPage("about:blank")
		run = append(run, func() {
			values := map[string]int{name + " slow": 1, name + " fast": 1, name + " last": 1}
			c.Send(evaluation("77", p.Session, fmt.Sprintf("new Promise(done => setTimeout(done, 300, '%s slow'))", name)))
			c.Send(evaluation("77", p.Session, fmt.Sprintf("'%s fast'", name)))
			c.Send(evaluation("77", p.Session, fmt.Sprintf("new Promise(done => setTimeout(done, 200, '%s last'))", name)))
			for range values {
				reply := await(c, "77")
				var result struct{ Result struct{ Value string } }
				if err := reply.Err(); err != nil {
					if err.Message != "Duplicate `id` in protocol request" {
						t.Errorf("reply to a duplicate id: want a value or Chrome's refusal, got %s", reply)
					}
					continue
				}
				decode(t, reply.Result, &result)
				if values[result.Result.Value]--; values[result.Result.Value] < 0 {
					t.Errorf("reply to a duplicate id of %s: want each of its values at most once, got %s", name, reply)
				}
			}
			settle(c)
			if replies := c.Replies("77"); len(replies) != 3 {
				t.Errorf("replies to three commands with id 77: want 3, got %v", replies)
			}
		})
	}
	together(run...)
}

// evaluation is a Runtime.evaluate with an id of the test's own spelling.
func evaluation(id, session, expression string) string {
	return fmt.Sprintf(`{"id":%s,"method":"Runtime.evaluate","params":{"expression":%s,"awaitPromise":true},"sessionId":%q}`,
		id, strconv.Quote(expression), session)
}

func await(c *proxytest.Client, id string) proxytest.Msg {
	return c.Await(func(m proxytest.Msg) bool { return m.ID == id })
}

// deep is a value of n arrays, one in the other.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// version is a command that Chrome answers at once, with more members after the method.
func version(more string) string { return `{"id":1,"method":"Browser.getVersion"` + more + `}` }

// Texts that are commands for Chrome, though they don't look like it.
var oddTexts = []string{
	`{"id":0,"method":"Browser.getVersion"}`,
	`{"id":-5,"method":"Browser.getVersion"}`,
	`{"id":2147483647,"method":"Browser.getVersion"}`,
	`{"id":-2147483648,"method":"Browser.getVersion"}`,
	`{"id":1.0,"method":"Browser.getVersion"}`,
	`{"id":1e3,"method":"Browser.getVersion"}`,
	`{"id":1E2,"method":"Browser.getVersion"}`,
	`{"id":100e-2,"method":"Browser.getVersion"}`,
	`{"id":0.5e1,"method":"Browser.getVersion"}`,
	`{"id":-0,"method":"Browser.getVersion"}`,
	`{"id" : 7 , "method" : "Browser.getVersion"}`,
	"  \n\t" + version("") + " \r\n",
	`{"method":"Browser.getVersion","id":1}`,
	`{"sessionId":"","params":{},"method":"Browser.getVersion","id":1}`,
	`{"\u0069d":1,"m\u0065thod":"Browser.getVersion"}`,
	`{"id":1,"method":"Browser.get\u0056ersion"}`,
	version(`,"params":null`),
	version(`,"params":[]`),
	version(`,"params":[1]`),
	version(`,"params":{"x":1,"x":2}`),
	version(`,"params":{"x":"\ud83c"}`),
	version(`,"params":{"x":` + deep(200) + `}`),
	version(`,"sessionId":""`),
	`{"id":1,"method":"Foo.bar"}`,
	`{"id":1,"method":"a\"b"}`,
	`{"id":1,"method":"a\u0000b"}`,
	version(`,"sessionId":"nope"`),
	`{"id":1,"method":"Target.getTargetInfo","params":{"targetId":5}}`,
	`{"id":1,"method":"Target.getTargetInfo","params":["targetId"]}`,
	`{"id":1,"method":"Target.attachToTarget"}`,
}

// Texts that Chrome refuses.
var unusableTexts = []string{
	"",
	"x",
	"{",
	"{}",
	"[]",
	"[" + version("") + "]",
	"5",
	`"s"`,
	"null",
	version(","),
	version("") + "x",
	version("") + version(""),
	version("") + "\x00",
	"\ufeff" + version(""),
	"/*c*/" + version(""),
	version("/*c*/"),
	version(`,"params":{"x":"` + "\xff" + `"}`),
	version(`,"params":{"x":"` + "\xc0\x80" + `"}`),
	version(`,"params":{"x":"\q"}`),
	version(`,"params":{"x":"\u12"}`),
	version(`,"params":{"x":01}`),
	version(`,"params":{"x":1e400}`),
	version(`,"params":{"x":1,}`),
	version(`,"params":{"x":` + deep(400) + `}`),
	version(`,,"params":{}`),
	`{"id":1 "method":"Browser.getVersion"}`,
	`{"id":1,"method" "Browser.getVersion"}`,
	`{id:1,"method":"Browser.getVersion"}`,
	`{"id":1,'method':"Browser.getVersion"}`,
	`{"id":1,"method":"Browser.getVersion"`,
	`{"id":1,"method":"Browser.getVersion"]`,
	`{"id":1,"method":"Browser.getVersi`,
	`{"method":"Browser.getVersion"}`,
	`{"id":"1","method":"Browser.getVersion"}`,
	`{"id":1.5,"method":"Browser.getVersion"}`,
	`{"id":12e-1,"method":"Browser.getVersion"}`,
	`{"id":null,"method":"Browser.getVersion"}`,
	`{"id":true,"method":"Browser.getVersion"}`,
	`{"id":2147483648,"method":"Browser.getVersion"}`,
	`{"id":-2147483649,"method":"Browser.getVersion"}`,
	`{"id":9007199254740993,"method":"Browser.getVersion"}`,
	`{"id":1e10,"method":"Browser.getVersion"}`,
	`{"id":1e400,"method":"Browser.getVersion"}`,
	`{"id":01,"method":"Browser.getVersion"}`,
	`{"id":+1,"method":"Browser.getVersion"}`,
	`{"id":1.,"method":"Browser.getVersion"}`,
	`{"id":1}`,
	`{"id":1,"method":""}`,
	`{"id":1,"method":5}`,
	`{"id":1,"method":null}`,
	`{"id":1,"method":"é"}`,
	version(`,"params":"s"`),
	version(`,"params":5`),
	version(`,"params":true`),
	version(`,"sessionId":5`),
	version(`,"sessionId":null`),
	version(`,"extra":1`),
	version(`,"":1`),
	`{"extra":1,"id":1,"method":"Browser.getVersion"}`,
	version(`,"id":2`),
	version(`,"\u0069d":2`),
	version(`,"method":"Browser.close"`),
	version(`,"m\u0065thod":"Browser.close"`),
	`{"method":"Browser.getVersion","method":"Browser.getVersion","id":1}`,
	version(`,"params":{},"params":{}`),
	version(`,"sessionId":"a","sessionId":"b"`),
}

var position = regexp.MustCompile(` at position \d+`)

// Whatever a client sends, it is answered as Chrome would answer it; the
// neighbour hears nothing and the connection to the browser stays.
func TestAnyTextIsAnsweredLikeChrome(t *testing.T) {
	m := serve(t)
	c, neighbour := m.dial(t, "a"), m.dial(t, "b")
	stays := neighbour.NewPage("about:blank")
	browser, observer := m.dialBrowser(t), m.dialBrowser(t)
	// answer is the next message, up to where a position in the text is named.
	answer := func(c *proxytest.Client, text string) string {
		c.Send(text)
		next := c.Await(func(proxytest.Msg) bool { return true })
		return unpadded(string(position.ReplaceAll(next.Raw, nil)))
	}
	connections := func() []string {
		var ids []string
		for _, each := range targets(t, observer, []params{{"type": "browser"}}) {
			ids = append(ids, each.TargetID)
		}
		slices.Sort(ids)
		return ids
	}

	answer(c, version("")) // c's place at the browser is made
	before, heard := connections(), len(neighbour.Transcript())
	for _, text := range append(slices.Clone(oddTexts), unusableTexts...) {
		if want, got := answer(browser, text), answer(c, text); got != want {
			t.Errorf("sent %.100q\nwant %s\ngot  %s", text, want, got)
		}
	}
	if after := connections(); !slices.Equal(before, after) {
		t.Errorf("connections of the browser: want still %v, got %v", before, after)
	}
	if got := neighbour.Transcript()[heard:]; len(got) > 0 {
		t.Errorf("messages at the neighbour: want none, got %v", got)
	}
	mustBeAlive(t, "the neighbour", stays)
}
