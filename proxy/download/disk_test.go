package download

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The client's directory is on another file system: it gets a copy.
func TestLinkAcrossFileSystems(t *testing.T) {
	p := newPlace(t)
	p.root = otherFS(t)
	p.roots = []string{p.root}
	p.mustLink("allow", filepath.Join(p.root, "a/b"), "a/b/r.csv")
	p.mustLink("allow", filepath.Join(p.root, "a/b"), "a/b/r (1).csv")
	p.mustLink("allowAndName", p.root, "guid")
	p.mustKeep("allowAndName", p.root, "exists")
	// A change of the client's does not reach the store's.
	got := p.ask("allow", p.root)
	write(t, got.Link, "changed")
	mustHold(t, got.Path, "x")
}

// otherFS is a directory on another file system than t.TempDir's.
func otherFS(t *testing.T) string {
	if dir := tmpfs(t, "size=1m"); dir != "" {
		return dir
	}
	const shm = "/dev/shm"
	var here, there unix.Stat_t
	if err := errors.Join(unix.Stat(t.TempDir(), &here), unix.Stat(shm, &there)); err != nil || here.Dev == there.Dev {
		t.Skip("nothing can be mounted, and no second file system is here: TestDuplicateStreams alone copies")
	}
	dir, err := os.MkdirTemp(shm, "download-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A disk that fills up while a file is copied, by a limit on the size of files.
func TestFileTooLarge(t *testing.T) {
	s, to := open(t), t.TempDir()
	for _, guid := range []string{"a", "b"} {
		stage(t, s, guid, strings.Repeat("x", 100_000))
	}
	dir, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	limited(t, 50_000, func() { err = duplicate(filepath.Join(s.Staging(), "a"), dir, "copy") })
	if !errors.Is(err, unix.EFBIG) {
		t.Errorf("copied beyond the limit: %v", err)
	}
	mustList(t, to, "")

	// The file is where it should be, though the journal cannot say so.
	var p Place
	limited(t, 40, func() { p, err = s.Settle(now, File{GUID: "a", Name: "r.csv"}) })
	if err != nil || !errors.Is(p.Warning, unix.EFBIG) || p.Size != 100_000 {
		t.Errorf("with a full journal: %+v, %v", p, err)
	}
	settle(t, s, File{GUID: "b", Name: "s.csv"})
	mustList(t, s.dir, ".arrived.jsonl .staging r.csv s.csv")
	if all, err := Arrivals(s.dir); err != nil || len(all) != 1 || all[0].GUID != "b" {
		t.Errorf("arrivals after the line that was cut short: %+v, %v", all, err)
	}
}

// limited runs do while no file can be written beyond a size.
func limited(t *testing.T, size uint64, do func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	do()
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	full := tmpfs(t, "size=1m,nr_inodes=8")
	if full == "" {
		t.Skip("needs to mount: TestFileTooLarge has the same ends by a limit")
	}
	fill := func(dir string) {
		for blocks := strings.Repeat("x", 4096); ; {
			f, err := os.OpenFile(filepath.Join(dir, "fill"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.WriteString(blocks)
				f.Close()
			}
			if errors.Is(err, unix.ENOSPC) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	// It is the client's that is full.
	p := newPlace(t)
	p.roots = []string{full}
	fill(full)
	p.mustKeep("allow", full, "no space left")
	p.mustKeep("allowAndName", full, "no space left")
	mustList(t, full, "fill")
	if err := os.Remove(filepath.Join(full, "fill")); err != nil {
		t.Fatal(err)
	}

	// It is the store's: no block is left for the journal, then no inode for
	// the file's second name either.
	s, err := Open(Config{Dir: full})
	if err != nil {
		t.Fatal(err)
	}
	stage(t, s, "a", "x")
	fill(full)
	place, err := s.Settle(now, File{GUID: "a", Name: "r.csv"})
	if err != nil || !errors.Is(place.Warning, unix.ENOSPC) {
		t.Errorf("no block left: %+v, %v", place, err)
	}
	mustHold(t, filepath.Join(full, "r.csv"), "x")
	if err := os.Remove(filepath.Join(full, "fill")); err != nil {
		t.Fatal(err)
	}
	stage(t, s, "b", "y")
	var extra []string
	for {
		name := filepath.Join(full, "extra"+strings.Repeat("x", len(extra)))
		if err := os.Symlink("x", name); errors.Is(err, unix.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		extra = append(extra, name)
	}
	if place, err := s.Settle(now, File{GUID: "b", Name: "r.csv"}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("no inode left: %+v, %v", place, err)
	}
	mustList(t, s.Staging(), "b") // for a better day
	for _, name := range extra {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Rescue(now, func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	mustHold(t, filepath.Join(full, "b"), "y")
}

func TestUnwritable(t *testing.T) {
	dir, want := t.TempDir(), unix.EACCES
	protect := func() {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o700) })
	}
	if os.Geteuid() == 0 { // whom modes do not stop
		want = unix.EROFS
		mounted := tmpfs(t, "size=1m")
		if mounted == "" {
			t.Skip("root is stopped by a read-only file system alone, and none can be mounted")
		}
		dir, protect = mounted, func() { freeze(t, mounted) }
	}
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	stage(t, s, "guid", "x")
	p := newPlace(t)
	p.roots = []string{dir}
	protect()
	if got, err := s.Settle(now, File{GUID: "guid", Name: "r.csv"}); !errors.Is(err, want) {
		t.Errorf("into a directory that cannot be written: %+v, %v", got, err)
	}
	mustList(t, s.Staging(), "guid")
	p.mustKeep("allow", dir, want.Error())
	p.mustKeep("allow", filepath.Join(dir, "new"), want.Error())
	if err := s.Started(now, true); !errors.Is(err, want) {
		t.Errorf("archived: %v", err)
	}
	mustList(t, s.Staging(), "guid")
}
