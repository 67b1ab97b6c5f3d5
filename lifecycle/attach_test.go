package lifecycle

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAttach(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		path    string // of the address; empty: it fails
	}{
		"its own host is pinned": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/json/version" {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, `{"webSocketDebuggerUrl":"ws://192.0.2.1:1/devtools/browser/u?k=v"}`)
		}, "/devtools/browser/u?k=v"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/json/version" {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
				return
			}
			fmt.Fprint(w, `{"webSocketDebuggerUrl":"ws://127.0.0.1/devtools/browser/u"}`)
		}, ""},
		"not a browser": {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") }, ""},
		"no address":    {func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			t.Setenv("HTTP_PROXY", "http://192.0.2.1:1")
			a, err := NewAttach(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			ep, err := a.Start(t.Context())
			if tc.path == "" {
				wantFailure(t, err, BrowserUnreachable)
				if a.Probe(t.Context()) == nil {
					t.Error("probe: no error")
				}
				return
			}
			if want := strings.Replace(server.URL, "http", "ws", 1) + tc.path; err != nil || ep.WS != want {
				t.Errorf("address %q, %v, want %q", ep.WS, err, want)
			}
			if err := a.Probe(t.Context()); err != nil {
				t.Errorf("probe: %v", err)
			}
		})
	}
}

func TestAttachToNobody(t *testing.T) {
	for _, endpoint := range []string{"http://127.0.0.1:1", "ws://127.0.0.1:1/devtools/browser/u"} {
		a, err := NewAttach(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Start(t.Context())
		wantFailure(t, err, BrowserUnreachable)
	}
}

func TestAttachEndpointRefused(t *testing.T) {
	for _, endpoint := range []string{"", "127.0.0.1:9222", "https://h", "wss://h/x", "http:///json", "file:///x"} {
		if _, err := NewAttach(endpoint); err == nil {
			t.Errorf("%q: no error", endpoint)
		}
	}
	for _, endpoint := range []string{"wss://u:s3cr3t@h/x?token=s3cr3t", "http://u:s3cr3t@h:x/s3cr3t", "http://h/%zz?s3cr3t"} {
		if _, err := NewAttach(endpoint); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
