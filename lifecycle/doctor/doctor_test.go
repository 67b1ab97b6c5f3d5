package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/lifecycle/ziniao"
)

func want(t *testing.T, f Finding, level Level, text string) {
	t.Helper()
	if f.Level != level || !strings.Contains(f.Text, text) {
		t.Errorf("%s: %s: %s; want %s and %q", f.Check, f.Level, f.Text, level, text)
	}
	if f.Level != OK && f.Next == "" {
		t.Errorf("%s: %s without a next step", f.Check, f.Text)
	}
}

func TestSandbox(t *testing.T) {
	denied := errors.New("operation not permitted")
	for name, tc := range map[string]struct {
		facts sandboxed
		level Level
	}{
		"namespaces":                  {sandboxed{linux: true, binary: "b"}, OK},
		"root":                        {sandboxed{linux: true, binary: "b", root: true}, Fail},
		"off, as root":                {sandboxed{linux: true, binary: "b", root: true, off: true}, Warn},
		"no namespaces":               {sandboxed{linux: true, binary: "b", namespace: denied}, Fail},
		"no namespaces, but a helper": {sandboxed{linux: true, binary: "b", namespace: denied, helper: true}, OK},
		"a helper that may not":       {sandboxed{linux: true, binary: "b", namespace: denied, helper: true, noNew: true}, Fail},
		"AppArmor":                    {sandboxed{linux: true, binary: "b", apparmor: true}, Warn},
		"no browser":                  {sandboxed{linux: true}, Warn},
		"root on a Mac":               {sandboxed{root: true, binary: "b"}, OK},
	} {
		t.Run(name, func(t *testing.T) { want(t, sandbox(tc.facts), tc.level, "") })
	}
}

func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		found Finding
		level Level
	}{
		"disk full":      {room("/d", 100*mib), Fail},
		"disk low":       {room("/d", gib), Warn},
		"disk":           {room("/d", 10*gib), OK},
		"files, none":    {fileLimit(512), Fail},
		"files, few":     {fileLimit(1024), Warn},
		"files":          {fileLimit(65536), OK},
		"any file":       {fileLimit(math.MaxUint64), OK},
		"shm of Docker":  {shmRoom(64 * mib), Warn},
		"shm":            {shmRoom(gib), OK},
		"memory, little": {memoryLimit(512*mib, "f"), Warn},
		"memory":         {memoryLimit(4*gib, "f"), OK},
		"no limit":       {memoryLimit(math.MaxUint64, ""), OK},
		"tasks, few":     {taskLimit(100, "f"), Warn},
		"tasks":          {taskLimit(4096, "f"), OK},
		"inotify, few":   {watchLimit(16, 65536), Warn},
		"inotify":        {watchLimit(128, 65536), OK},
	} {
		t.Run(name, func(t *testing.T) { want(t, tc.found, tc.level, "") })
	}
}

func TestProxies(t *testing.T) {
	for name, tc := range map[string]struct {
		env   map[string]string
		level Level
	}{
		"none":          {nil, OK},
		"one":           {map[string]string{"HTTP_PROXY": "http://p"}, Warn},
		"lower case":    {map[string]string{"https_proxy": "http://p"}, Warn},
		"loopback, too": {map[string]string{"ALL_PROXY": "http://p", "NO_PROXY": "x, localhost,127.0.0.1"}, OK},
		"half of it":    {map[string]string{"HTTP_PROXY": "http://p", "NO_PROXY": "localhost"}, Warn},
		"all":           {map[string]string{"HTTP_PROXY": "http://p", "no_proxy": "*"}, OK},
	} {
		t.Run(name, func(t *testing.T) {
			f := proxiesOf(func(name string) string { return tc.env[name] })
			want(t, f, tc.level, "")
			if strings.Contains(f.Text, "http://p") {
				t.Error("it shows the address, which may hold a password")
			}
		})
	}
}

func TestClock(t *testing.T) {
	dir := t.TempDir()
	want(t, clock(time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), dir), Fail, "1970")
	want(t, clock(time.Now(), dir), OK, "")
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "state", "a.json")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(24 * time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	want(t, clock(time.Now(), dir), Warn, path)
}

func look(t *testing.T, dir string) Plan {
	t.Helper()
	h, err := lifecycle.LookHome(dir)
	return Plan{Home: h, HomeErr: err, Store: "shop", Browser: "chrome"}
}

func TestHome(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	p := look(t, dir)
	want(t, home(p.Home, p.HomeErr), OK, "is made")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the look made it: %v", err)
	}
	h, err := lifecycle.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.MakeAdminToken("shop"); err != nil {
		t.Fatal(err)
	}
	p = look(t, dir)
	want(t, home(p.Home, p.HomeErr), OK, "alone")
	token := filepath.Join(dir, "run", "shop.admin")
	for _, spoil := range []struct {
		path      string
		bad, good fs.FileMode
		text      string
	}{
		{token, 0o644, 0o600, "read by others"},
		{filepath.Join(dir, "run"), 0o777, 0o700, "written by others"},
		{dir, 0o777, 0o700, "written by others"},
	} {
		if err := os.Chmod(spoil.path, spoil.bad); err != nil {
			t.Fatal(err)
		}
		p = look(t, dir)
		want(t, home(p.Home, p.HomeErr), Fail, spoil.text)
		if err := os.Chmod(spoil.path, spoil.good); err != nil {
			t.Fatal(err)
		}
	}
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	p = look(t, link)
	want(t, home(p.Home, p.HomeErr), Fail, "symbolic link")
}

func TestStoreAndPort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	h, err := lifecycle.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.OpenStore("shop", "")
	if err != nil {
		t.Fatal(err)
	}
	want(t, port(t.Context(), look(t, dir)), OK, "first start")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := s.Remember(l.Addr().(*net.TCPAddr)); err != nil {
		t.Fatal(err)
	}
	want(t, store(look(t, dir)), OK, "shop")
	want(t, port(t.Context(), look(t, dir)), Fail, fmt.Sprintf("in use by another program, pid %d", os.Getpid()))
	lock, err := h.Lock("shop")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	want(t, port(t.Context(), look(t, dir)), OK, fmt.Sprintf("served by pid %d", os.Getpid()))
	l.Close()
	want(t, port(t.Context(), look(t, dir)), Fail, "nothing listens")
	if err := s.Update(func(s *lifecycle.Store) { s.Disabled = true }); err != nil {
		t.Fatal(err)
	}
	want(t, store(look(t, dir)), Warn, "disabled")
	if err := os.WriteFile(filepath.Join(dir, "stores", "shop.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, store(look(t, dir)), Fail, "shop.json")
}

func TestFreePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	p := look(t, filepath.Join(t.TempDir(), "none"))
	p.Listen = addr
	want(t, port(t.Context(), p), OK, addr+" is free")
}

func TestProfile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	p := look(t, dir)
	want(t, profile(p), OK, "first start")
	own := filepath.Join(t.TempDir(), "profile")
	p.Chrome.Profile = own
	want(t, profile(p), OK, "is made at the first start")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, profile(p), OK, "is free")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(own, lifecycle.Singletons[0])
	for owner, level := range map[string]Level{host + "-4194304": OK, "elsewhere-1": Fail, "nonsense": Warn} {
		_ = os.Remove(lock)
		if err := os.Symlink(owner, lock); err != nil {
			t.Fatal(err)
		}
		want(t, profile(p), level, "")
	}
	file := own + "-file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Chrome.Profile = file + "/below"
	want(t, profile(p), Fail, "not a directory")
}

func TestBrowser(t *testing.T) {
	dir := t.TempDir()
	program := func(text string) string {
		path := filepath.Join(dir, "chrome-"+fmt.Sprint(len(text)))
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for text, level := range map[string]Level{
		"echo Chromium 1.2.3": OK,
		"true":                Warn,
		"echo libnss3.so is not there >&2; exit 127": Fail,
	} {
		f, _ := installed(t.Context(), program(text))
		want(t, f, level, "")
		if level == Fail && !strings.Contains(f.Text, "libnss3.so") {
			t.Errorf("it does not tell what the program said: %s", f.Text)
		}
	}
	f, binary := installed(t.Context(), filepath.Join(dir, "none"))
	want(t, f, Fail, "is not a program")
	if binary != "" {
		t.Errorf("binary %q", binary)
	}
	if found, err := chrome.Find(""); err == nil {
		f, _ := installed(t.Context(), "")
		want(t, f, OK, found)
	}
}

func TestAttach(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"webSocketDebuggerUrl":"ws://x/devtools/browser/1"}`)
	}))
	want(t, attached(t.Context(), web.URL), OK, web.URL)
	secret := strings.Replace(web.URL, "http://", "ws://u:s3cr3t@", 1) + "/devtools/browser/1?token=s3cr3t"
	if f := attached(t.Context(), secret); f.Level != OK || strings.Contains(f.Text, "s3cr3t") {
		t.Errorf("%+v", f)
	}
	web.Close()
	want(t, attached(t.Context(), web.URL), Fail, "no browser at")
	want(t, attached(t.Context(), ""), Fail, "")
}

func TestZiniao(t *testing.T) {
	answer := `{"statusCode":"0","browserList":[]}`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	cfg := ziniao.Config{Addr: web.Listener.Addr().String(), Profile: "1", Account: ziniao.Account{Company: "c", Username: "u", Password: "p"}}
	want(t, ziniaoState(t.Context(), cfg), OK, "ready")
	answer = `{"statusCode":"-10003","err":"no WebDriver permission"}`
	want(t, ziniaoState(t.Context(), cfg), Fail, "no WebDriver permission")
	web.Close()
	want(t, ziniaoState(t.Context(), cfg), Fail, "no Ziniao client at")
	want(t, ziniaoState(t.Context(), ziniao.Config{}), Fail, "")
}

// TestExamine looks at this very machine: the lines have a text and a step, and
// nothing is made.
func TestExamine(t *testing.T) {
	p := look(t, filepath.Join(t.TempDir(), "none"))
	p.Chrome.Headless = true
	seen := map[string]bool{}
	all := Examine(t.Context(), p)
	for _, f := range all {
		want(t, f, f.Level, "")
		if f.Text == "" || seen[f.Check] {
			t.Errorf("line %+v", f)
		}
		seen[f.Check] = true
	}
	for _, check := range []string{"browser", "sandbox", "display", "home", "store", "port", "profile", "disk", "files", "shm", "memory", "tasks", "cgroup", "proxies", "clock"} {
		if !seen[check] {
			t.Errorf("no line of %s", check)
		}
	}
	if _, err := os.Stat(p.Home.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the look made the state directory: %v", err)
	}
	if Worst(nil) != OK || Worst([]Finding{{Level: Warn}, {Level: OK}}) != Warn || Worst([]Finding{{Level: Fail}, {Level: Warn}}) != Fail {
		t.Error("the worst level is wrong")
	}
}
