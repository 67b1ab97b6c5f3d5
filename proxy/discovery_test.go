package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
)

// answer is an HTTP answer without what cannot be the same twice.
type answer struct {
	status  int
	headers string
	body    string
}

// ask requests a path of a server whose client lives under prefix, and puts
// fixed words in the place of addresses and ids.
func ask(t *testing.T, method, base, prefix, path string) answer {
	t.Helper()
	req, err := http.NewRequest(method, base+prefix+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.ReplaceAll(string(text), strings.TrimPrefix(base, "http://")+prefix, "HOST")
	body = targetIDs.ReplaceAllString(body, "TARGET")
	body = strings.ReplaceAll(body, "   \"Cdpmux-Store\": \"demo/1a2b3c4d\",\n", "")
	body = browserSocket.ReplaceAllString(body, `ws://HOST"`)
	headers := resp.Header.Get("Content-Type") + "|" + resp.Header.Get("Content-Security-Policy")
	return answer{resp.StatusCode, headers, body}
}

var (
	targetIDs     = regexp.MustCompile(`\b[0-9A-F]{32}\b`)
	browserSocket = regexp.MustCompile(`ws://HOST/devtools/browser/[A-Za-z0-9_-]+"`)
)

// Each endpoint answers what a Chrome of one's own answers.
func TestDiscoveryIsChromes(t *testing.T) {
	// One browser is asked directly, another through the proxy: the same tabs
	// are in both.
	chrome, behind := proxytest.StartChromium(t), proxytest.StartChromium(t)
	s := startServer(t, func(s *testServer) {
		s.address = func(context.Context) (string, error) { return behind.WS, nil }
	})
	for _, prefix := range []string{"", "/client-a"} {
		t.Run("at "+prefix, func(t *testing.T) {
			page := "/json/new?data:text/html,%3Ctitle%3E%3Cb%3E%26%3C/title%3E"
			for _, tc := range []struct{ method, path string }{
				{"GET", "/json/version"}, {"GET", "/json/version/"}, {"POST", "/json/version?x"}, {"GET", "/json/version/foo"},
				{"GET", "/json/"}, {"GET", "/json/foo"}, {"GET", "/jsonfoo"}, {"GET", "/json/new"}, {"DELETE", "/json/new?about:blank"},
				{"GET", "/json/close/XX"}, {"GET", "/json/close"}, {"GET", "/json/activate/XX"}, {"GET", "/foo"},
				{"PUT", page}, {"PUT", "/json/new"}, {"PUT", "/json/new?nonsense"}, {"PUT", "/json/new?for_tab"},
				{"GET", "/json/protocol"},
			} {
				if tc.path == "/foo" && prefix != "" {
					continue
				}
				want := ask(t, tc.method, chrome.HTTP, "", tc.path)
				got := ask(t, tc.method, "http://"+s.addr, prefix, tc.path)
				if tc.path == "/jsonfoo" {
					got.body = strings.Replace(got.body, prefix, "", 1)
				}
				if got != want {
					t.Errorf("%s %s:\n%d %s %.2000s\nChrome:\n%d %s %.2000s", tc.method, tc.path,
						got.status, got.headers, got.body, want.status, want.headers, want.body)
				}
			}
		})
	}
}

// entry is one target of /json/list.
type entry struct {
	ID, Title, Type, URL, WebSocketDebuggerURL string
}

func list(t *testing.T, s *testServer, path string) (entries []entry) {
	t.Helper()
	_, _, body := s.get(t, path)
	if err := json.Unmarshal([]byte(body), &entries); err != nil {
		t.Fatalf("%s: %v in %q", path, err, body)
	}
	return entries
}

func put(t *testing.T, s *testServer, path string) (e entry) {
	t.Helper()
	status, _, body := s.do(t, http.MethodPut, path)
	if err := json.Unmarshal([]byte(body), &e); err != nil || status != 200 {
		t.Fatalf("%s: %d, %v in %q", path, status, err, body)
	}
	return e
}

func TestListsAreTheClientsOwn(t *testing.T) {
	chrome := proxytest.StartChromium(t)
	s := startServer(t, func(s *testServer) {
		s.address = func(context.Context) (string, error) { return chrome.WS, nil }
	})
	c := proxytest.Dial(t, s.ws("/client-a"))
	page := c.NewPage("data:text/html,<title>a%26b</title>")
	want := entry{page.TargetID, "a&amp;b", "page", "data:text/html,<title>a%26b</title>", s.ws("/client-a/devtools/page/" + page.TargetID)}
	await(t, "the client's own list with its title", func() bool {
		mine := list(t, s, "/client-a/json")
		return len(mine) == 1 && mine[0] == want
	})
	for _, path := range []string{"/json/list", "/client-b/json/list"} {
		if others := list(t, s, path); len(others) != 0 {
			t.Errorf("%s shows %+v", path, others)
		}
	}
	for _, prefix := range []string{"", "/client-b"} {
		if status, _, body := s.get(t, prefix+"/json/close/"+page.TargetID); status != 404 || body != "No such target id: "+page.TargetID {
			t.Errorf("closing a foreign tab at %q: %d %q", prefix, status, body)
		}
	}

	root := put(t, s, "/json/new?about:blank")
	if got := list(t, s, "/json/list/"); len(got) != 1 || got[0].ID != root.ID {
		t.Errorf("the root's list is %+v, want the tab that it made", got)
	}
	if got := list(t, s, "/client-a/json/list"); len(got) != 1 {
		t.Errorf("the client's list is %+v", got)
	}
	tabs := list(t, s, "/json/list?for_tab")
	if len(tabs) != 2 || tabs[0].Type == tabs[1].Type {
		t.Errorf("with for_tab %+v, want the page and its tab", tabs)
	}
	if status, _, body := s.get(t, "/json/activate/"+root.ID); status != 200 || body != "Target activated" {
		t.Errorf("activate: %d %q", status, body)
	}
	if status, _, body := s.get(t, "/json/close/"+root.ID); status != 200 || body != "Target is closing" {
		t.Errorf("close: %d %q", status, body)
	}
	await(t, "closed tab", func() bool { return len(list(t, s, "/json/list")) == 0 })
	page.Eval("1")
}

func TestPageSocket(t *testing.T) {
	chrome := proxytest.StartChromium(t)
	s := startServer(t, func(s *testServer) {
		s.address = func(context.Context) (string, error) { return chrome.WS, nil }
	})
	for _, prefix := range []string{"", "/client-a"} {
		tab := put(t, s, prefix+"/json/new?about:blank")
		c := proxytest.Dial(t, tab.WebSocketDebuggerURL)
		result := string(c.Call("", "Runtime.evaluate", json.RawMessage(`{"expression":"6*7"}`)))
		if !strings.Contains(result, "42") {
			t.Errorf("evaluate: %s", result)
		}
		if status, _, _ := s.get(t, prefix+"/json/close/"+tab.ID); status != 200 {
			t.Errorf("close: HTTP %d", status)
		}
		if code, text := c.CloseStatus(); code != 1006 {
			t.Errorf("closed with %d %q, want a dropped connection", code, text)
		}
		last := c.Transcript()[len(c.Transcript())-1]
		if !last.Is("", "Inspector.detached") || last.Param("reason") != "target_closed" {
			t.Errorf("last message %s", last)
		}
	}
}

func TestVersionNamesHostAndPath(t *testing.T) {
	s := startServer(t, nil)
	for path, want := range map[string]string{
		"/json/version":          `^ws://h\.localhost:1/devtools/browser/[A-Za-z0-9_-]{22}$`,
		"/client-a/json/version": `^ws://h\.localhost:1/client-a$`,
	} {
		_, body := s.raw(t, "GET "+path+" HTTP/1.1\r\nHost: h.localhost:1\r\n\r\n")
		var v map[string]string
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).MatchString(v["webSocketDebuggerUrl"]) || v["Cdpmux-Store"] != "demo/1a2b3c4d" {
			t.Errorf("%s: %v", path, v)
		}
	}
	_, body := s.raw(t, "GET /client-a/json/version HTTP/1.0\r\n\r\n")
	if !strings.Contains(body, `"ws://`+s.addr+`/client-a"`) {
		t.Errorf("without a Host: %s", body)
	}
}

func TestProtocolIsNotToBeHad(t *testing.T) {
	s := startServer(t, nil)
	if status, _, _ := s.get(t, "/json/protocol"); status != 200 {
		t.Fatalf("HTTP %d", status)
	}
	up, _ := s.Server.browser(context.Background())
	up.http, up.protocol.body = "http://127.0.0.1:1", ""
	if status, _, body := s.get(t, "/json/protocol"); status != 502 || !strings.HasPrefix(body, "The browser does not serve /json/protocol: ") || strings.Contains(body, "127.0.0.1") {
		t.Errorf("%d %q", status, body)
	}
}
