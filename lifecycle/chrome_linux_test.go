package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestStartIsOneBrowser(t *testing.T) {
	c := newChrome(t, testConfig(t))
	if err := c.Probe(t.Context()); err == nil {
		t.Error("probe of a browser that was never started: no error")
	}
	var wg sync.WaitGroup
	got := make([]string, 3)
	for i := range got {
		wg.Go(func() { got[i] = start(t, c) })
	}
	wg.Wait()
	if got[0] != got[1] || got[1] != got[2] {
		t.Errorf("addresses differ: %q", got)
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Errorf("probe: %v", err)
	}

	tmpdir := c.run.tmpdir
	if len(tmpdir) > maxTmpdir {
		t.Errorf("TMPDIR %s has %d bytes", tmpdir, len(tmpdir))
	}
	want := Receipt{Method: MethodGraceful, RootExit: "exit 0", ExitType: "Normal", Verified: true}
	if r := c.Stop(t.Context()); r != want {
		t.Errorf("receipt %+v, want %+v", r, want)
	}
	for _, path := range []string{tmpdir, filepath.Join(c.cfg.Profile, activePort), filepath.Join(c.cfg.Profile, "SingletonLock")} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if r := c.Stop(t.Context()); r.Method != MethodNone || !r.Verified {
		t.Errorf("second stop: %+v", r)
	}
}

func TestKilledChromeIsReplaced(t *testing.T) {
	c := newChrome(t, testConfig(t))
	first := start(t, c)
	root := c.run.root
	if err := root.kill(); err != nil {
		t.Fatal(err)
	}
	// At once: the socket is broken, the process perhaps not yet seen to end.
	second := start(t, c)
	if first == second || c.run.root == root {
		t.Errorf("second start: %s on pid %d, the killed one was %s on pid %d", second, c.run.root.pid, first, root.pid)
	}
}

// Stopped children outlive even a clean exit of their root.
func TestStopKillsSurvivors(t *testing.T) {
	c := newChrome(t, testConfig(t))
	start(t, c)
	var all []procID
	stopped := 0
	eventually(t, "a renderer", func() bool {
		all, _ = c.run.processes()
		for _, p := range all {
			if strings.Contains(string(procFile(p.pid, "cmdline")), "--type=renderer") && syscall.Kill(p.pid, syscall.SIGSTOP) == nil {
				stopped++
			}
		}
		return stopped > 0
	})
	r := c.Stop(t.Context())
	// In the sandbox's PID namespace, the kernel has killed them by then.
	tooFew := c.cfg.NoSandbox && r.Killed < stopped
	if r.Method != MethodGraceful || tooFew || r.Survivors != 0 || !r.Verified || r.DataRisk {
		t.Errorf("%d renderers stopped, receipt %+v", stopped, r)
	}
	for _, p := range all {
		if st, err := readStat(p.pid); err == nil && st.ticks == p.ticks && st.state != 'Z' {
			t.Errorf("pid %d lives", p.pid)
		}
	}
}

func TestStopForcesHungChrome(t *testing.T) {
	c := newChrome(t, testConfig(t))
	c.waits.close, c.waits.interrupt = 300*time.Millisecond, 300*time.Millisecond
	start(t, c)
	if err := syscall.Kill(c.run.root.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r := c.Stop(t.Context())
	if r.Method != MethodForced || r.RootExit != "signal: killed" || r.Killed < 4 || !r.Verified || !r.DataRisk {
		t.Errorf("receipt %+v", r)
	}
}

// Somebody's SIGTERM ends Chrome with 0, and without its last cookies.
func TestTerminatedChromeIsADataRisk(t *testing.T) {
	c := newChrome(t, testConfig(t))
	start(t, c)
	if err := syscall.Kill(c.run.root.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-c.run.exited
	if r := c.Stop(t.Context()); r.RootExit != "exit 0" || !r.Verified || !r.DataRisk {
		t.Errorf("receipt %+v", r)
	}
}

// What started on the profile after our Chrome had died is not ours to kill.
func TestLaterChromeOnTheProfileIsSpared(t *testing.T) {
	cfg := testConfig(t)
	c := newChrome(t, cfg)
	start(t, c)
	dead := c.run
	if err := dead.root.kill(); err != nil {
		t.Fatal(err)
	}
	<-dead.exited
	eventually(t, "the end of the other processes", func() bool {
		time.Sleep(20 * time.Millisecond) // two ticks: start times are no finer
		users, err := usersOf(cfg.Profile)
		return err == nil && len(users) == 0
	})
	other := newChrome(t, cfg)
	start(t, other)

	if r := c.Stop(t.Context()); r.Killed != 0 || !r.DataRisk {
		t.Errorf("receipt %+v", r)
	}
	if err := other.Probe(t.Context()); err != nil {
		t.Errorf("the later Chrome: %v", err)
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	c := newChrome(t, testConfig(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Start(ctx)
		done <- err
	}()
	eventually(t, "a process", func() bool {
		users, err := usersOf(c.cfg.Profile)
		return err == nil && len(users) > 0
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v", err)
	}
	wantNoUsers(t, c.cfg.Profile)
}

// A Chrome that keeps its stderr to itself is found by the file it writes; one
// of an earlier Chrome is gone before it starts.
func TestAddressFromActivePort(t *testing.T) {
	cfg := testConfig(t)
	binary, err := findChrome("")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Path = script(t, fmt.Sprintf("test -e %q && exit 9; exec %q \"$@\" 2>/dev/null", filepath.Join(cfg.Profile, activePort), binary))
	if err := os.Mkdir(cfg.Profile, 0o700); err != nil {
		t.Fatal(err)
	}
	stale := []byte("1\n/devtools/browser/stale")
	if err := os.WriteFile(filepath.Join(cfg.Profile, activePort), stale, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newChrome(t, cfg)
	if ws := start(t, c); strings.Contains(ws, "stale") || prove(t.Context(), ws) != nil {
		t.Errorf("address %s", ws)
	}
}

// Chrome writes cookies to disk every 30 s; a stop right after a login must
// not lose it. Session cookies live on unless they are to be forgotten.
func TestCookiesOutliveStop(t *testing.T) {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	for _, forget := range []bool{false, true} {
		t.Run(fmt.Sprintf("forget=%v", forget), func(t *testing.T) {
			cfg := testConfig(t)
			cfg.ForgetSessionCookies = forget
			c := newChrome(t, cfg)
			for i := range 3 {
				name := fmt.Sprintf("c%d", i)
				ws := start(t, c)
				call(t, ws, "Storage.setCookies", fmt.Sprintf(
					`{"cookies":[{"name":"%s","value":"1","url":"%s","expires":%d},{"name":"s%s","value":"1","url":"%s"}]}`,
					name, site.URL, time.Now().Add(time.Hour).Unix(), name, site.URL))
				if r := c.Stop(t.Context()); r.Method != MethodGraceful || r.DataRisk {
					t.Fatalf("receipt %+v", r)
				}
				got := string(call(t, start(t, c), "Storage.getCookies", `{}`))
				if !strings.Contains(got, `"name":"`+name+`"`) {
					t.Errorf("run %d: the cookie is gone: %s", i, got)
				}
				if kept := strings.Contains(got, `"name":"s`+name+`"`); kept == forget {
					t.Errorf("run %d: session cookie kept: %v", i, kept)
				}
			}
		})
	}
}

func TestFailures(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(t *testing.T, cfg *ChromeConfig)
		kind   string // empty: it starts
	}{
		"root without --no-sandbox": {func(t *testing.T, cfg *ChromeConfig) {
			if os.Geteuid() != 0 {
				cfg.Path = script(t, "echo Running as root without --no-sandbox is not supported. >&2; exit 1")
			}
			cfg.NoSandbox = false
		}, LaunchSandbox},
		"no such binary": {func(t *testing.T, cfg *ChromeConfig) {
			cfg.Path = filepath.Join(t.TempDir(), "chrome")
		}, BrowserMissing},
		"not a program": {func(t *testing.T, cfg *ChromeConfig) {
			cfg.Path = filepath.Join(t.TempDir(), "chrome")
			write(t, cfg.Path, "no format that a kernel knows", 0o700)
		}, BrowserMissing},
		"profile is a file": {func(t *testing.T, cfg *ChromeConfig) {
			write(t, cfg.Profile, "", 0o600)
		}, ProfileInvalid},
		"profile cannot be made": {func(t *testing.T, cfg *ChromeConfig) {
			cfg.Profile = "/sys/cdpmux-profile" // root may not write there either
		}, ProfileDenied},
		"default profile": {func(t *testing.T, cfg *ChromeConfig) {
			t.Setenv("HOME", filepath.Dir(cfg.Profile))
			t.Setenv("XDG_CONFIG_HOME", "")
			cfg.Profile = filepath.Join(filepath.Dir(cfg.Profile), ".config", "chromium")
		}, ProfileInvalid},
		"no display": {func(t *testing.T, cfg *ChromeConfig) {
			t.Setenv("DISPLAY", "")
			t.Setenv("WAYLAND_DISPLAY", "")
			cfg.Headless = false
		}, NoDisplay},
		"long temporary directory": {func(t *testing.T, cfg *ChromeConfig) {
			cfg.Scratch = filepath.Join(t.TempDir(), strings.Repeat("x", maxTmpdir))
		}, TmpdirTooLong},
		"lock of another host": {func(t *testing.T, cfg *ChromeConfig) {
			lockProfile(t, cfg.Profile, "elsewhere-1")
		}, ProfileForeignHost},
		"lock of a dead process": {func(t *testing.T, cfg *ChromeConfig) {
			lockProfile(t, cfg.Profile, host+"-4194304") // above the largest pid
		}, ""},
		"lock of a stranger": {func(t *testing.T, cfg *ChromeConfig) {
			lockProfile(t, cfg.Profile, fmt.Sprintf("%s-%d", host, os.Getpid()))
		}, ""},
		"not in time": {func(t *testing.T, cfg *ChromeConfig) {
			cfg.Path = script(t, "echo is listening on 127.0.0.1:4711 >&2; exec sleep 60")
		}, LaunchTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			tc.change(t, &cfg)
			c := newChrome(t, cfg)
			limit := 30 * time.Second
			if tc.kind == LaunchTimeout {
				limit = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := c.Start(ctx)
			if tc.kind == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			f := wantFailure(t, err, tc.kind)
			if strings.Contains(f.Error(), ":4711") {
				t.Errorf("an address in %q", f)
			}
		})
	}
}

func TestProfileInUse(t *testing.T) {
	first := newChrome(t, testConfig(t))
	start(t, first)
	second := newChrome(t, first.cfg)
	begin := time.Now()
	_, err := second.Start(t.Context())
	f := wantFailure(t, err, ProfileInUse)
	if !strings.HasSuffix(f.Text, fmt.Sprint("pid ", first.run.root.pid)) || time.Since(begin) > 3*time.Second {
		t.Errorf("after %v: %s", time.Since(begin), f)
	}
	if err := first.Probe(t.Context()); err != nil {
		t.Errorf("the first Chrome: %v", err)
	}
}

// A Chrome that spells the profile otherwise is seen by Chrome only. What
// the refused one leaves behind must not be looked for in the first one's lock.
func TestProfileInUseByAnotherName(t *testing.T) {
	cfg := testConfig(t)
	plain := cfg
	binary, err := findChrome("")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Path = script(t, `for a; do case $a in --user-data-dir=*) a=$a/.;; esac; set -- "$@" "$a"; shift; done; exec `+binary+` "$@"`)
	first := newChrome(t, cfg)
	start(t, first)
	second := newChrome(t, plain)
	_, err = second.Start(t.Context())
	wantFailure(t, err, ProfileInUse)
	if _, err := os.Lstat(filepath.Join(cfg.Profile, "SingletonLock")); err != nil {
		t.Error(err)
	}
	if err := first.Probe(t.Context()); err != nil {
		t.Errorf("the first Chrome: %v", err)
	}
}

func TestChromeArgsRefused(t *testing.T) {
	for arg, refused := range map[string]bool{
		"--remote-debugging-port=9222":         true,
		"--remote-debugging-pipe":              true,
		"-remote-debugging-address=0.0.0.0":    true,
		"--user-data-dir=/x":                   true,
		"--headless":                           true,
		"--headless=old":                       true,
		"--no-sandbox":                         true,
		"--proxy-server=http://127.0.0.1:3128": false,
		"--lang=de":                            false,
	} {
		if _, err := NewChrome(ChromeConfig{Args: []string{arg}}); (err != nil) != refused {
			t.Errorf("%s: %v, want refused %v", arg, err, refused)
		}
	}
}

func TestAllowedEnv(t *testing.T) {
	got := allowedEnv([]string{
		"PATH=/bin", "HOME=/h", "LC_ALL=C", "FONTCONFIG_PATH=/f", "DISPLAY=:1",
		"CDPMUX_HOME=/x", "http_proxy=http://x", "AWS_SECRET_ACCESS_KEY=x", "TMPDIR=/t", "LD_PRELOAD=x",
	})
	want := "PATH=/bin HOME=/h LC_ALL=C FONTCONFIG_PATH=/f DISPLAY=:1"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPreferencesAreMerged(t *testing.T) {
	profile := t.TempDir()
	path := filepath.Join(profile, "Default", "Preferences")
	check := func(keep bool, want string) {
		t.Helper()
		if err := keepSessionCookies(profile, keep); err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(path)
		if string(b) != want {
			t.Errorf("Preferences %s, want %s", b, want)
		}
	}
	check(false, "")
	check(true, `{"session":{"restore_on_startup":1}}`)
	write(t, path, `{"a":{"b":1.50},"session":{"restore_on_startup":5,"x":[ ]}}`, 0o600)
	check(true, `{"a":{"b":1.50},"session":{"restore_on_startup":1,"x":[]}}`)
	check(false, `{"a":{"b":1.50},"session":{"x":[]}}`)
	write(t, path, `{broken`, 0o600)
	check(true, `{broken`)
}

func TestTitleNames(t *testing.T) {
	for cmdline, want := range map[string]bool{
		"/c/chromium --type=zygote --user-data-dir=/p --x\x00":    true,
		"/c/chromium --type=zygote --user-data-dir=/p\x00":        true,
		"/c/chromium --type=zygote --user-data-dir=/p2 --x\x00":   false,
		"/c/chromium --type=zygote --user-data-dir=/p 2 --x\x00":  false,
		"grep\x00--type=zygote --user-data-dir=/p\x00":            false,
		"grep --user-data-dir=/p\x00":                             false,
		"/c/chromium\x00--type=gpu\x00--user-data-dir=/p\x00":     false,
		"sh\x00-c\x00chromium --type=x --user-data-dir=/p -y\x00": false,
	} {
		if got := titleNames([]byte(cmdline), "/p"); got != want {
			t.Errorf("%q: %v, want %v", cmdline, got, want)
		}
	}
}

// call sends one browser-level command and returns its result.
func call(t *testing.T, ws, method, params string) json.RawMessage {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), ws, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	msg := fmt.Sprintf(`{"id":1,"method":%q,"params":%s}`, method, params)
	if err := conn.WriteMessage(websocket.TextMessage, []byte(msg)); err != nil {
		t.Fatal(err)
	}
	var reply struct{ Result, Error json.RawMessage }
	if err := conn.ReadJSON(&reply); err != nil || reply.Error != nil {
		t.Fatalf("%s: %s %v", method, reply.Error, err)
	}
	return reply.Result
}

// script returns the path of a program that a shell runs.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chrome.sh")
	write(t, path, "#!/bin/sh\n"+body+"\n", 0o700)
	return path
}

func lockProfile(t *testing.T, profile, owner string) {
	t.Helper()
	if err := os.Mkdir(profile, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(owner, filepath.Join(profile, "SingletonLock")); err != nil {
		t.Fatal(err)
	}
}
