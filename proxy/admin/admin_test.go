package admin

import (
	"strings"
	"testing"
	"time"
)

// What may be secret in an address does not reach the page.
func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"":                              "",
		"about:blank":                   "about:blank",
		"about:blank#secret":            "about:blank",
		"https://a.example/p/q?s=1#f":   "https://a.example/p/q",
		"https://u:secret@a.example/":   "https://a.example/",
		"https://a.example/?":           "https://a.example/",
		"data:text/html,secret":         "data:…",
		"javascript:alert('secret')":    "javascript:…",
		"blob:https://a.example/secret": "blob:…",
		"mailto:secret@a.example":       "mailto:…",
		"chrome://settings/x?secret":    "chrome://settings/x",
		"https://a.example/%zz?secret":  "https:…",
		"http://[::1?secret":            "http:…",
	} {
		if got := address(given); got != want || strings.Contains(got, "secret") {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for given, want := range map[time.Duration]string{
		-time.Second: "0 ms", 999 * time.Millisecond: "999 ms", time.Second: "1 s", 59900 * time.Millisecond: "59 s",
		61 * time.Second: "1 m 1 s", 3*time.Hour + 5*time.Minute: "3 h 5 m", 49 * time.Hour: "2 d 1 h",
	} {
		if got := span(given); got != want {
			t.Errorf("%s: got %q, want %q", given, got, want)
		}
	}
	for given, want := range map[int]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 150 << 10: "150 KiB", 3 << 29: "1.5 GiB", 5 << 50: "5120 TiB"} {
		if got := size(given); got != want {
			t.Errorf("%d: got %q, want %q", given, got, want)
		}
	}
	for given, want := range map[string]string{"": "", "äöüß": "äöüß", "äöüßx": "äöü…"} {
		if got := clip(4, given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}
