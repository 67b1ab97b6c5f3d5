package proxy

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
)

func TestParseAddress(t *testing.T) {
	long := strings.Repeat("a", 64)
	for path, want := range map[string]address{
		"/client-a":                    {prefix: "/client-a", client: "a", socket: true},
		"/client-a/":                   {prefix: "/client-a", client: "a", path: "/", socket: true},
		"/client-1a2b3c4d-w2":          {prefix: "/client-1a2b3c4d-w2", client: "1a2b3c4d-w2", socket: true},
		"/client-a_B-9/json/list":      {prefix: "/client-a_B-9", client: "a_B-9", path: "/json/list"},
		"/client-a/devtools/page/X":    {prefix: "/client-a", client: "a", path: "/devtools/page/X", page: "X"},
		"/client-a/devtools/browser/x": {prefix: "/client-a", client: "a", path: "/devtools/browser/x"},
		"/client-" + long:              {prefix: "/client-" + long, client: long, socket: true},
		"/devtools/browser/a-b":        {client: "a-b", path: "/devtools/browser/a-b", socket: true},
		"/devtools/page/X":             {path: "/devtools/page/X", page: "X"},
		"/json/version":                {path: "/json/version"},
		"/nothing":                     {path: "/nothing"},
	} {
		if got, err := parseAddress(path); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", path, got, err, want)
		}
	}
	for _, path := range []string{
		"/client-", "/client-/json", "/client-a%20b", "/client-a.b/json/list", "/client-é", "/client-" + long + "a",
		"/devtools/browser/a/b", "/devtools/browser/%41", "/devtools/browser/" + long + "a",
	} {
		if got, err := parseAddress(path); err == nil {
			t.Errorf("%s: %+v, want an error", path, got)
		}
	}
	for _, path := range []string{"/", "/devtools/browser", "/devtools/browser/"} {
		a, err := parseAddress(path)
		b, _ := parseAddress(path)
		if err != nil || !a.socket || len(a.client) != 22 || !validID(a.client) || a.client == b.client {
			t.Errorf("%s: %+v and %+v, %v", path, a, b, err)
		}
	}
}

func TestPathsWithoutABrowser(t *testing.T) {
	s := startServer(t, nil)
	for _, tc := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ready"},
		{"GET", "/client-a/healthz", 404, ""},
		{"GET", "/", 200, ""},
		{"GET", "/foo", 404, ""},
		{"GET", "//json/list", 404, ""},
		{"GET", "/json/", 404, "Unknown command: "},
		{"GET", "/json/foo/bar", 404, "Unknown command: foo"},
		{"GET", "/jsonfoo", 404, "Malformed query: /jsonfoo"},
		{"GET", "/client-a/json/foo", 404, "Unknown command: foo"},
		{"GET", "/json/new", 405, "Using unsafe HTTP verb GET to invoke /json/new. This action supports only PUT verb."},
		{"POST", "/client-a/json/new?about:blank", 405, "Using unsafe HTTP verb POST to invoke /json/new. This action supports only PUT verb."},
		{"GET", "/json/close/XX", 404, "No such target id: XX"},
		{"GET", "/client-a/json/activate/XX", 404, "No such target id: XX"},
		{"GET", "/client-a", 426, "This address is for WebSocket connections."},
		{"GET", "/client-a.b/json/list", 400, `client id "a.b": 1 to 64 characters of A-Z a-z 0-9 _ - are allowed`},
	} {
		status, _, body := s.do(t, tc.method, tc.path)
		if status != tc.status || body != tc.body {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.path, status, body, tc.status, tc.body)
		}
	}
	if n := s.starts.Load(); n != 0 {
		t.Errorf("%d starts", n)
	}
}

func TestSocketsThatAreNoClients(t *testing.T) {
	s := startServer(t, nil)
	for path, want := range map[string]int{
		"/json/version":              404,
		"/foo":                       404,
		"/client-a/devtools/browser": 404,
		"/client-a.b":                400,
		"/devtools/browser/a.b":      400,
		"/devtools/page/XX":          500,
		"/client-a/devtools/page/XX": 500,
	} {
		_, resp, err := proxytest.DialErr(context.Background(), s.ws(path), nil)
		if err == nil || resp == nil || resp.StatusCode != want {
			t.Errorf("%s: %v, %+v; want HTTP %d", path, err, resp, want)
		}
	}
}

func TestListNeverMakesAClient(t *testing.T) {
	s := startServer(t, nil)
	if status, _, body := s.get(t, "/client-a/json/list"); status != http.StatusOK || body != "[  ]\n" {
		t.Errorf("%d %q", status, body)
	}
	if n := s.Stats().Clients; n != 0 {
		t.Errorf("%d clients", n)
	}
}
