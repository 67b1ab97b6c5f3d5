package wrapper

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// machine stands in for a store's proxy and for the API that starts it.
type machine struct {
	*httptest.Server
	mu      sync.Mutex
	up      bool
	answer  http.HandlerFunc // of the start API
	version string           // of the proxy
	guard   func(*http.Request) int
	starts  []string // Authorization of each start
}

const ours = "{\n   \"Browser\": \"Chrome/1\",\n   \"Cdpmux-Store\": \"shop/id-1\"\n}\n"

func startMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{version: ours}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *machine) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.URL.Path == "/start" && r.Method == http.MethodPost:
		m.starts = append(m.starts, r.Header.Get("Authorization"))
		m.answer(w, r)
	case m.guard != nil && m.guard(r) != 200:
		w.WriteHeader(m.guard(r))
	case strings.HasSuffix(r.URL.Path, "/json/version") && m.up:
		_, _ = io.WriteString(w, m.version)
	default:
		http.Error(w, "browser stopped", http.StatusServiceUnavailable)
	}
}

// set changes what the machine does.
func (m *machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// post is a script that has the browser started by the API.
func (m *machine) post(t *testing.T) *post {
	t.Helper()
	return newPost(t, func(s *Script) {
		s.Addr = strings.TrimPrefix(m.URL, "http://")
		s.StartURL, s.TokenFile = m.URL+"/start", filepath.Join(s.Home, "token")
		s.startLimit, s.polls = 5*time.Second, 2*time.Second
		if err := os.WriteFile(s.TokenFile, []byte("t0ken.-_~+/=\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStartAPI(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, row := range map[string]struct {
		up      bool
		version string
		answer  http.HandlerFunc
		starts  int
		code    int
		stderr  string // $ is the proxy's address
	}{
		"up already":      {up: true},
		"stopped":         {answer: nil, starts: 1}, // nil: it starts
		"500":             {answer: status(500, "1\n2\n3\n4\n5\n6\n"), starts: 1, code: 1, stderr: "ERROR: browser start API failed (HTTP 500)\n1\n2\n3\n4\n5\n"},
		"503 busy":        {answer: status(503, `{"error":"busy"}`), starts: 1, code: 1, stderr: "ERROR: browser start API failed (HTTP 503)\n{\"error\":\"busy\"}\n"},
		"control bytes":   {answer: status(500, "a\x1b[31mb\x07\u009b\r\n\x00店"), starts: 1, code: 1, stderr: "ERROR: browser start API failed (HTTP 500)\na[31mb\n店\n"},
		"redirect":        {answer: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/json/version", http.StatusFound) }, starts: 1, code: 1, stderr: "ERROR: browser start API failed (HTTP 302)\n"},
		"hanging":         {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, starts: 1, code: 1, stderr: "ERROR: browser start API failed (HTTP 000)\n"},
		"starts nothing":  {answer: status(200, "ok"), starts: 1, code: 1, stderr: "ERROR: CDP proxy at http://$ not ready after auto-start\n"},
		"another store":   {up: true, version: `{"Cdpmux-Store":"mall/id-2"}`, code: 1, stderr: "ERROR: http://$ is the proxy of mall/id-2, not the proxy of shop/id-1\n"},
		"slug anew":       {up: true, version: `{"Cdpmux-Store":"shop/id-2"}`, code: 1, stderr: "ERROR: http://$ is the proxy of shop/id-2, not the proxy of shop/id-1\n"},
		"longer id":       {up: true, version: `{"Cdpmux-Store":"shop/id-11"}`, code: 1, stderr: "ERROR: http://$ is the proxy of shop/id-11, not the proxy of shop/id-1\n"},
		"a bare Chrome":   {up: true, version: `{"Browser":"Chrome/1"}`, code: 1, stderr: "ERROR: http://$ is no cdpmux, not the proxy of shop/id-1\n"},
		"name with codes": {up: true, version: "{\"Cdpmux-Store\":\"\x1b[31m\"}", code: 1, stderr: "ERROR: http://$ is no cdpmux, not the proxy of shop/id-1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startMachine(t)
			p := m.post(t)
			m.set(func() {
				m.up, m.answer = row.up, row.answer
				if row.version != "" {
					m.version = row.version
				}
				if row.answer == nil {
					m.answer = func(w http.ResponseWriter, _ *http.Request) { m.up = true }
				}
			})
			got := p.call(t)
			// curl's own words on what went wrong come before.
			if i := strings.Index(got.stderr, "ERROR"); i > 0 && strings.HasPrefix(got.stderr, "curl: ") {
				got.stderr = got.stderr[i:]
			}
			want := strings.ReplaceAll(row.stderr, "$", p.script.Addr)
			if got.code != row.code || got.stderr != want || got.took > 25*time.Second {
				t.Errorf("want exit %d with %q within 25 s, got %v", row.code, want, got)
			}
			if ran := p.note(t, "calls") != ""; ran != (row.code == 0) {
				t.Errorf("browser-use ran: %v", ran)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			mustEqual(t, "starts", strings.Repeat("Bearer t0ken.-_~+/= ", row.starts), join(m.starts))
		})
	}
}

func join(list []string) (all string) {
	for _, each := range list {
		all += each + " "
	}
	return all
}

// The token never stands on a command line, and only its owner may read it.
func TestToken(t *testing.T) {
	m := startMachine(t)
	m.set(func() { m.answer = func(http.ResponseWriter, *http.Request) { m.up = true } })
	p := m.post(t)
	// A curl that shows how it is called, and calls the real one.
	shim := fmt.Sprintf("#!%s\nprintf '%%s ' \"$@\" >>'%s/curls'\nPATH=${PATH#*:} exec curl \"$@\"\n", which(t, "bash"), p.dir)
	if err := replace(filepath.Join(p.dir, "path", "curl"), []byte(shim), 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "PATH="+filepath.Join(p.dir, "path")+":"+os.Getenv("PATH"))
	if got := p.call(t); got.code != 0 {
		t.Fatal(got)
	}
	if curls := p.note(t, "curls"); !strings.Contains(curls, "/start") || strings.Contains(curls, "t0ken") {
		t.Errorf("curl was called with %s", curls)
	}

	m.set(func() { m.up = false })
	for why, spoil := range map[string]func() error{
		"closed to others": func() error { return os.Chmod(p.script.TokenFile, 0o640) },
		"no token": func() error {
			return os.WriteFile(p.script.TokenFile, []byte("a\"\nurl = http://elsewhere"), 0o600)
		},
		"is empty":      func() error { return os.WriteFile(p.script.TokenFile, nil, 0o600) },
		"must be there": func() error { return os.Remove(p.script.TokenFile) },
	} {
		if err := os.WriteFile(p.script.TokenFile, []byte("t0ken"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p.script.TokenFile, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		got := p.call(t)
		if got.code != 1 || !strings.HasPrefix(got.stderr, "ERROR: token file "+p.script.TokenFile) || !strings.Contains(got.stderr, why) {
			t.Errorf("want exit 1 with %q, got %v", why, got)
		}
	}
	m.set(func() { mustEqual(t, "starts", 1, len(m.starts)) })
}

// `cdpmux ensure` decides; its own words come first.
func TestEnsure(t *testing.T) {
	t.Parallel()
	ready := "echo cdpmux shop ready http://127.0.0.1:9400 connect 'ws://127.0.0.1:9400/client-<task_id>'"
	const asked = "echo wss://elsewhere:9999/t/c4p/client-x"
	for name, row := range map[string]struct {
		ensure string
		url    string // what `cdpmux url` does
		code   int
		stderr string
		ws     string // the address that browser-use gets, if it was asked for
	}{
		"ready":      {ensure: ready},
		"silent":     {ensure: "true"},
		"moved":      {ensure: strings.ReplaceAll(ready, "9400", "9999"), url: asked, ws: asked},
		"guarded":    {ensure: strings.ReplaceAll(ready, "/client-", "/t/<capability>/client-"), url: asked, ws: asked},
		"TLS":        {ensure: strings.NewReplacer("http:", "https:", "ws:", "wss:").Replace(ready), url: asked, ws: asked},
		"just gone":  {ensure: strings.ReplaceAll(ready, "9400", "9999"), url: "echo 'cdpmux: not served' >&2; exit 1", code: 1, stderr: "cdpmux: not served\nERROR: CDP proxy at http://127.0.0.1:9400 not ready after auto-start\n"},
		"fails":      {ensure: "echo 'cdpmux: no browser' >&2; exit 1", code: 1, stderr: "cdpmux: no browser\nERROR: CDP proxy at http://127.0.0.1:9400 not ready after auto-start\n"},
		"busy":       {ensure: "exit 75", code: 1, stderr: "ERROR: CDP proxy at http://127.0.0.1:9400 not ready after auto-start\n"},
		"eats stdin": {ensure: "cat; " + ready},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, nil)
			p.env = append(p.env, "STUB_ENSURE="+row.ensure, "STUB_URL="+row.url, "CDPMUX_TASK_ID=1a2b3c4d")
			cmd := p.command(t)
			cmd.Stdin = strings.NewReader("script")
			if got := finish(t, cmd); got.code != row.code || got.stderr != row.stderr {
				t.Errorf("want exit %d with %q, got %v", row.code, row.stderr, got)
			}
			want := ""
			if row.code == 0 {
				want = "script"
			}
			mustEqual(t, "stdin of browser-use", want, p.note(t, "stdin"))
			if row.code != 0 {
				return
			}
			ws, url := "ws://127.0.0.1:9400/client-1a2b3c4d", ""
			if row.ws != "" {
				ws = strings.TrimPrefix(row.ws, "echo ")
				url = strings.Join([]string{"url", "--store", "shop", "--id", "id-1", "--home", p.script.Home, "--client", "1a2b3c4d", ""}, "\x00")
			}
			mustEqual(t, "address of the client", ws, p.toolEnv(t)["BU_CDP_WS"])
			mustEqual(t, "call for the address", url, p.note(t, "url"))
		})
	}
}

// A proxy that needs a credential is asked with the client's own.
func TestStartAPIOfAGuardedProxy(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]int{"no credential": 401, "no TLS": 400} {
		m := startMachine(t)
		p := m.post(t)
		const path = "/t/c4p/client-1a2b3c4d"
		m.set(func() {
			m.guard = func(r *http.Request) int {
				if r.URL.Path == path+"/json/version" {
					return 200
				}
				return refusal
			}
			m.answer = func(http.ResponseWriter, *http.Request) { m.up = true }
		})
		ws := strings.Replace(m.URL, "http", "ws", 1) + path
		p.env = append(p.env, "STUB_URL=echo "+ws, "CDPMUX_TASK_ID=1a2b3c4d")
		if got := p.call(t); got.code != 0 {
			t.Errorf("%s: %v", name, got)
		}
		mustEqual(t, name+": address of the client", ws, p.toolEnv(t)["BU_CDP_WS"])
		m.set(func() { mustEqual(t, name+": starts", 1, len(m.starts)) })
		p.env = append(p.env, "STUB_URL=exit 1")
		if got := p.call(t); got.code != 1 || !strings.Contains(got.stderr, "not ready after auto-start") {
			t.Errorf("%s, and no address: %v", name, got)
		}
	}
}

// What is missing is named.
func TestMissingTools(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() // nobody answers there
	p := newPost(t, func(s *Script) { s.Addr, s.StartURL = listener.Addr().String(), "http://127.0.0.1:1/start" })
	for _, missing := range []string{"curl", "perl"} {
		tools := t.TempDir()
		for _, name := range []string{"bash", "env", "od", "mkdir", "sleep", "tr", "cat", "perl", "curl"} {
			if name != missing {
				if err := os.Symlink(which(t, name), filepath.Join(tools, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.env = []string{"STUB_DIR=" + p.dir, "PATH=" + tools}
		got := p.call(t)
		if got.code != 1 || !strings.HasPrefix(got.stderr, "ERROR: "+missing+" is missing") {
			t.Errorf("without %s: %v", missing, got)
		}
	}
	p.env = nil
	if got := p.call(t); got.code != 1 || !strings.Contains(got.stderr, "ERROR: browser start API failed (HTTP 000)\n") {
		t.Errorf("with nobody at the start URL: %v", got)
	}
	p.script.StartURL, p.script.Cdpmux = "", "/nowhere/cdpmux"
	p.write(t)
	if got := p.call(t); got.code != 1 || !strings.HasPrefix(got.stderr, "ERROR: /nowhere/cdpmux is gone\n") {
		t.Errorf("without cdpmux: %v", got)
	}
}
