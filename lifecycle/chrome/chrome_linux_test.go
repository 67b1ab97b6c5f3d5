package chrome

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
)

func TestCancelledStartLeavesNothing(t *testing.T) {
	c := newChrome(t, testConfig(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Start(ctx)
		done <- err
	}()
	eventually(t, "a process", func() bool {
		users, err := proc.UsersOf(c.cfg.Profile)
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
	binary, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Path = script(t, fmt.Sprintf("test -e %q && exit 9; exec %q \"$@\" 2>/dev/null", filepath.Join(cfg.Profile, keeper.ActivePort), binary))
	if err := os.Mkdir(cfg.Profile, 0o700); err != nil {
		t.Fatal(err)
	}
	stale := []byte("1\n/devtools/browser/stale")
	if err := os.WriteFile(filepath.Join(cfg.Profile, keeper.ActivePort), stale, 0o600); err != nil {
		t.Fatal(err)
	}
	c := newChrome(t, cfg)
	if ws := start(t, c); strings.Contains(ws, "stale") || keeper.Prove(t.Context(), ws) != nil {
		t.Errorf("address %s", ws)
	}
}

func TestFailures(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(t *testing.T, cfg *Config)
		kind   string // empty: it starts
	}{
		"root without --no-sandbox": {func(t *testing.T, cfg *Config) {
			if os.Geteuid() != 0 {
				cfg.Path = script(t, "echo Running as root without --no-sandbox is not supported. >&2; exit 1")
			}
			cfg.NoSandbox = false
		}, lifecycle.LaunchSandbox},
		"no such binary": {func(t *testing.T, cfg *Config) {
			cfg.Path = filepath.Join(t.TempDir(), "chrome")
		}, lifecycle.BrowserMissing},
		"not a program": {func(t *testing.T, cfg *Config) {
			cfg.Path = filepath.Join(t.TempDir(), "chrome")
			write(t, cfg.Path, "no format that a kernel knows", 0o700)
		}, lifecycle.BrowserMissing},
		"profile is a file": {func(t *testing.T, cfg *Config) {
			write(t, cfg.Profile, "", 0o600)
		}, lifecycle.ProfileInvalid},
		"profile cannot be made": {func(t *testing.T, cfg *Config) {
			cfg.Profile = "/sys/cdpmux-profile" // root may not write there either
		}, lifecycle.ProfileDenied},
		"default profile": {func(t *testing.T, cfg *Config) {
			t.Setenv("HOME", filepath.Dir(cfg.Profile))
			t.Setenv("XDG_CONFIG_HOME", "")
			cfg.Profile = filepath.Join(filepath.Dir(cfg.Profile), ".config", "chromium")
		}, lifecycle.ProfileInvalid},
		"no display": {func(t *testing.T, cfg *Config) {
			t.Setenv("DISPLAY", "")
			t.Setenv("WAYLAND_DISPLAY", "")
			cfg.Headless = false
		}, lifecycle.NoDisplay},
		"long temporary directory": {func(t *testing.T, cfg *Config) {
			cfg.Scratch = filepath.Join(t.TempDir(), strings.Repeat("x", maxTmpdir))
		}, lifecycle.TmpdirTooLong},
		"lock of another host": {func(t *testing.T, cfg *Config) {
			lockProfile(t, cfg.Profile, "elsewhere-1")
		}, lifecycle.ProfileForeignHost},
		"lock of a dead process": {func(t *testing.T, cfg *Config) {
			lockProfile(t, cfg.Profile, host+"-4194304") // above the largest pid
		}, ""},
		"lock of a stranger": {func(t *testing.T, cfg *Config) {
			lockProfile(t, cfg.Profile, fmt.Sprintf("%s-%d", host, os.Getpid()))
		}, ""},
		"port of the last Chrome taken by a stranger": {func(t *testing.T, cfg *Config) {
			stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the stranger is asked") }))
			t.Cleanup(stranger.Close)
			if err := os.Mkdir(cfg.Profile, 0o700); err != nil {
				t.Fatal(err)
			}
			_, port, _ := strings.Cut(stranger.Listener.Addr().String(), ":")
			write(t, filepath.Join(cfg.Profile, keeper.ActivePort), port+"\n/devtools/browser/1", 0o600)
		}, ""},
		"HTTP_PROXY set to a dead port": {func(t *testing.T, _ *Config) {
			for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"} {
				t.Setenv(name, "http://127.0.0.1:1")
			}
			t.Setenv("NO_PROXY", "none.test")
		}, ""},
		"default profile by Chrome's own word": {func(t *testing.T, cfg *Config) {
			cfg.Path = script(t, "echo 'DevTools remote debugging requires a non-default data directory. Specify this using --user-data-dir.' >&2; exec sleep 60")
		}, lifecycle.ProfileInvalid},
		"not in time": {func(t *testing.T, cfg *Config) {
			cfg.Path = script(t, "echo is listening on 127.0.0.1:4711 >&2; exec sleep 60")
		}, lifecycle.LaunchTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			good := testConfig(t)
			cfg := good
			tc.change(t, &cfg)
			c := newChrome(t, cfg)
			limit := 30 * time.Second
			if tc.kind == lifecycle.LaunchTimeout {
				limit = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := c.Start(ctx)
			if tc.kind == "" {
				if err != nil {
					t.Fatal(err)
				}
				if env := proc.Environ(record(t, c).Root.PID); bytes.Contains(bytes.ToUpper(env), []byte("_PROXY=")) {
					t.Errorf("a proxy in Chrome's environment: %q", env)
				}
				return
			}
			f := wantFailure(t, err, tc.kind)
			if strings.Contains(f.Error(), ":4711") {
				t.Errorf("an address in %q", f)
			}
			if tc.kind == lifecycle.LaunchTimeout && len(f.Lines) != 1 {
				t.Errorf("%q does not say what Chrome said", f)
			}
			if rec, err := keeper.ReadRecord(cfg.Record); rec != nil || err != nil {
				t.Errorf("left on record: %+v, %v", rec, err)
			}
			wantNoUsers(t, cfg.Profile)

			// Set right, it starts.
			if err := os.RemoveAll(good.Profile); err != nil {
				t.Fatal(err)
			}
			c.cfg.Path, c.cfg.Profile, c.cfg.Scratch = good.Path, good.Profile, good.Scratch
			c.cfg.Headless, c.cfg.NoSandbox = good.Headless, good.NoSandbox
			start(t, c)
		})
	}
}

func TestProfileInUse(t *testing.T) {
	first := newChrome(t, testConfig(t))
	start(t, first)
	other := first.cfg
	other.Record += "2" // not the store's own proxy: it does not know of the first
	second := newChrome(t, other)
	begin := time.Now()
	_, err := second.Start(t.Context())
	f := wantFailure(t, err, lifecycle.ProfileInUse)
	if !strings.HasSuffix(f.Text, fmt.Sprint("pid ", record(t, first).Root.PID)) || time.Since(begin) > 3*time.Second {
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
	plain.Record += "2"
	binary, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Path = script(t, `for a; do case $a in --user-data-dir=*) a=$a/.;; esac; set -- "$@" "$a"; shift; done; exec `+binary+` "$@"`)
	first := newChrome(t, cfg)
	start(t, first)
	second := newChrome(t, plain)
	_, err = second.Start(t.Context())
	wantFailure(t, err, lifecycle.ProfileInUse)
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
		if _, err := New(Config{Args: []string{arg}}); (err != nil) != refused {
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
