package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cdpmux/proxy/proxytest"
)

// tally counts what attackers try, and what they get.
type tally struct {
	t         *testing.T
	mu        sync.Mutex
	attempts  int
	successes int
}

// tried enters one attempt.
func (a *tally) tried(success bool, format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.attempts++
	if success {
		a.successes++
		a.t.Errorf("an attack succeeded: "+format, args...)
	}
}

// print says how it went.
func (a *tally) print() {
	a.t.Logf("attempts %d, successes %d", a.attempts, a.successes)
}

// fortress is a proxy that lets in only who has a credential, with a client in
// it that others are after.
type fortress struct {
	*mux
	*tally
	fake   *proxytest.Browser // behind it; nil: a real one
	token  string             // the store token
	victim *proxytest.Client
	page   proxytest.Page // of the victim
}

func newFortress(t *testing.T, flags ...string) *fortress {
	t.Helper()
	return newFortressOf(t, raceBinary(t), flags...)
}

// newFortressOf is newFortress with a binary: the race detector takes far more
// memory than what it watches.
func newFortressOf(t *testing.T, binary string, flags ...string) *fortress {
	t.Helper()
	fake := proxytest.Start(t)
	f := fortify(t, serveBinary(t, binary, tempHome(t), append([]string{"--browser", "attach", "--endpoint", fake.URL(), "--auth", "token", "--max-clients", "0"}, flags...)...))
	f.fake = fake
	return f
}

// fortify makes a fortress of a proxy that was started with --auth token.
func fortify(t *testing.T, m *mux) *fortress {
	t.Helper()
	f := &fortress{mux: m, tally: &tally{t: t}, token: m.secret(t, "token")}
	f.victim = proxytest.Dial(t, m.ws(f.path(t, "victim")))
	f.page = f.victim.NewPage("about:blank")
	return f
}

// path is where a client is reached with its capability.
func (f *fortress) path(t *testing.T, client string) string {
	t.Helper()
	out := cdpmux(t, "url", "--home", f.home, "--store", "t", "--client", client)
	match := regexp.MustCompile(`/t/[\w-]+/client-` + client).FindString(out)
	if match == "" {
		t.Fatalf("cdpmux url printed %q", out)
	}
	return match
}

// holds checks that the victim has noticed nothing.
func (f *fortress) holds(t *testing.T) {
	t.Helper()
	if _, problem := f.victim.CallErr("", "Target.getTargetInfo", params{"targetId": f.page.TargetID}); problem != nil || f.victim.Ended() {
		t.Errorf("the victim and its tab are not what they were: %v", problem)
	}
}

// servedPaths lists what the proxy serves, for a victim with a tab.
func servedPaths(victim, tab string) []string {
	client := []string{"", "/", "/json", "/json/", "/json/version", "/json/list", "/json/protocol", "/json/new?about:blank", "/json/close/" + tab, "/json/activate/" + tab, "/devtools/page/" + tab}
	paths := []string{
		"/devtools/browser", "/devtools/browser/", "/devtools/browser/" + victim, "/status", "/metrics", "/dashboard/release", "/dashboard/picture",
		"/v1/browser", "/v1/browser/start", "/v1/browser/stop", "/v1/hold", "/v1/drain", "/v1/sessions", "/v1/sessions/s1", "/v1/sessions/s1/close", "/v1/sessions/s1/heartbeat",
		"/v1/clients/" + victim + "/close", "/v1/clients/" + victim + "/tabs/close", "/v1/clients/" + victim + "/trace",
	}
	for _, path := range client {
		paths = append(paths, "/client-"+victim+path)
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// ask sends one request on a connection of its own and returns its status; 0 is
// none.
func (f *fortress) ask(t *testing.T, method, path string, header ...string) int {
	t.Helper()
	lines := []string{method + " " + path + " HTTP/1.1", "Host: " + f.addr}
	if method == "UPGRADE" {
		lines = upgrade(path, usualKey, "Host: "+f.addr)
	}
	r := dialRaw(t, f.addr)
	defer r.Close()
	resp, err := r.ask(t, append(lines, header...)...)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

var methods = []string{"GET", "POST", "PUT", "DELETE", "UPGRADE"}

// Who has no credential, or that of another client, gets nothing at any path.
func TestAttacksWithoutTheCredential(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	defer f.print()
	mallory := f.path(t, "mallory")
	capability := strings.TrimSuffix(mallory, "/client-mallory")
	basic := func(s string) string { return "Authorization: Basic " + s }
	credentials := map[string][]string{
		"none":            nil,
		"wrong":           {"Authorization: Bearer " + strings.Repeat("A", len(f.token))},
		"empty":           {"Authorization: Bearer "},
		"beginning":       {"Authorization: Bearer " + f.token[:len(f.token)-1]},
		"longer":          {"Authorization: Bearer " + f.token + "A"},
		"right and wrong": {"Authorization: Bearer " + f.token, "Authorization: Bearer x"},
		"bare":            {"Authorization: " + f.token},
		"as the user":     {basic("bm90aGluZzo=")},
		"no base64":       {basic("!!!!")},
		"of a proxy":      {"Proxy-Authorization: Bearer " + f.token},
		"cookie":          {"Cookie: token=" + f.token},
		"forwarded":       {"X-Forwarded-For: 127.0.0.1", "X-Forwarded-Host: localhost", "X-Forwarded-Proto: https"},
	}
	var tries []func()
	for _, path := range servedPaths("victim", f.page.TargetID) {
		for _, method := range methods {
			try := func(what, path string, header ...string) {
				tries = append(tries, func() {
					status := f.ask(t, method, path, header...)
					f.tried(status == 101 || status/100 == 2 || status/100 == 3, "%s %s (%s): %d", method, path, what, status)
				})
			}
			for what, header := range credentials {
				try(what, path, header...)
			}
			try("token in the query", path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"token="+f.token+"&access_token="+f.token)
			try("capability of another client", capability+path)
			if path != "/" && !strings.HasPrefix(path, "/json") && !strings.HasPrefix(path, "/devtools") { // those are her own
				try("capability behind another client's path", mallory+path)
			}
			try("guessed capability", "/t/"+strings.Repeat("A", 32)+path)
			try("no capability", "/t/"+path)
		}
	}
	inParallel(8, tries)
	f.holds(t)
	if status := f.ask(t, "GET", "/json/version", "Authorization: Bearer "+f.token); status != 200 {
		t.Errorf("the right token after all that: got %d, want 200", status)
	}
}

// A web page that points a name of its own at this machine, or says whose it
// is, gets nothing, even with the right token.
func TestAttacksByName(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	defer f.print()
	_, port, _ := strings.Cut(f.addr, ":")
	right := "Authorization: Bearer " + f.token
	heads := [][]string{
		{"Host: " + f.addr, "Sec-Fetch-Site: cross-site"}, {"Host: " + f.addr, "Sec-Fetch-Site: same-site"}, {"Host: " + f.addr, "Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"},
		{"Host: " + f.addr, "Host: evil.example"}, {"Host: evil.example", "X-Forwarded-Host: localhost"},
	}
	for _, host := range []string{
		"evil.example", "localhost.evil.example", "evil.localhost.example", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "2130706433", "0x7f000001", "0177.0.0.1", "127.1",
		"xn--lcalhost-0l0d", "loca\xe2\x84\x93host", "localhost@evil.example", "evil.example#localhost", "evil.example:80:localhost", "[::1].evil.example", "[evil.example]",
		"0.0.0.0", "[::]", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[::ffff:0:0]",
	} {
		heads = append(heads, []string{"Host: " + host}, []string{"Host: " + host + ":" + port})
	}
	for _, origin := range []string{
		"", "null", "http://evil.example", "https://evil.example", "http://" + f.addr, "http://localhost:" + port, "file://", "devtools://devtools",
		"chrome-extension://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "http://127.0.0.1", "http://[::1]:" + port, "http://evil.example http://localhost",
	} {
		heads = append(heads, []string{"Host: " + f.addr, "Origin: " + origin})
	}
	var tries []func()
	for _, path := range servedPaths("victim", f.page.TargetID) {
		for _, method := range []string{"GET", "UPGRADE"} { // the door comes before the method
			for _, head := range heads {
				tries = append(tries, func() {
					lines := []string{method + " " + path + " HTTP/1.1"}
					if method == "UPGRADE" {
						lines = upgrade(path, usualKey)
					}
					r := dialRaw(t, f.addr)
					defer r.Close()
					resp, err := r.ask(t, append(append(lines, right), head...)...)
					f.tried(err == nil && (resp.StatusCode == 101 || resp.StatusCode/100 == 2), "%s %s with %q", method, path, head)
				})
			}
		}
	}
	inParallel(8, tries)
	f.holds(t)
}

// A capability opens its own client by no trick of the path.
func TestAttacksByThePath(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	defer f.print()
	mallory, tab := f.path(t, "mallory"), f.page.TargetID
	var tries []func()
	for _, trick := range []string{
		"/../client-victim%s", "/..%%2fclient-victim%s", "/%%2e%%2e/client-victim%s", "/.%%2e/client-victim%s", "/%%2e./client-victim%s",
		"/..;/client-victim%s", "/..\\client-victim%s", "//client-victim%s", "/./../client-victim%s", "?/client-victim%s", "%%00/client-victim%s",
		"%%2f..%%2fclient-victim%s", "/client-victim%s", "#/client-victim%s", ";/../client-victim%s", "%%20/../client-victim%s", "%%0d%%0a/client-victim%s",
		"/devtools/../../client-victim%s", "/json/../../client-victim%s", "/json/..%%2f..%%2fclient-victim%s", "/devtools/page/../../../client-victim%s",
		"/http://" + f.addr + "/client-victim%s",
	} {
		for _, what := range []string{"", "/json/list", "/json/version", "/json/close/" + tab, "/devtools/page/" + tab, "/json/new?about:blank"} {
			for _, method := range methods {
				path := mallory + fmt.Sprintf(trick, what)
				tries = append(tries, func() {
					r := dialRaw(t, f.addr)
					defer r.Close()
					lines := []string{method + " " + path + " HTTP/1.1", "Host: " + f.addr}
					if method == "UPGRADE" {
						lines = upgrade(path, usualKey, "Host: "+f.addr)
					}
					resp, err := r.ask(t, lines...)
					if err != nil {
						f.tried(false, "")
						return
					}
					defer resp.Body.Close()
					// What answers may be mallory's own, also by 101: then the victim is still connected in the end.
					body, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
					f.tried(resp.StatusCode == 200 && strings.Contains(string(body), tab), "%s %s: %s", method, path, body)
				})
			}
		}
	}
	inParallel(8, tries)
	f.holds(t)
}

// Wrong tokens and ids are guessed in vain, and not for long; the right token is
// let in all the same.
func TestAttacksByGuessing(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	defer f.print()
	var slowed atomic.Int32
	var tries []func()
	for i := range max(200, scaled(t, 10000)) {
		token, client := fmt.Sprintf("%064x", i), fmt.Sprintf("/t/%032x/client-victim", i)
		tries = append(tries, func() {
			for _, status := range []int{f.ask(t, "GET", "/json/list", "Authorization: Bearer "+token), f.ask(t, "UPGRADE", client)} {
				f.tried(status == 101 || status == 200, "token or capability %d: %d", i, status)
				if status == http.StatusTooManyRequests {
					slowed.Add(1)
				}
			}
		})
	}
	inParallel(8, tries)
	if slowed.Load() == 0 {
		t.Error("nobody was told to slow down")
	}
	f.holds(t)
	if status := f.ask(t, "GET", "/json/version", "Authorization: Bearer "+f.token); status != 200 {
		t.Errorf("the right token beside guesses: got %d, want 200", status)
	}
}

// A browser that sends us elsewhere is not followed.
func TestAttacksByTheBrowser(t *testing.T) {
	t.Parallel()
	a := &tally{t: t}
	defer a.print()
	var reached atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer elsewhere.Close()
	there := strings.TrimPrefix(elsewhere.URL, "http://")
	for _, answer := range []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
		},
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"Browser":"Chrome/156","webSocketDebuggerUrl":"ws://%s/devtools/browser/x"}`, there)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"Browser":"Chrome/156","webSocketDebuggerUrl":"ws://127.0.0.1:80@%s/devtools/browser/x"}`, there)
		},
	} {
		before := reached.Load()
		liar := httptest.NewServer(answer)
		t.Cleanup(liar.Close) // serve may end the test
		m := serve(t, "--browser", "attach", "--endpoint", liar.URL)
		status, _ := request(t, http.MethodGet, m.http("/json/version"))
		a.tried(reached.Load() != before || status == 200, "the proxy went where the browser sent it (%d)", status)
		m.stop(t)
	}
}

// What others call themselves cannot add a line to the log, or colour to it.
func TestAttacksOnTheLog(t *testing.T) {
	t.Parallel()
	f := newFortress(t, "--log-level", "trace")
	defer f.print()
	const line = "INF forged"
	for _, text := range []string{"a\n" + line, "a\r\n" + line, "a%0a" + line, "a\x1b[31m" + line, "a\u2028" + line, "a\x00" + line, "a\v" + line} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		r := dialRaw(t, f.addr)
		_, _ = r.ask(t, "GET /client-"+text+"/json/list HTTP/1.1", "Host: "+f.addr, "Authorization: Bearer "+f.token)
		r.Close()
		r = dialRaw(t, f.addr)
		_, _ = r.ask(t, "GET /json/list HTTP/1.1", "Host: "+text, "Origin: "+text, "User-Agent: "+text, "Authorization: Bearer "+text)
		r.Close()
		c := proxytest.Dial(t, f.ws(f.path(t, "mallory")))
		c.Send(`{"id":1,"method":` + string(quoted) + `}`)
		c.Send(`{"id":2,"method":"Target.createTarget","params":{"url":` + string(quoted) + `}}`)
		c.Send(`{"id":3,"method":"Target.closeTarget","params":{"targetId":` + string(quoted) + `}}`)
		c.Await(func(m proxytest.Msg) bool { return strings.Contains(string(m.Raw), `"id":3`) })
		c.Close()
		log := f.stderr.String()
		f.tried(regexp.MustCompile(`(?m)^`+line).MatchString(log) || strings.ContainsAny(log, "\x00\v\x1b"), "%q: it stands in the log as\n%s", text, log)
	}
	f.holds(t)
}

// inParallel carries out tries, so many at a time.
func inParallel(workers int, tries []func()) {
	var next atomic.Int64
	var all []func()
	for range workers {
		all = append(all, func() {
			for i := next.Add(1) - 1; int(i) < len(tries); i = next.Add(1) - 1 {
				tries[i]()
			}
		})
	}
	together(all...)
}
