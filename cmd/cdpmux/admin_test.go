package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"cdpmux/lifecycle"
	"cdpmux/proxy/access"
)

// double stands in for the proxy of store "demo", which this process holds.
type double struct {
	home  *lifecycle.Home
	store *lifecycle.Store
	addr  string
	lock  *lifecycle.Lock

	status int    // what it answers; 0: 200
	answer string // to the call of the control API
	asked  []string
}

func startDouble(t *testing.T) *double {
	t.Helper()
	home, err := lifecycle.OpenHome(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	d := &double{home: home, answer: "{}"}
	if d.store, err = home.OpenStore("demo", ""); err != nil {
		t.Fatal(err)
	}
	token, err := home.MakeAdminToken("demo")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.asked = append(d.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		if r.URL.Path == "/json/version" {
			fmt.Fprintf(w, `{"Browser":"Chrome/1","Cdpmux-Store":"demo/%s"}`, d.store.ID)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if d.status != 0 {
			w.WriteHeader(d.status)
		}
		fmt.Fprint(w, d.answer)
	}))
	t.Cleanup(server.Close)
	d.addr = server.Listener.Addr().String()
	if err := d.store.Remember(server.Listener.Addr()); err != nil {
		t.Fatal(err)
	}
	if d.lock, err = home.Lock("demo"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.lock.Unlock() })
	if err := d.lock.Announce(lifecycle.Holder{Addr: d.addr, URL: server.URL}); err != nil {
		t.Fatal(err)
	}
	return d
}

// says is what it answers from now on.
func (d *double) says(status int, answer string) { d.status, d.answer, d.asked = status, answer, nil }

// run runs a command, which must end with code.
func (d *double) run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(append(args, "--home", d.home.Dir()), &out, &errs); got != code {
		t.Errorf("%v: exit code %d, want %d; stdout: %s stderr: %s", args, got, code, &out, &errs)
	}
	return out.String(), errs.String()
}

func mustAsk(t *testing.T, d *double, want string) {
	t.Helper()
	if len(d.asked) != 1 || d.asked[0] != want {
		t.Errorf("asked: %q, want %q", d.asked, want)
	}
}

func mustSay(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("said %q, want %q in it", text, word)
		}
	}
}

const inUse = `{"error":"clients are connected","failure_kind":"browser_in_use","retryable":true,"next":"wait, or force it"}`

func TestStop(t *testing.T) {
	d := startDouble(t)
	d.says(200, `{"method":"graceful","elapsed_ms":412,"verified":true}`)
	out, _ := d.run(t, exitOK, "stop", "--store", "demo")
	mustAsk(t, d, `POST /v1/browser/stop {"force":false}`)
	mustSay(t, out, "demo: browser stopped, graceful, in 412 ms; nothing of it is left\n")

	d.says(200, `{"method":"forced","verified":false,"survivors":2,"left":[71,72],"data_risk":true}`)
	out, errs := d.run(t, exitNotVerified, "stop", "--store", "demo", "--force", "--json")
	mustAsk(t, d, `POST /v1/browser/stop {"force":true}`)
	mustSay(t, errs, "demo", "2 processes: [71 72]", "next: run cdpmux stop again")
	var receipt lifecycle.Receipt
	if err := json.Unmarshal([]byte(out), &receipt); err != nil || receipt.Method != "forced" || !receipt.DataRisk {
		t.Errorf("receipt: %s, %v", out, err)
	}

	d.says(409, inUse)
	_, errs = d.run(t, exitTryLater, "stop", "--store", "demo")
	mustSay(t, errs, "browser_in_use", "clients are connected", "next: wait, or force it")

	// Who has the lock without serving is not signalled: here, the test itself.
	_, errs = d.run(t, exitTryLater, "stop", "--store", "demo", "--proxy")
	mustSay(t, errs, "starts or ends just now")

	// Nobody serves it, and there is no browser.
	if err := d.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	d.says(200, "")
	out, _ = d.run(t, exitOK, "stop", "--store", "demo")
	mustSay(t, out, "demo: no browser is running")
	out, _ = d.run(t, exitOK, "stop", "--store", "demo", "--proxy")
	mustSay(t, out, "demo: no proxy and no browser is running")
	if len(d.asked) != 0 {
		t.Errorf("asked without a proxy: %q; who listens there is not ours", d.asked)
	}
	_, errs = d.run(t, exitFailed, "stop", "--store", "other")
	mustSay(t, errs, "other", "never served")
}

// What may pass by itself is worth another try, as the proxy says of it, too.
func TestExitCodes(t *testing.T) {
	failed := func(kind string) error { return &lifecycle.Failure{Kind: kind, Text: "it failed"} }
	for _, each := range []struct {
		err  error
		code int
	}{
		{failed(lifecycle.BreakerOpen), exitTryLater},
		{failed(lifecycle.LaunchBusy), exitTryLater},
		{failed(lifecycle.LaunchTimeout), exitTryLater},
		{failed(lifecycle.BrowserMissing), exitFailed},
		{failed(lifecycle.StoreLocked), exitFailed},
		{&refusal{Kind: lifecycle.BreakerOpen, Retryable: true, Step: "wait"}, exitTryLater},
		{&lifecycle.LockedError{}, exitHeld},
		{errNotVerified, exitNotVerified},
	} {
		if code, next := explain(nil, runtimeError{each.err}); code != each.code || next == "" {
			t.Errorf("%v: exit code %d, next %q; want %d and what to do", each.err, code, next, each.code)
		}
	}
}

func TestHold(t *testing.T) {
	d := startDouble(t)
	d.says(200, `{"until":"2026-01-02T03:04:05Z"}`)
	out, _ := d.run(t, exitOK, "hold", "--store", "demo", "--for", "30m", "--name", "nightly")
	mustAsk(t, d, `POST /v1/hold {"name":"nightly","ttl_s":1800}`)
	mustSay(t, out, "held by nightly until 2026-01-02T03:04:05Z")
	d.says(200, `{}`)
	out, _ = d.run(t, exitOK, "hold", "--store", "demo", "--for", "0")
	mustAsk(t, d, `POST /v1/hold {"name":"operator","ttl_s":0}`)
	mustSay(t, out, "not held any more")
	_, errs := d.run(t, exitUsage, "hold", "--store", "demo")
	mustSay(t, errs, `"for"`)
	for _, bad := range []string{"10ms", "721h", "soon"} {
		d.run(t, exitUsage, "hold", "--store", "demo", "--for", bad)
	}
	if err := d.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	_, errs = d.run(t, exitFailed, "hold", "--store", "demo", "--for", "1m")
	mustSay(t, errs, "not served", "next: cdpmux ensure --store demo")
}

func TestURL(t *testing.T) {
	d := startDouble(t)
	out, _ := d.run(t, exitOK, "url", "--store", "demo", "--client", "1a2b3c4d-w2")
	token, err := d.home.StoreToken("demo")
	if err != nil {
		t.Fatal(err)
	}
	if want := "ws://" + d.addr + "/t/" + access.Capability([]byte(token), "1a2b3c4d-w2", nil) + "/client-1a2b3c4d-w2\n"; out != want {
		t.Errorf("url: %q, want %q", out, want)
	}
	for _, bad := range []string{"", "a/b", "a b", strings.Repeat("a", 65)} {
		_, errs := d.run(t, exitUsage, "url", "--store", "demo", "--client", bad)
		mustSay(t, errs, "--client")
	}
	d.run(t, exitFailed, "url", "--store", "other", "--client", "a")

	// It is the address that the proxy has announced.
	path := strings.TrimPrefix(strings.TrimSpace(out), "ws://"+d.addr)
	for base, want := range map[string]string{
		"https://cdp.example.com/shop": "wss://cdp.example.com/shop" + path,
		"http://192.0.2.1:9400":        "ws://192.0.2.1:9400" + path,
		"unix:/run/cdpmux/demo.sock":   "ws+unix:/run/cdpmux/demo.sock:" + path,
	} {
		if err := d.lock.Announce(lifecycle.Holder{Addr: d.addr, URL: base}); err != nil {
			t.Fatal(err)
		}
		if out, _ := d.run(t, exitOK, "url", "--store", "demo", "--client", "1a2b3c4d-w2"); out != want+"\n" {
			t.Errorf("url of %s: %q, want %q", base, out, want)
		}
	}
	if err := d.lock.Announce(lifecycle.Holder{}); err != nil {
		t.Fatal(err)
	}
	_, errs := d.run(t, exitTryLater, "url", "--store", "demo", "--client", "a")
	mustSay(t, errs, "starts or ends just now", "next: try again")
	if err := d.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	_, errs = d.run(t, exitFailed, "url", "--store", "demo", "--client", "a")
	mustSay(t, errs, "not served", "next: cdpmux ensure --store demo")
}

// status without a store tells of each what is so.
func TestStatusOfAll(t *testing.T) {
	d := startDouble(t)
	d.says(200, `{"browser":{"state":"refused","error":"too often"},"clients":[{"id":"a","state":"connected","tabs":[{},{}]},{"id":"b","state":"grace","tabs":[{}]},{"id":"","state":"http","tabs":[]}]}`)
	for i, slug := range []string{"down", "off", "silent"} {
		s, err := d.home.OpenStore(slug, "")
		if err != nil {
			t.Fatal(err)
		}
		if slug == "silent" {
			lock, err := d.home.Lock(slug)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			if err := lock.Announce(lifecycle.Holder{Addr: "127.0.0.1:1", URL: "http://127.0.0.1:1"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.home.MakeAdminToken(slug); err != nil {
			t.Fatal(err)
		}
		if err := s.Remember(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1 + i}); err != nil {
			t.Fatal(err)
		}
	}
	d.run(t, exitOK, "disable", "--store", "off")
	out, _ := d.run(t, exitOK, "status", "--json")
	var states []storeState
	if err := json.Unmarshal([]byte(out), &states); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got := map[string]string{}
	for _, s := range states {
		got[s.Store] = fmt.Sprintf("%s %d %d", s.State, s.Clients, s.Tabs)
		if (s.Store == "demo" || s.Store == "silent") != (s.PID != 0 && s.Error != "") {
			t.Errorf("%+v: a pid and an error where there is a proxy that has one, and nowhere else", s)
		}
	}
	for slug, want := range map[string]string{"demo": "refused 2 3", "down": "down 0 0", "off": "disabled 0 0", "silent": "silent 0 0"} {
		if got[slug] != want {
			t.Errorf("state of %s: %q, want %q", slug, got[slug], want)
		}
	}
	table, _ := d.run(t, exitOK, "status")
	mustSay(t, table, "STORE", "demo", "refused", "too often", d.addr)
}

// runFor runs a command that names its own home, and returns all that it said.
func runFor(t *testing.T, code int, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	if got := run(args, &said, &said); got != code {
		t.Errorf("%v: exit code %d, want %d; it said: %s", args, got, code, &said)
	}
	return said.String()
}
