package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig is a headless Chrome with a profile of its own. When the test
// ends, no process may name that profile.
func testConfig(t *testing.T) ChromeConfig {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a browser: not with -short")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg := ChromeConfig{
		Args: []string{
			"--disable-gpu", "--disable-quic", "--disable-background-networking",
			"--disable-component-update", "--disable-sync",
		},
		Profile:   filepath.Join(dir, "profile"),
		Headless:  true,
		NoSandbox: os.Geteuid() == 0,
		Log:       zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel),
	}
	t.Cleanup(func() { wantNoUsers(t, cfg.Profile) })
	return cfg
}

func wantNoUsers(t *testing.T, profile string) {
	t.Helper()
	left, err := usersOf(profile)
	if err != nil || len(left) > 0 {
		t.Errorf("processes left on %s: %v, %v", profile, left, err)
	}
}

// newChrome returns a backend whose browser is stopped when the test ends.
func newChrome(t *testing.T, cfg ChromeConfig) *Chrome {
	t.Helper()
	c, err := NewChrome(cfg)
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

func start(t *testing.T, b Backend) string {
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
func wantFailure(t *testing.T, err error, kind string) *Failure {
	t.Helper()
	f, ok := err.(*Failure)
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
