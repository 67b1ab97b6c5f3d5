package main_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// A page has WebSockets of its own, as chrome-remote-interface uses them: what
// is said there, without a sessionId, is said to the page.
func TestPageSockets(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	root, b := m.dial(t, "a"), m.dial(t, "b")
	p, other := root.NewPage("about:blank"), root.NewPage("about:blank")
	ofB := b.NewPage("about:blank")
	first, second, third := pageSocket(t, m, "a", p), pageSocket(t, m, "a", p), pageSocket(t, m, "a", other)

	first.On(p.TargetID, "").Navigate(site.URL + "/title?t=first")
	third.On(other.TargetID, "").Navigate(site.URL + "/title?t=other")
	for title, c := range map[string]proxytest.Page{"first": second.On(p.TargetID, ""), "other": third.On(other.TargetID, "")} {
		if got := text(t, c.Eval("document.title")); got != title {
			t.Errorf("title at a socket of the page: want %q, got %q", title, got)
		}
	}
	mustBeAlive(t, "the root beside the page sockets", p)
	for _, c := range []*proxytest.Client{first, second, third} {
		if got := pages(t, c); len(got) != 2 {
			t.Errorf("getTargets at a page socket: want its client's two, got %v", got)
		}
		for _, message := range c.Transcript() {
			if message.Session != "" {
				t.Errorf("message at a page socket: want no sessionId, got %s", message)
			}
		}
		mustBeStrangers(t, c, b)
	}

	t.Run("children", func(t *testing.T) {
		autoAttach(first, "", false)
		first.On(p.TargetID, "").Navigate(site.URL + "/iframe")
		frame := awaitAttached(t, first, "", "iframe")
		eventually(t, 5*time.Second, "title of the iframe", func() bool {
			return string(first.On(frame.TargetInfo.TargetID, frame.SessionID).Eval("document.title")) == `"plain"`
		})
	})

	root = m.dial(t, "a") // takes over from the root, and from nothing else
	for _, c := range []*proxytest.Client{first, second, third} {
		mustBeAlive(t, "a page socket after a takeover", c.On("", ""))
	}

	t.Run("closed with their page", func(t *testing.T) {
		browser := m.dialBrowser(t)
		made := browser.NewPage("about:blank")
		host, _ := m.browserAddress(t)
		native := proxytest.Dial(t, "ws://"+host+"/devtools/page/"+made.TargetID)
		native.Call("", "Runtime.enable", nil)
		made.Close()
		wantCode, _ := native.CloseStatus()
		want := last(native)

		root.Call("", "Target.closeTarget", params{"targetId": p.TargetID})
		for _, c := range []*proxytest.Client{first, second} {
			if code, why := c.CloseStatus(); code != wantCode {
				t.Errorf("close code of a socket whose page closed: want Chrome's %d, got %d %s", wantCode, code, why)
			}
			if got := last(c); got != want {
				t.Errorf("last message of a socket whose page closed: want Chrome's %s, got %s", want, got)
			}
		}
		mustBeAlive(t, "the socket of the other page", third.On("", ""))
	})

	t.Run("foreign is unknown", func(t *testing.T) {
		for _, path := range []string{
			"/client-a/devtools/page/" + ofB.TargetID, "/devtools/page/" + ofB.TargetID, "/devtools/page/" + other.TargetID,
			"/client-stranger/devtools/page/" + other.TargetID, "/client-a/devtools/page/" + unknownID,
		} {
			id := path[strings.LastIndex(path, "/")+1:]
			status, body := refusal(t, m.ws(path))
			if want := "No such target id: " + id; status != http.StatusInternalServerError || strings.TrimSpace(body) != want {
				t.Errorf("%s: want 500 %q, got %d %q", path, want, status, body)
			}
		}
		mustBeAlive(t, "b", ofB)
	})

	t.Run("of the HTTP owner", func(t *testing.T) {
		_, body := request(t, http.MethodPut, m.http("/json/new?about:blank"))
		var made target
		decode(t, body, &made)
		c := proxytest.Dial(t, made.WS)
		mustBeAlive(t, "a page of /json/new", c.On("", ""))
		if got := pages(t, c); !slices.Equal(got, []string{made.ID}) {
			t.Errorf("getTargets at a page of the HTTP owner: want [%s], got %v", made.ID, got)
		}
	})
}

// pageSocket connects to a page of a client.
func pageSocket(t *testing.T, m *mux, id string, p proxytest.Page) *proxytest.Client {
	t.Helper()
	return proxytest.Dial(t, m.ws("/client-"+id+"/devtools/page/"+p.TargetID))
}

// last is the last message that a client received.
func last(c *proxytest.Client) string {
	all := c.Transcript()
	return all[len(all)-1].String()
}

// refusal is the answer to a handshake that must fail.
func refusal(t *testing.T, url string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	c, resp, err := proxytest.DialErr(ctx, url, nil)
	if err == nil {
		c.Drop()
		t.Fatalf("dial %s: want a refusal, got a connection", url)
	}
	if resp == nil {
		t.Fatalf("dial %s: %v", url, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
