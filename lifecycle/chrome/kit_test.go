package chrome

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
)

// TestMain is also the keeper of the tests' browsers, and a proxy to kill.
func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "keeper":
		err = keeper.Main()
	case len(os.Args) == 3 && os.Args[1] == "proxy":
		err = proxyMain(os.Args[2])
	default:
		runTests(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runTests(m *testing.M) {
	// The race detector would have each keeper sleep for a second at its end.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	goleak.VerifyTestMain(m)
}

// proxyMain is a proxy in a process of its own: it starts the browser of the
// Config in its argument, says so, and holds it until it is killed.
func proxyMain(text string) error {
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	cfg.Log = zerolog.Nop()
	c, err := New(cfg)
	if err != nil {
		return err
	}
	endpoint, err := c.Start(context.Background())
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, endpoint.WS)
	select {}
}

// testConfig is a headless Chrome with a profile of its own. When the test
// ends, no process may name that profile.
func testConfig(t *testing.T) Config {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a browser: not with -short")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Args: []string{
			"--disable-gpu", "--disable-quic", "--disable-background-networking",
			"--disable-component-update", "--disable-sync",
		},
		Profile:   filepath.Join(dir, "profile"),
		Record:    filepath.Join(dir, "browser.json"),
		Headless:  true,
		NoSandbox: os.Geteuid() == 0,
		Log:       zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel),
	}
	t.Cleanup(func() { wantNoUsers(t, cfg.Profile) })
	return cfg
}

func wantNoUsers(t *testing.T, profile string) {
	t.Helper()
	left, err := proc.UsersOf(profile)
	if err != nil || len(left) > 0 {
		t.Errorf("processes left on %s: %v, %v", profile, left, err)
	}
}

// newChrome returns a backend whose browser is stopped when the test ends.
func newChrome(t *testing.T, cfg Config) *Chrome {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r := c.Stop(context.Background()); !r.Verified {
			t.Errorf("stop: %+v", r)
		}
	})
	return c
}

func start(t *testing.T, b lifecycle.Backend) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ep, err := b.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return ep.WS
}

// wantFailure checks that err is a Failure of this kind that names a next step.
func wantFailure(t *testing.T, err error, kind string) *lifecycle.Failure {
	t.Helper()
	f, ok := err.(*lifecycle.Failure)
	if !ok || f.Kind != kind || f.Text == "" || f.Next() == "" {
		t.Fatalf("failure %#v, want kind %s with text and next step", err, kind)
	}
	return f
}

// eventually waits for what no event announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not seen", what)
		}
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// record is what is on record of the running browser.
func record(t *testing.T, c *Chrome) *keeper.Record {
	t.Helper()
	rec, err := keeper.ReadRecord(c.cfg.Record)
	if err != nil || rec == nil || rec.Root.PID == 0 {
		t.Fatalf("record %+v, %v", rec, err)
	}
	return rec
}

// sleeper is a process of the test with one more argument.
func sleeper(t *testing.T, arg string) proc.ID {
	t.Helper()
	cmd := exec.Command("sh", "-c", "sleep 600 & trap 'kill $!' TERM; wait", arg, arg)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return proc.Identify(cmd.Process.Pid)
}

// noteEnd is a gate that lets everything pass and notes what it was told.
func noteEnd(end *lifecycle.End) lifecycle.Gate {
	return func(_ context.Context, after lifecycle.End, _ string) (func(error), error) {
		*end = after
		return func(error) {}, nil
	}
}

// scaled is a repeat count for CDPMUX_TEST_SCALE, at least 1.
func scaled(t *testing.T, n int) int {
	t.Helper()
	text := os.Getenv("CDPMUX_TEST_SCALE")
	if text == "" {
		return n
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale <= 0 {
		t.Fatalf("CDPMUX_TEST_SCALE=%q: want a number above 0", text)
	}
	return max(1, int(float64(n)*scale))
}
