package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
)

const busyStatus = `{"store":"demo/1","browser":{"state":"ready","product":"Chrome/1","life":{"relaunches":2,"next_trial":"2030-01-01T00:01:30Z"}},
 "clients":[{"id":"alice","state":"connected","pending":3,"queued_bytes":2048,"in_messages":10,"out_messages":20,"last_method":"Page.navigate",
   "tabs":[{"state":"ready","title":"\u001b]0;owned\u0007\u001b[2JShop\nnew","url":"http://x/\u202e"}]},
  {"id":"bob","state":"grace","until":"2030-01-01T00:00:30Z","tabs":[]}],
 "downloads":{"active":1,"arrived":2,"failed":1,"error":"disk\u001b[31m full"}}`

func viewOf(t *testing.T, status string, at time.Time) *topView {
	t.Helper()
	v := &topView{at: at}
	if err := json.Unmarshal([]byte(status), v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTopView(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	first := viewOf(t, busyStatus, at.Add(-2*time.Second))
	second := viewOf(t, strings.ReplaceAll(busyStatus, `"in_messages":10`, `"in_messages":25`), at)
	var b bytes.Buffer
	second.write(&b, first)
	got := b.String()
	mustSay(t, got, "demo/1", "browser ready, Chrome/1", "clients 2  tabs 1  pending 3  queued 2.0 KiB", "1 under way, 2 arrived, 1 failed (the last: disk[31m full)",
		"breaker: 2 relaunches, open; next trial in 1m30s", "alice", "7.5", "Page.navigate", "Shop new", "bob", "grace 30s")
	for _, r := range got {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%q reaches the terminal:\n%s", r, got)
		}
	}
	b.Reset()
	first.write(&b, nil)
	if !strings.Contains(b.String(), "-   ") {
		t.Errorf("a rate without a picture before:\n%s", &b)
	}
}

func TestFrame(t *testing.T) {
	got := string(frame([]byte("one\nlonger than it\n日本語テキスト\nfour\nfive\n"), 8, 4))
	want := "\x1b[Hone\x1b[K\r\nlonger …\x1b[K\r\n日本語…\x1b[K\r\n… 2 mor…\x1b[K\x1b[J"
	if got != want {
		t.Errorf("frame\n%q, want\n%q", got, want)
	}
	for line, want := range map[string]string{"12345678": "12345678", "123456789": "1234567…", "e\u0301e\u0301": "e\u0301e\u0301", "": "", "日本語テ": "日本語テ"} {
		if got := cut(line, 8); got != want {
			t.Errorf("cut(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestTopOnce(t *testing.T) {
	d := startDouble(t)
	d.says(200, busyStatus)
	out, _ := d.run(t, exitOK, "top", "--store", "demo", "--once")
	mustSay(t, out, "alice", "Page.navigate")
	if strings.Contains(out, "\x1b") {
		t.Errorf("an escape where there is no terminal: %q", out)
	}
	out, _ = d.run(t, exitOK, "top", "--once")
	mustSay(t, out, "demo", "ready")
	_, errs := d.run(t, exitFailed, "top", "--store", "other", "--once")
	mustSay(t, errs, "never served")
}
