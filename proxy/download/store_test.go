package download

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	write(t, filepath.Join(s.Staging(), name), content)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
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

func mustHold(t testing.TB, path, content string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != content {
		t.Errorf("%s: want %q, got %q, %v", path, content, b, err)
	}
}

// mustList compares the names in a directory, as one line.
func mustList(t testing.TB, dir, want string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); err != nil || got != want {
		t.Errorf("in %s: want %q, got %q, %v", dir, want, got, err)
	}
}

func TestSettle(t *testing.T) {
	s := open(t)
	for i, want := range []string{"r.csv", "r (1).csv", "r (2).csv"} {
		guid := fmt.Sprint("guid-", i)
		stage(t, s, guid, want)
		p := settle(t, s, File{GUID: guid, Name: "r.csv", URL: "https://u:p@h/r?q#f", Client: "c"})
		if p != (Place{Path: filepath.Join(s.dir, want), Size: int64(len(want))}) {
			t.Errorf("place: %+v", p)
		}
		mustHold(t, p.Path, want)
	}
	all, err := Arrivals(s.dir)
	if err != nil || len(all) != 3 || all[1] != (Arrival{now, "c", "guid-1", "r (1).csv", "https://h/r", 9}) {
		t.Errorf("arrivals: %+v, %v", all, err)
	}
	mustList(t, s.Staging(), "")
	fi, err := os.Stat(filepath.Join(s.dir, journalName))
	if err != nil || fi.Mode() != 0o600 {
		t.Errorf("the journal: %v, %v; want mode 0600", fi.Mode(), err)
	}
}

func TestSettleRefuses(t *testing.T) {
	s := open(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(s.Staging(), "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.Staging(), "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, guid := range []string{"", ".", "..", "../x", "a/b", "a.crdownload", "link", "dir", "missing"} {
		if p, err := s.Settle(now, File{GUID: guid, Name: "x"}); err == nil {
			t.Errorf("guid %q: %+v, no error", guid, p)
		}
	}
	mustList(t, s.dir, ".staging")
	stage(t, s, "g", "once")
	settle(t, s, File{GUID: "g", Name: "x"})
	if _, err := s.Settle(now, File{GUID: "g", Name: "x"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("settled twice: %v", err)
	}
}

// Many files of one name, each with bytes of its own, at once: into the
// store's directory and into that of a client.
func TestSettleConcurrently(t *testing.T) {
	const files = 200
	s := open(t)
	theirs := filepath.Join(t.TempDir(), "theirs")
	places := make([]Place, files)
	content := func(i int) string { return strings.Repeat(fmt.Sprintf("file %d;", i), 100+i) }
	for i := range files {
		stage(t, s, fmt.Sprint(i), content(i))
	}
	var wg sync.WaitGroup
	for i := range files {
		wg.Go(func() {
			var err error
			f := File{GUID: fmt.Sprint(i), Name: "r.tar.gz", Client: "c"}
			if i%2 == 0 {
				f.Behavior, f.Dir = "allow", theirs
			}
			if places[i], err = s.Settle(now, f); err != nil || places[i].Kept != nil || places[i].Warning != nil {
				t.Errorf("file %d: %+v, %v", i, places[i], err)
			}
		})
	}
	wg.Wait()
	taken := map[string]bool{}
	for i, p := range places {
		if taken[p.Path] || p.Link != "" && taken[p.Link] || (p.Link != "") != (i%2 == 0) {
			t.Errorf("file %d: %+v", i, p)
		}
		taken[p.Path], taken[p.Link] = true, true
		mustHold(t, p.Path, content(i))
		if p.Link != "" {
			mustHold(t, p.Link, content(i))
		}
	}
	for _, want := range []string{filepath.Join(s.dir, "r.tar.gz"), filepath.Join(s.dir, "r (199).tar.gz"), filepath.Join(theirs, "r (99).tar.gz")} {
		if !taken[want] {
			t.Errorf("%s is not there", want)
		}
	}
	if all, err := Arrivals(s.dir); err != nil || len(all) != files {
		t.Errorf("%d arrivals, want %d; %v", len(all), files, err)
	}
	mustList(t, s.Staging(), "")
}

func TestPerClient(t *testing.T) {
	s := open(t, func(c *Config) { c.PerClient = true })
	for i, tc := range []struct{ client, want string }{
		{"alice", "alice/r.csv"},
		{"bob", "bob/r.csv"},
		{"alice", "alice/r (1).csv"},
		{"", "r.csv"},
		{"../x", "_._x/r.csv"},
		{"_prev", "_prev (1)/r.csv"}, // a client, not the archive
	} {
		guid := fmt.Sprint(i)
		stage(t, s, guid, tc.want)
		p := settle(t, s, File{GUID: guid, Name: "r.csv", Client: tc.client})
		if p.Path != filepath.Join(s.dir, tc.want) {
			t.Errorf("client %q: %s", tc.client, p.Path)
		}
		mustHold(t, p.Path, tc.want)
		if all, err := Arrivals(s.dir); err != nil || all[i].Name != tc.want || all[i].Client != tc.client {
			t.Errorf("client %q: %+v, %v", tc.client, all[i], err)
		}
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(s.dir, "carol")); err != nil {
		t.Fatal(err)
	}
	stage(t, s, "last", "x")
	if p, err := s.Settle(now, File{GUID: "last", Name: "x", Client: "carol"}); !errors.Is(err, errSymlink) {
		t.Errorf("a client's directory that is a symbolic link: %+v, %v", p, err)
	}
	mustList(t, s.Staging(), "last")
}

func TestDiscard(t *testing.T) {
	s := open(t)
	for _, name := range []string{"a", "b.crdownload", "c"} {
		stage(t, s, name, "x")
	}
	for _, guid := range []string{"a", "b", "missing"} {
		if err := s.Discard(guid); err != nil {
			t.Errorf("%s: %v", guid, err)
		}
	}
	mustList(t, s.Staging(), "c")
	write(t, filepath.Join(s.dir, "kept"), "x")
	if err := s.Discard("../kept"); err == nil {
		t.Error("a path as guid: no error")
	}
	mustHold(t, filepath.Join(s.dir, "kept"), "x")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	taken := t.TempDir()
	write(t, filepath.Join(taken, stagingName), "")
	for name, cfg := range map[string]Config{
		"file as dir":   {Dir: filepath.Join(dir, "file")},
		"staging taken": {Dir: taken},
		"relative root": {Dir: dir, Roots: []string{"tmp"}},
		"missing root":  {Dir: dir, Roots: []string{dir, filepath.Join(dir, "missing")}},
		"file as root":  {Dir: dir, Roots: []string{filepath.Join(dir, "file")}},
	} {
		if _, err := Open(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
