package proxy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"cdpmux/proxy/access"
	"cdpmux/proxy/proxytest"
)

const (
	testToken = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	testAdmin = "admin-token"
)

var testKeys = access.Keys{Store: testToken, Admin: testAdmin}

// startGuarded serves with tokens; required says whether one is needed.
func startGuarded(t *testing.T, required bool, setup func(*testServer)) *testServer {
	return startServer(t, func(s *testServer) {
		s.cfg.Auth = Auth{Token: testToken, Required: required}
		s.cfg.AdminToken = testAdmin
		if setup != nil {
			setup(s)
		}
	})
}

// request sends a request with headers, a line each, as they stand.
func (s *testServer) request(t *testing.T, line string, headers ...string) (status int, body string) {
	t.Helper()
	text := line + " HTTP/1.1\r\nHost: " + s.addr + "\r\n"
	for _, h := range headers {
		text += strings.TrimSuffix(h, "\r\n") + "\r\n"
	}
	return s.raw(t, text+"\r\n")
}

func basicHeader(user, password string) string {
	return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

const bearer = "Authorization: Bearer "

// doors are paths of every kind, with what a right credential gets there.
var doors = []struct {
	line    string
	upgrade bool
	status  int
}{
	{"GET /", false, 200},
	{"GET /json/version", false, 200},
	{"GET /json/version/", false, 200},
	{"GET /json/list", false, 200},
	{"GET /json", false, 200},
	{"GET /json/protocol", false, 200},
	{"PUT /json/new?about:blank", false, 200},
	{"GET /json/close/XX", false, 404},
	{"GET /jsonfoo", false, 404},
	{"GET /nothing", false, 404},
	{"GET /client-a", false, 426},
	{"GET /client-a.b/json/list", false, 400},
	{"GET /client-a/json/list", false, 200},
	{"GET /client-a/json/version", false, 200},
	{"POST /v1/browser/start", false, 200},
	{"POST /v1/nothing", false, 404},
	{"GET /client-a", true, 101},
	{"GET /", true, 101},
	{"GET /devtools/browser", true, 101},
	{"GET /devtools/browser/x", true, 101},
	{"GET /devtools/page/XX", true, 500},
	{"GET /client-a/devtools/page/XX", true, 500},
	{"GET /nothing", true, 404},
}

func TestEveryDoorNeedsACredentialWhereOneIsRequired(t *testing.T) {
	s := startGuarded(t, true, nil)
	var refused string // each lack of a credential gets this answer
	for i, d := range doors {
		var headers []string
		if d.upgrade {
			headers = []string{upgradeHeaders}
		}
		status, body := s.request(t, d.line, headers...)
		if i == 0 {
			refused = body
		}
		if status != 401 || body != refused || !strings.Contains(body, `"failure_kind":"unauthenticated"`) || !strings.Contains(body, "run/STORE.token") {
			t.Errorf("%s without a credential: %d %q", d.line, status, body)
		}
		line, _, _ := strings.Cut(d.line, "?")
		if status, body := s.request(t, line+"?token="+testToken, headers...); status != 401 || body != refused {
			t.Errorf("%s with the token as a query: %d %q", d.line, status, body)
		}
		for _, right := range []string{bearer + testToken, basicHeader("cdpmux", testToken), basicHeader("x", testAdmin)} {
			if status, body := s.request(t, d.line, append(headers, right)...); status != d.status {
				t.Errorf("%s with %.20s…: %d %q, want %d", d.line, right, status, body, d.status)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		for _, headers := range [][]string{nil, {bearer + "wrong"}} {
			if status, body := s.request(t, "GET "+path, headers...); status != 200 {
				t.Errorf("%s: %d %q", path, status, body)
			}
		}
	}
	if n := s.starts.Load(); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// Where none is required nothing changes, but what is wrong is refused.
func TestCredentialsWhereNoneIsRequired(t *testing.T) {
	s := startGuarded(t, false, nil)
	for _, d := range doors {
		var headers []string
		if d.upgrade {
			headers = []string{upgradeHeaders}
		}
		if status, body := s.request(t, d.line, headers...); status != d.status {
			t.Errorf("%s without a credential: %d %q, want %d", d.line, status, body, d.status)
		}
		if status, _ := s.request(t, d.line, append(headers, bearer+testToken)...); status != d.status {
			t.Errorf("%s with the token: %d, want %d", d.line, status, d.status)
		}
	}
	for i, wrong := range []string{bearer + "wrong", basicHeader("cdpmux", ""), "Authorization: Negotiate abc", "Authorization:"} {
		if status, body := s.request(t, "GET "+[]string{"/client-a", "/", "/json/version", "/v1/browser"}[i], wrong); status != 401 || !strings.Contains(body, "unauthenticated") {
			t.Errorf("%s: %d %q", wrong, status, body)
		}
	}
}

// The control API tells a token that is too small from one that is none.
func TestAdminTokenAlone(t *testing.T) {
	s := startGuarded(t, false, nil)
	for header, want := range map[string]int{"X: y": 401, bearer + testToken: 403, bearer + testAdmin: 200, basicHeader("me", testAdmin): 200} {
		for _, path := range []string{"/status", "/v1/browser"} {
			if status, body := s.request(t, "GET "+path, header); status != want {
				t.Errorf("%s with %.20s…: %d %q, want %d", path, header, status, body, want)
			}
		}
	}
}

// A capability opens its client, whatever is asked of it, and nothing else.
func TestCapabilityPaths(t *testing.T) {
	s := startGuarded(t, true, nil)
	alice, bob := testKeys.Path("alice", nil), testKeys.Path("bob", nil)
	key := strings.TrimSuffix(alice, "/client-alice")
	for path, want := range map[string]int{
		alice:                                   426,
		alice + "/":                             426,
		alice + "/json/version":                 200,
		alice + "/json/list":                    200,
		alice + "/json/close/XX":                404,
		alice + "/jsonfoo":                      404,
		alice + "/healthz":                      404,
		key + "/client-bob":                     401,
		key + "/client-alice2":                  401,
		key + "/client-Alice":                   401,
		key + "/client-a.b":                     401,
		key + "/client-":                        401,
		key + "/client-alice/../client-bob":     404, // a path of alice's, and none that there is
		key:                                     401,
		key + "/":                               401,
		key + "/json/version":                   401,
		key + "/json/list":                      401,
		key + "/healthz":                        401,
		key + "/status":                         401,
		key + "/v1/browser":                     401,
		key + "/devtools/browser/alice":         401,
		key + key + "/client-alice":             401,
		"/t":                                    401,
		"/t/":                                   401,
		"/t//client-alice":                      401,
		"/t/client-alice":                       401,
		"/t/" + testToken + "/client-alice":     401,
		strings.Replace(alice, "/t/", "/T/", 1): 401,
		"/client-alice":                         401,
		"/client-alice?" + alice:                401,
	} {
		if status, body := s.request(t, "GET "+path); status != want {
			// The burst of wrong ones is smaller than this list.
			if want == 401 && status == http.StatusTooManyRequests {
				continue
			}
			t.Errorf("%s: %d %q, want %d", path, status, body, want)
		}
	}
	// The right token does not mend a wrong capability, nor a right capability a wrong token.
	s.guesses = access.Guesses{}
	if status, _ := s.request(t, "GET "+key+"/client-bob/json/list", bearer+testToken); status != 401 {
		t.Errorf("wrong capability with the token: %d", status)
	}
	if status, _ := s.request(t, "GET "+alice+"/json/list", bearer+"wrong"); status != 401 {
		t.Errorf("capability with a wrong token: %d", status)
	}
	if status, _ := s.request(t, "GET "+alice+"/json/list", bearer+testToken); status != 200 {
		t.Errorf("capability with the token: %d", status)
	}

	// Page sockets of one are not the other's.
	a := proxytest.Dial(t, s.ws(alice))
	var made struct{ TargetID string }
	if err := json.Unmarshal(a.Call("", "Target.createTarget", map[string]string{"url": "about:blank"}), &made); err != nil {
		t.Fatal(err)
	}
	tab := made.TargetID
	if status, _ := s.request(t, "GET "+alice+"/devtools/page/"+tab, upgradeHeaders); status != 101 {
		t.Errorf("its page socket: %d", status)
	}
	if status, body := s.request(t, "GET "+bob+"/devtools/page/"+tab, upgradeHeaders); status != 500 || body != "No such target id: "+tab {
		t.Errorf("page socket of another: %d %q", status, body)
	}
}

// What discovery returns is enough to connect, for whoever asked.
func TestDiscoveredAddressesWorkByThemselves(t *testing.T) {
	s := startGuarded(t, true, nil)
	alice := testKeys.Path("alice", nil)
	for path, header := range map[string]string{
		alice:           "X: y",
		"/client-alice": bearer + testToken,
		"":              bearer + testToken,
	} {
		var version, tab struct {
			Socket   string `json:"webSocketDebuggerUrl"`
			Frontend string `json:"devtoolsFrontendUrl"`
		}
		_, body := s.request(t, "GET "+path+"/json/version", header)
		if err := json.Unmarshal([]byte(body), &version); err != nil {
			t.Fatalf("%s: %s %v", path, body, err)
		}
		if path != "" && version.Socket != "ws://"+s.addr+alice {
			t.Errorf("%q: %s", path, version.Socket)
		}
		proxytest.Dial(t, version.Socket).Call("", "Browser.getVersion", nil)
		if path == "" {
			continue // its tabs are nobody's: there is no capability for them
		}
		_, body = s.request(t, "PUT "+path+"/json/new?about:blank", header)
		if err := json.Unmarshal([]byte(body), &tab); err != nil {
			t.Fatalf("%s: %s %v", path, body, err)
		}
		rest := strings.TrimPrefix(tab.Socket, "ws://")
		if !strings.HasPrefix(tab.Socket, "ws://"+s.addr+alice+"/devtools/page/") || !strings.HasSuffix(tab.Frontend, "inspector.html?ws="+strings.Replace(rest, alice, "/client-alice", 1)) {
			t.Errorf("%q: %+v", path, tab)
		}
		if _, body := s.request(t, "GET "+path+"/json/list", header); !strings.Contains(body, tab.Socket) {
			t.Errorf("%q is not in the list: %s", tab.Socket, body)
		}
		proxytest.Dial(t, tab.Socket).Call("", "Runtime.enable", nil)
	}
}

// cdp-use, for one, is given ws://cdpmux:TOKEN@host/ and sends Basic with the handshake.
func TestTokenInTheUserPartOfAnAddress(t *testing.T) {
	s := startGuarded(t, true, nil)
	u := url.URL{Scheme: "ws", User: url.UserPassword("cdpmux", testToken), Host: s.addr, Path: "/client-py"}
	password, _ := u.User.Password()
	if status, body := s.request(t, "GET "+u.Path, upgradeHeaders, basicHeader(u.User.Username(), password)); status != 101 {
		t.Errorf("%d %q", status, body)
	}
	u.User = url.UserPassword("cdpmux", testToken+"x")
	if status, _ := s.request(t, "GET "+u.Path, upgradeHeaders, basicHeader("cdpmux", testToken+"x")); status != 401 {
		t.Errorf("with a wrong token: %d", status)
	}
}

// Guessing is slowed down; who has the right one does not notice.
func TestGuessingIsSlowedDown(t *testing.T) {
	var log strings.Builder
	s := startGuarded(t, true, func(s *testServer) { s.log = zerolog.New(&log) })
	counts := map[int]int{}
	for i := range 60 {
		headers, path := []string{fmt.Sprintf("%swrong-%d", bearer, i)}, "/client-alice"
		if i%2 == 0 {
			headers, path = nil, fmt.Sprintf("/t/wrong-%d/client-alice", i)
		}
		status, body := s.request(t, "GET "+path, headers...)
		counts[status]++
		if status == 429 && !strings.Contains(body, `"failure_kind":"unauthenticated"`) {
			t.Fatalf("429 says %q", body)
		}
	}
	if counts[401] < 20 || counts[429] < 20 || counts[401]+counts[429] != 60 {
		t.Errorf("answers: %v", counts)
	}
	for _, right := range [][]string{{"GET /client-alice/json/list", bearer + testToken}, {"GET " + testKeys.Path("alice", nil) + "/json/list"}} {
		if status, body := s.request(t, right[0], right[1:]...); status != 200 {
			t.Errorf("%s: %d %q", right[0], status, body)
		}
	}
	if status, _ := s.request(t, "GET /client-alice"); status != 401 {
		t.Errorf("no credential at all: %d", status)
	}
	text := log.String()
	if !strings.Contains(text, "127.0.0.1") || strings.Contains(text, "wrong-") || strings.Count(text, "\n") > 45 {
		t.Errorf("log:\n%s", text)
	}
}

// No answer repeats what opened the door.
func TestErrorsDoNotRepeatACredential(t *testing.T) {
	s := startGuarded(t, true, nil)
	alice := testKeys.Path("alice", nil)
	key := strings.Split(alice, "/")[2]
	for _, line := range []string{
		"GET " + alice + "/jsonfoo", "GET " + alice + "/jsonfoo?token=" + testToken, "GET " + alice + "/json/nothing", "GET " + alice + "/json/close/X",
		"GET " + alice, "POST " + alice + "/json/new", "GET " + alice + "/v1/x", "GET " + alice + "/devtools/page/X",
		"GET /t/" + key + "/client-bob", "GET /t/" + key + "/client-a.b", "POST /v1/nothing?token=" + testToken,
	} {
		for _, headers := range [][]string{nil, {upgradeHeaders}, {"Connection: Upgrade", "Upgrade: websocket"}} {
			_, body := s.request(t, line, headers...)
			if strings.Contains(body, key) || strings.Contains(body, testToken) {
				t.Errorf("%s: %q", line, body)
			}
		}
	}
}

// Behind a proxy that the operator does not know of, all seem to come from this
// machine: what one of them has sent on needs a credential, and is told
// addresses that have one.
func TestWhatAnotherProxySentOnNeedsACredential(t *testing.T) {
	s := startGuarded(t, false, func(s *testServer) { s.cfg.Auth.Forwarded = true })
	for _, header := range []string{
		"Forwarded: for=192.0.2.1", "Via: 1.1 edge", "x-forwarded-for: 127.0.0.1", "X-Forwarded-Host: localhost", "X-FORWARDED-PROTO: http", "X-Real-IP:",
	} {
		for _, d := range doors {
			headers := []string{header}
			if d.upgrade {
				headers = append(headers, upgradeHeaders)
			}
			if status, body := s.request(t, d.line, headers...); status != 401 || !strings.Contains(body, `"unauthenticated"`) || !strings.Contains(body, "--trusted-proxy and --public-url") {
				t.Errorf("%s with %s: %d %q", d.line, header, status, body)
			}
		}
		for _, right := range []string{bearer + testToken, basicHeader("x", testAdmin)} {
			if status, body := s.request(t, "GET /client-a/json/version", header, right); status != 200 || !strings.Contains(body, s.addr+testKeys.Path("a", nil)+`"`) {
				t.Errorf("%s with %.20s…: %d %q", header, right, status, body)
			}
		}
		if status, body := s.request(t, "GET /json/version", header, bearer+testToken); status != 200 || !strings.Contains(body, s.addr+"/t/") {
			t.Errorf("%s at the root: %d %q", header, status, body)
		}
		if status, _ := s.request(t, "GET "+testKeys.Path("a", nil)+"/json/list", header); status != 200 {
			t.Errorf("%s with the capability: %d", header, status)
		}
		if status, _ := s.request(t, "GET /healthz", header); status != 200 {
			t.Errorf("/healthz with %s: %d", header, status)
		}
	}
	if status, body := s.request(t, "GET /client-a/json/version"); status != 200 || strings.Contains(body, "/t/") {
		t.Errorf("what nobody sent on: %d %q", status, body)
	}
}

func TestForwardedHeaders(t *testing.T) {
	forwarded := []string{"X-Forwarded-Proto: https", "X-Forwarded-Host: cdp.example.com", "X-Forwarded-For: 192.0.2.1"}
	socket := func(s *testServer, headers ...string) string {
		t.Helper()
		status, body := s.request(t, "GET /client-a/json/version", headers...)
		var version struct {
			Socket string `json:"webSocketDebuggerUrl"`
		}
		if err := json.Unmarshal([]byte(body), &version); err != nil {
			return fmt.Sprint(status)
		}
		return version.Socket
	}
	trusted := startGuarded(t, false, func(s *testServer) {
		s.cfg.TrustedProxies = access.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
		s.cfg.AllowHosts = []string{"cdp.example.com"}
	})
	if got, want := socket(trusted, forwarded...), "wss://cdp.example.com/client-a"; got != want {
		t.Errorf("behind a trusted proxy: %s, want %s", got, want)
	}
	if got := socket(trusted, "X-Forwarded-Host: evil.example"); got != "500" {
		t.Errorf("a forwarded name that is not allowed: %s", got)
	}
	if status, _ := trusted.raw(t, "GET /client-a/json/list HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n\r\n"); status != 500 {
		t.Errorf("a name that is not allowed, forwarded as another: %d", status)
	}
	if _, body := trusted.request(t, "PUT /client-a/json/new?about:blank", forwarded...); !strings.Contains(body, "inspector.html?wss=cdp.example.com/client-a/devtools/page/") {
		t.Errorf("tab: %s", body)
	}
	stranger := startGuarded(t, false, func(s *testServer) { s.cfg.AllowHosts = []string{"cdp.example.com"} })
	if got, want := socket(stranger, forwarded...), "ws://"+stranger.addr+"/client-a"; got != want {
		t.Errorf("from a stranger: %s, want %s", got, want)
	}
	public := startGuarded(t, true, func(s *testServer) {
		s.cfg.PublicURL = &url.URL{Scheme: "https", Host: "cdp.example.com:8443", Path: "/shops/one/"}
	})
	path := testKeys.Path("a", nil)
	status, body := public.raw(t, "GET "+path+"/json/version HTTP/1.1\r\nHost: cdp.example.com:8443\r\n\r\n")
	if !strings.Contains(body, `"wss://cdp.example.com:8443/shops/one`+path+`"`) {
		t.Errorf("with a public URL: %d %s", status, body)
	}
	if status, _ := public.raw(t, "GET /healthz HTTP/1.1\r\nHost: other.example.com\r\n\r\n"); status != 500 {
		t.Errorf("a name beside the public one: %d", status)
	}
}
