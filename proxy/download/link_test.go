package download

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// place is a store and a root for its clients' directories.
type place struct {
	*Store
	root string
	t    *testing.T
}

func newPlace(t *testing.T) *place {
	root := t.TempDir()
	return &place{open(t, func(c *Config) { c.Roots = []string{root} }), root, t}
}

// ask settles a file, content "x", for a client that wants it in dir.
func (p *place) ask(behavior, dir string) Place {
	p.t.Helper()
	stage(p.t, p.Store, "guid", "x")
	got := settle(p.t, p.Store, File{GUID: "guid", Name: "r.csv", Client: "c", Behavior: behavior, Dir: dir})
	mustHold(p.t, got.Path, "x")
	if filepath.Dir(got.Path) != p.dir {
		p.t.Errorf("dir %q: the file is at %s", dir, got.Path)
	}
	return got
}

// mustLink wants the file at a path below the root.
func (p *place) mustLink(behavior, dir, want string) {
	p.t.Helper()
	got := p.ask(behavior, dir)
	if want = filepath.Join(p.root, want); got.Link != want || got.Kept != nil {
		p.t.Errorf("%s %q: %+v, want a link %s", behavior, dir, got, want)
	}
	mustHold(p.t, got.Link, "x")
}

// mustKeep wants the file in the store's directory alone, and to hear why.
func (p *place) mustKeep(behavior, dir, why string) {
	p.t.Helper()
	got := p.ask(behavior, dir)
	if got.Link != "" || got.Kept == nil || !strings.Contains(got.Kept.Error(), why) {
		p.t.Errorf("%s %q: %+v, want none because of %q", behavior, dir, got, why)
	}
}

func TestLink(t *testing.T) {
	p := newPlace(t)
	a := filepath.Join(p.root, "a")
	p.mustLink("allow", a, "a/r.csv")
	p.mustLink("allow", a+"/./", "a/r (1).csv")
	p.mustLink("allowAndName", a, "a/guid")
	p.mustKeep("allowAndName", a, "exists")
	p.mustLink("allowAndName", filepath.Join(a, "b/c"), "a/b/c/guid")
	p.mustLink("allow", p.root, "r.csv")
	fi, err := os.Stat(filepath.Join(a, "b/c"))
	if err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("a directory that was made: %v, %v; want mode 0700", fi.Mode(), err)
	}
	for _, f := range []struct{ behavior, dir string }{{"allow", ""}, {"", a}} {
		if got := p.ask(f.behavior, f.dir); got.Link != "" || got.Kept != nil {
			t.Errorf("%+v asks for nothing: %+v", f, got)
		}
	}
}

func TestLinkRefused(t *testing.T) {
	p := newPlace(t)
	outside := t.TempDir()
	link := filepath.Join(p.root, "link")
	inner := filepath.Join(p.root, "real/link")
	if err := errors.Join(
		os.Mkdir(filepath.Join(p.root, "real"), 0o700),
		os.Symlink(outside, link),
		os.Symlink(".", inner),
		os.Symlink("nowhere", filepath.Join(p.root, "dangling")),
		unix.Mkfifo(filepath.Join(p.root, "fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.root, "file"), "")
	for _, behavior := range []string{"allow", "allowAndName"} {
		p.mustKeep(behavior, "downloads", "no absolute path")
		p.mustKeep(behavior, "./downloads", "no absolute path")
		p.mustKeep(behavior, p.root+"/a/../b", "..")
		p.mustKeep(behavior, p.root+"/../"+filepath.Base(p.root), "..")
		p.mustKeep(behavior, outside, "--download-roots")
		p.mustKeep(behavior, p.root+"-not", "--download-roots")
		p.mustKeep(behavior, "/", "--download-roots")
		p.mustKeep(behavior, link, "symbolic link")
		p.mustKeep(behavior, link+"/deeper", "symbolic link")
		p.mustKeep(behavior, inner, "symbolic link")
		p.mustKeep(behavior, inner+"/x/y", "symbolic link")
		p.mustKeep(behavior, filepath.Join(p.root, "dangling"), "symbolic link")
		p.mustKeep(behavior, filepath.Join(p.root, "file"), "not a directory")
		p.mustKeep(behavior, filepath.Join(p.root, "file/x"), "not a directory")
		p.mustKeep(behavior, filepath.Join(p.root, "fifo"), "not a directory")
		p.mustKeep(behavior, filepath.Join(p.root, "nul\x00"), "invalid argument")
		p.mustKeep(behavior, filepath.Join(p.root, strings.Repeat("x", 300)), "too long")
	}
	mustList(t, outside, "")
	mustList(t, p.root, "dangling fifo file link real")
	mustList(t, filepath.Join(p.root, "real"), "link")
}

// A name that is taken, if only by a symbolic link, is never written to.
func TestLinkOverwritesNothing(t *testing.T) {
	p := newPlace(t)
	victim := filepath.Join(t.TempDir(), "victim")
	write(t, victim, "precious")
	for _, name := range []string{"r.csv", "guid"} {
		if err := os.Symlink(victim, filepath.Join(p.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.mustLink("allow", p.root, "r (1).csv")
	p.mustKeep("allowAndName", p.root, "exists")
	mustHold(t, victim, "precious")

	dir, err := os.Open(p.root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := duplicate(victim, dir, "guid"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("copied over a symbolic link: %v", err)
	}
}

func TestLinkForeignOwner(t *testing.T) {
	p := newPlace(t)
	foreign := filepath.Join(p.root, "foreign")
	if err := os.Mkdir(foreign, 0o777); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // only root can give a directory away; root's own will do
		p.roots, foreign = []string{"/"}, "/usr"
	} else if err := os.Chown(foreign, 12345, -1); err != nil {
		t.Fatal(err)
	}
	p.mustKeep("allow", foreign, "another user")
	p.mustKeep("allow", filepath.Join(foreign, "new"), "another user")
	if _, err := os.Lstat(filepath.Join(foreign, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made in another user's directory: %v", err)
	}
}

// A root may be named by a path with symbolic links, and the client may say it
// without them, or the other way round: macOS has /tmp so.
func TestLinkedRoot(t *testing.T) {
	p := newPlace(t)
	named := filepath.Join(t.TempDir(), "named")
	if err := os.Symlink(p.root, named); err != nil {
		t.Fatal(err)
	}
	real := p.root
	p.roots = []string{named}
	p.mustLink("allow", filepath.Join(real, "a"), "a/r.csv")
	p.root = named
	p.mustLink("allow", filepath.Join(named, "a"), "a/r (1).csv")

	// The same root, below another one.
	p.roots = []string{filepath.Dir(named), named}
	p.mustLink("allow", named, "r.csv")
	p.roots = []string{named, filepath.Dir(named)}
	p.mustLink("allow", filepath.Join(named, "a"), "a/r (2).csv")
	p.roots = p.roots[1:]
	p.mustKeep("allow", named, "symbolic link")
	p.roots = []string{filepath.Join(real, "gone")}
	p.mustKeep("allow", filepath.Join(real, "gone"), "--download-roots")
}

// Clients may name the store's own directory, which is a root by default.
func TestLinkIntoStore(t *testing.T) {
	s := open(t)
	p := &place{s, s.dir, t}
	if got := p.ask("allow", s.dir); got.Kept != nil || got.Link != got.Path {
		t.Errorf("the store's directory itself: %+v", got)
	}
	mustList(t, s.dir, ".arrived.jsonl .staging r.csv")
	p.mustLink("allowAndName", s.dir, "guid")
	p.mustLink("allow", filepath.Join(s.dir, "mine"), "mine/r.csv")
	p.mustKeep("allow", s.Staging(), "the store's own")
	p.mustKeep("allow", filepath.Join(s.Staging(), "x"), "the store's own")
	mustList(t, s.Staging(), "")

	if tmp := filepath.Join(t.TempDir(), "artifacts"); p.ask("allow", tmp).Link != filepath.Join(tmp, "r.csv") {
		t.Errorf("the system's temporary directory is no root")
	}
}

// A file is copied in pieces, whatever its size.
func TestDuplicateStreams(t *testing.T) {
	const size = 64 << 20
	src := filepath.Join(t.TempDir(), "src")
	if err := errors.Join(os.WriteFile(src, nil, 0o640), os.Truncate(src, size)); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := duplicate(src, dir, "copy"); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > size/16 {
		t.Errorf("%d bytes allocated to copy %d", grown, size)
	}
	if fi, err := os.Stat(filepath.Join(dir.Name(), "copy")); err != nil || fi.Size() != size || fi.Mode() != 0o640 {
		t.Errorf("the copy: %+v, %v", fi, err)
	}
}

// What is the store's own in its directory is no place for a client's files: a
// directory by the name of the journal would end the journal.
func TestLinkIntoStoreReserved(t *testing.T) {
	s := open(t)
	s.roots = []string{filepath.Dir(s.dir)} // a root above the store's directory
	p := &place{s, s.dir, t}
	for _, dir := range []string{".arrived.jsonl", ".hidden/deeper", "_prev", "_PREV/20260101T000000Z"} {
		p.mustKeep("allow", filepath.Join(s.dir, dir), "the store's own")
	}
	p.mustLink("allow", filepath.Join(s.dir, "mine/.hidden"), "mine/.hidden/r.csv")
	mustList(t, s.dir, ".arrived.jsonl .staging mine r (1).csv r (2).csv r (3).csv r (4).csv r.csv")
}

// No directories are made for a path that nobody can name.
func TestLinkLongPath(t *testing.T) {
	p := newPlace(t)
	got := p.ask("allow", filepath.Join(p.root, strings.Repeat("d/", 1<<20)))
	if got.Kept == nil || len(got.Kept.Error()) > 200 {
		t.Errorf("want it kept, shortly said; got %.300v", got.Kept)
	}
	mustList(t, p.root, "")
}
