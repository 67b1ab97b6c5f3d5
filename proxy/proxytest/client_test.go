package proxytest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestAwaitTakesEachMessageOnce(t *testing.T) {
	b := Start(t)
	c := Dial(t, b.URL())
	b.AwaitConns(1)
	b.Inject(`{"method":"A.a","params":{"n":"1"}}`)
	c.Call("", "Browser.getVersion", nil) // the first one is here
	go func() {
		b.AwaitCommand(func(cmd Command) bool { return cmd.Method == "Browser.getVersion" })
		b.Inject(`{"method":"A.a","params":{"n":"2"}}`)
	}()
	for _, want := range []string{"1", "2"} {
		if got := c.AwaitEvent("", "A.a").Param("n"); got != want {
			t.Errorf("event %s, want %s", got, want)
		}
	}
}

func TestAwaitIsFatalWhenNothingComes(t *testing.T) {
	b := Start(t)
	c, _, err := DialErr(t.Context(), b.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Drop()
	c.Timeout = 10 * time.Millisecond
	c.Go("", "Browser.getVersion", nil).Reply()
	defer func() {
		text, _ := recover().(string)
		if !strings.Contains(text, "A.a") || !strings.Contains(text, "protocolVersion") {
			t.Errorf("panicked with %q, want the event's name and what came instead", text)
		}
	}()
	c.AwaitEvent("", "A.a")
}

func TestRepliesAreCountedByID(t *testing.T) {
	c := Dial(t, Start(t).URL())
	c.Send(`{"id":7,"method":"Browser.getVersion"}`)
	c.Send(`{"method":"Nope.nope","id":7}`)
	c.Send(`{"id":"7"}`)
	c.Call("", "Browser.getVersion", nil)
	if got := len(c.Replies("7")); got != 2 {
		t.Errorf("%d replies with id 7, want 2", got)
	}
	if m := c.Await(func(m Msg) bool { return m.ID == "" }); m.Err() == nil || m.Err().Code != -32600 {
		t.Errorf("got %s, want an error without id", m)
	}
	if _, err := c.CallErr("", "Nope.nope", nil); err == nil || err.Error() != "-32601 'Nope.nope' wasn't found" {
		t.Errorf("error %v", err)
	}
}

func TestAClientThatStopsReadingGetsItAllLater(t *testing.T) {
	b := Start(t)
	c := Dial(t, b.URL())
	page := c.NewPage("about:blank")
	c.StopReading()
	before := len(c.Transcript())
	pending := c.Go(page.Session, "Runtime.evaluate", map[string]any{"expression": "burst(1000,1000)"})
	b.AwaitCommand(func(cmd Command) bool { return cmd.Param("expression") == "burst(1000,1000)" })
	if got := len(c.Transcript()) - before; got != 0 {
		t.Errorf("%d messages while not reading, want 0", got)
	}
	c.ResumeReading()
	if _, err := pending.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := len(c.Transcript()) - before; got != 1001 {
		t.Errorf("%d messages after resuming, want 1001", got)
	}
}

func TestTheEndIsKnownByItsCode(t *testing.T) {
	b := Start(t)
	for name, test := range map[string]struct {
		end  func(*Client)
		code int
		text string
	}{
		"close frame": {func(*Client) { b.CloseWith(4008, "slow consumer") }, 4008, "slow consumer"},
		"reset":       {func(*Client) { b.Drop() }, websocket.CloseAbnormalClosure, ""},
		"own goodbye": {func(c *Client) { c.Close() }, websocket.CloseNormalClosure, ""},
		"own reset":   {func(c *Client) { c.Drop() }, websocket.CloseAbnormalClosure, ""},
	} {
		c := Dial(t, b.URL())
		b.AwaitConns(1)
		test.end(c)
		code, text := c.CloseStatus()
		if code != test.code || test.text != "" && text != test.text {
			t.Errorf("%s: ended with %d %q, want %d %q", name, code, text, test.code, test.text)
		}
		b.AwaitConns(0)
	}
}

func TestPingIsAnswered(t *testing.T) {
	Dial(t, Start(t).URL()).Ping("are you there")
}

func TestHandshakesAreRefusedAsChromiumDoes(t *testing.T) {
	fake, chromium := Start(t), StartChromium(t)
	for _, test := range []struct {
		header string
		value  string
		path   string // instead of the browser's
	}{
		{"Host", "example.com", ""}, {"Host", "localhost", ""}, {"Host", "a.localhost:1", ""}, {"Host", "[::1]:9", ""}, {"Host", "10.1.2.3", ""},
		{"Origin", "http://example.com", ""}, {"Origin", "null", ""}, {"Origin", "", ""}, {"Origin", "http://localhost", ""},
		{"User-Agent", "x", "/devtools/browser"}, {"User-Agent", "x", "/devtools/browser/x"}, {"User-Agent", "x", "/"},
	} {
		var status [2]int
		for i, url := range []string{fake.URL(), chromium.WS} {
			if test.path != "" {
				scheme, rest, _ := strings.Cut(url, "://")
				host, _, _ := strings.Cut(rest, "/")
				url = scheme + "://" + host + test.path
			}
			c, resp, err := DialErr(t.Context(), url, http.Header{test.header: {test.value}})
			if err == nil {
				c.Close()
			}
			status[i] = resp.StatusCode
		}
		if status[0] != status[1] {
			t.Errorf("%s %q at %q: fake answers %d, Chromium %d", test.header, test.value, test.path, status[0], status[1])
		}
	}
}

func TestDialErrTellsWhy(t *testing.T) {
	b := Start(t)
	b.RefuseHandshakes(1)
	_, resp, err := DialErr(t.Context(), b.URL(), nil)
	if !errors.Is(err, websocket.ErrBadHandshake) || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("refused with %v, want 503", err)
	}
	c, _, err := DialErr(t.Context(), b.URL(), nil)
	if err != nil {
		t.Fatalf("the next one: %v", err)
	}
	c.Close()

	b.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := DialErr(ctx, b.URL(), nil); !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a hanging browser: %v, want the deadline", err)
	}
	b.Close()
	if _, _, err := DialErr(t.Context(), b.URL(), nil); err == nil {
		t.Error("a closed browser took a connection")
	}
}
