package download

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// open opens a store in a new directory.
func open(t testing.TB, change ...func(*Config)) *Store {
	t.Helper()
	cfg := Config{Dir: t.TempDir()}
	for _, c := range change {
		c(&cfg)
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stage puts a file where Chrome would have.
func stage(t testing.TB, s *Store, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Staging(), name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustHold(t testing.TB, path, content string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != content {
		t.Errorf("%s: want %q, got %q, %v", path, content, b, err)
	}
}

func settle(t testing.TB, s *Store, f File) Place {
	t.Helper()
	p, err := s.Settle(now, f)
	if err != nil || p.Warning != nil {
		t.Fatalf("settle %+v: %+v, %v", f, p, err)
	}
	return p
}

func TestSettle(t *testing.T) {
	s := open(t)
	for i, want := range []string{"r.csv", "r (1).csv", "r (2).csv"} {
		guid := string(rune('a' + i))
		stage(t, s, guid, want)
		p := settle(t, s, File{GUID: guid, Name: "r.csv", URL: "https://u:p@h/r?q#f", Client: "c"})
		if p.Path != filepath.Join(s.dir, want) || p.Link != "" || p.Kept != nil || p.Size != int64(len(want)) {
			t.Errorf("place: %+v", p)
		}
		mustHold(t, p.Path, want)
	}
	all, err := Arrivals(s.dir)
	if err != nil || len(all) != 3 || all[1] != (Arrival{now, "c", "b", "r (1).csv", "https://h/r", 9}) {
		t.Errorf("arrivals: %+v, %v", all, err)
	}
	left, err := os.ReadDir(s.Staging())
	if err != nil || len(left) != 0 {
		t.Errorf("in staging: %v, %v", left, err)
	}
}
