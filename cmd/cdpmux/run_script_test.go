package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// A new user types ./scripts/run. It prints the ready line and three ways to
// connect; each works; Ctrl-C ends the proxy and its browser.
func TestRunScript(t *testing.T) {
	if testing.Short() {
		t.Skip("end to end: not with -short")
	}
	home := newUser(t)
	run := start(t, "../../scripts/run", "--listen", "127.0.0.1:0")
	t.Cleanup(func() {
		if !run.hasExited() {
			_ = run.cmd.Process.Signal(os.Interrupt)
			run.wait(t, 30*time.Second)
		}
	})
	eventually(t, 2*time.Minute, "ready line and ways to connect on stdout", func() bool {
		return strings.Contains(run.stdout.String(), "Ctrl-C") || run.hasExited()
	})
	said := run.stdout.String()
	if first := regexp.MustCompile(`^cdpmux demo ready http://(127\.0\.0\.1:\d+) connect ws://127\.0\.0\.1:\d+/client-<task_id>\n`); !first.MatchString(said) {
		t.Errorf("stdout: want first a line like %s, got %q; stderr:\n%s", first, said, &run.stderr)
	}
	ways := regexp.MustCompile(`ws://[\w.:/-]+/client-[a-z]+`).FindAllString(said, -1)
	if len(ways) != 3 {
		t.Errorf("ways to connect: want 3 addresses, got %q", ways)
	}
	for _, way := range ways {
		var version struct{ Product string }
		decode(t, proxytest.Dial(t, way).Call("", "Browser.getVersion", nil), &version)
		if !strings.Contains(version.Product, "Chrome/") {
			t.Errorf("%s: want Chrome/… as its product, got %q", way, version.Product)
		}
	}

	profile := filepath.Join(home, ".cdpmux", "profiles", "demo")
	if len(processesOf(t, profile)) == 0 {
		t.Errorf("no browser runs on %s", profile)
	}
	if err := run.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := run.wait(t, 30*time.Second); code != 0 {
		t.Errorf("exit code after Ctrl-C: want 0, got %d; stderr:\n%s", code, &run.stderr)
	}
	if left := processesOf(t, profile); len(left) > 0 {
		t.Errorf("processes on %s after Ctrl-C: want none, got pids %v", profile, left)
	}
}

// newUser gives the test an empty HOME and no display. Go's caches, which lie
// below HOME, stay the machine's.
func newUser(t *testing.T) (home string) {
	t.Helper()
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	build, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	home = tempHome(t)
	for name, value := range map[string]string{
		"HOME": home, "GOCACHE": build, "GOMODCACHE": modules,
		"CDPMUX_HOME": "", "DISPLAY": "", "WAYLAND_DISPLAY": "",
	} {
		t.Setenv(name, value)
	}
	return home
}
