package routing

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSchemesAreReadAsChromeDoes compares with testdata/schemes.txt: an
// address, and what Chromium 156 shows when it is told to load it. What shows
// one of the closed pages must be refused. A line that begins with ! is refused
// though Chromium makes nothing of it: nobody needs it, and a Chrome on another
// system may.
func TestSchemesAreReadAsChromeDoes(t *testing.T) {
	raw, err := os.ReadFile("testdata/schemes.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if line[0] == '#' {
			continue
		}
		line, stricter := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "!")
		quoted, shows, _ := strings.Cut(line, "\t")
		url, ok := Unquote([]byte(quoted))
		if !ok {
			t.Fatalf("%s is no JSON string", quoted)
		}
		scheme, _, _ := strings.Cut(shows, ":")
		closed := slices.Contains(schemes, scheme) && shows != "chrome://newtab/" && !strings.HasPrefix(shows, "chrome://new-tab-page")
		if got := closedScheme(url, nil); (got != "") != (closed || stricter) {
			t.Errorf("%s, which shows %s: refused for scheme %q", quoted, shows, got)
		} else if closed && !stricter && got != scheme {
			t.Errorf("%s, which shows %s: refused for scheme %q", quoted, shows, got)
		}
	}
}

func TestSchemesOpen(t *testing.T) {
	for _, tc := range []struct{ url, open, closed string }{
		{"file:///etc", "file", ""},
		{"FI\tLE:///etc", "file", ""},
		{"chrome://version", "file", "chrome"},
		{"view-source:https://a", "view-source", ""},
		{"view-source:file:///etc", "view-source", "file"},
		{"view-source: \tfile:///etc", "view-source", "file"},
		{"view-source:view-source:file:///etc", "view-source", "file"},
		{"view-source:file:///etc", "file", "view-source"},
		{"blob:file:///x", "", "file"},
	} {
		if got := closedScheme([]byte(tc.url), []string{tc.open}); got != tc.closed {
			t.Errorf("%q with %s open: refused for %q, want %q", tc.url, tc.open, got, tc.closed)
		}
	}
}

// TestSchemesAllocateNothing: an address that passes costs no memory.
func TestSchemesAllocateNothing(t *testing.T) {
	for _, url := range []string{"https://shop.example/a?b=c", "about:blank", "chrome://new-tab-page-third-party/", "blob:https://a/b", "file:///x"} {
		text := []byte(url)
		if n := testing.AllocsPerRun(100, func() { closedScheme(text, []string{"devtools"}) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", url, n)
		}
	}
}

// TestClosedSchemesAtEveryDepth: however a client says it, and wherever.
func TestClosedSchemesAtEveryDepth(t *testing.T) {
	want := `"error":{"code":-32000,"message":"file: addresses are refused: start cdpmux with --allow-scheme file to open them"}`
	for _, session := range []string{"", "SUB", "S1"} {
		for _, method := range []string{"Target.createTarget", "Page.navigate"} {
			for _, params := range []string{
				`{"url":"file:///etc/passwd"}`,
				`{"url":"\u0066\u0069le:///etc/passwd"}`,
				`{"url":"https://a","\u0075rl":"file:///etc/passwd"}`,
				`{"frameId":"F","url":" FILE:/etc/passwd"}`,
			} {
				p := playerWithPage(t)
				text := `c1> {"id":9,"method":"` + method + `","params":` + params
				if session != "" {
					text += `,"sessionId":"` + session + `"`
				}
				if out := p.step(text + "}"); len(out) != 1 || !strings.Contains(out[0], want) {
					t.Errorf("%s %s on %q: got %q", method, params, session, out)
				}
			}
		}
	}
	p := playerWithPage(t)
	p.r.openSchemes = []string{"file"}
	if out := p.step(`c1> {"id":9,"method":"Page.navigate","params":{"url":"file:///etc/passwd"},"sessionId":"S1"}`); len(out) != 1 || !strings.HasPrefix(out[0], ">b ") {
		t.Errorf("with file: open: got %q", out)
	}
}

func FuzzScheme(f *testing.F) {
	f.Add([]byte(" view-source:\tfile:"))
	f.Fuzz(func(t *testing.T, url []byte) {
		plain := []byte(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(string(url)))
		if a, b := closedScheme(url, nil), closedScheme(plain, nil); a != "" && b == "" && !isNewTabPage(plain) || a == "" && b != "" {
			q, _ := json.Marshal(string(url))
			t.Errorf("%s is refused for %q, and without tabs and line breaks for %q", q, a, b)
		}
	})
}
