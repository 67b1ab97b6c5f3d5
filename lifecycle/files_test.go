package lifecycle

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

func TestAdminToken(t *testing.T) {
	dir := t.TempDir()
	home, err := OpenHome(filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := home.MakeAdminToken("demo")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(first) {
		t.Errorf("token %q, want 64 hex digits", first)
	}
	fi, err := os.Stat(filepath.Join(dir, "home", "run", "demo.admin"))
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v; want 0600", fi.Mode(), err)
	}
	if second, err := home.MakeAdminToken("demo"); err != nil || second == first {
		t.Errorf("made anew: %q, %v", second, err)
	} else if got, err := home.AdminToken("demo"); err != nil || got != second {
		t.Errorf("read: %q, %v; want %q", got, err, second)
	}
}
