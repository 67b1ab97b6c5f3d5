package lifecycle

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func openHome(t *testing.T) *Home {
	t.Helper()
	h, err := OpenHome(filepath.Join(t.TempDir(), "home"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHomeIsPrivate(t *testing.T) {
	h := openHome(t)
	s, err := h.OpenStore("demo", "")
	if err != nil {
		t.Fatal(err)
	}
	lock, err := h.Lock("demo")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	if _, err := s.Addr(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Profile("demo"); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files++
		}
		fi, err := d.Info()
		if err == nil && fi.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, fi.Mode().Perm(), want)
		}
		return err
	})
	if err != nil || files != 3 {
		t.Errorf("%d files, want demo.json, next-port and demo.lock; %v", files, err)
	}
}

func TestHomeRefused(t *testing.T) {
	dir := t.TempDir()
	for name, prepare := range map[string]func(path string) error{
		"symbolic link":         func(path string) error { return os.Symlink(dir, path) },
		"file":                  func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"written by others":     func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770)) },
		"owned by another user": func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 12345, -1)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "h")
			defer os.RemoveAll(path)
			if err := prepare(path); errors.Is(err, fs.ErrPermission) {
				path = "/" // nobody but root can give files away; root's own will do
			} else if err != nil {
				t.Fatal(err)
			}
			if _, err := OpenHome(path); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestLockNamesItsHolder(t *testing.T) {
	h := openHome(t)
	lock, err := h.Lock("demo")
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := h.Lock("demo"); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("second lock: %v", err)
	}
	other, err := h.Lock("other")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Unlock()
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	again, err := h.Lock("demo")
	if err != nil {
		t.Fatalf("after the unlock: %v", err)
	}
	again.Unlock()
}

func TestStoreIsRemembered(t *testing.T) {
	h := openHome(t)
	first, err := h.OpenStore("one", "")
	if err != nil || len(first.ID) != 8 {
		t.Fatalf("store %+v, %v", first, err)
	}
	if again, err := h.OpenStore("one", ""); err != nil || again.ID != first.ID {
		t.Errorf("opened again: %+v, %v", again, err)
	}
	if _, err := h.OpenStore("one", first.ID); err != nil {
		t.Errorf("with its id: %v", err)
	}
	if _, err := h.OpenStore("one", "another"); err == nil || !strings.Contains(err.Error(), first.ID) {
		t.Errorf("with another id: %v", err)
	}
	if _, err := h.OpenStore("two", "../x"); err == nil {
		t.Error("an id with a slash: no error")
	}
	if two, err := h.OpenStore("two", "id-2"); err != nil || two.ID != "id-2" {
		t.Errorf("with an id: %+v, %v", two, err)
	}
}

func TestPortsAreGivenOnce(t *testing.T) {
	h := openHome(t)
	addr := func(slug string) string {
		t.Helper()
		s, err := h.OpenStore(slug, "")
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Addr()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	given, err := h.OpenStore("given", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := given.Remember(&net.TCPAddr{IP: net.IPv6loopback, Port: firstPort + 1}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ slug, want string }{
		{"a", "127.0.0.1:9400"},
		{"b", "127.0.0.1:9402"}, // 9401 is remembered
		{"a", "127.0.0.1:9400"},
		{"given", "[::1]:9401"},
	} {
		if got := addr(step.slug); got != step.want {
			t.Errorf("%s: %s, want %s", step.slug, got, step.want)
		}
	}
	if err := os.Remove(filepath.Join(h.dir, "stores", "b.json")); err != nil {
		t.Fatal(err)
	}
	if got := addr("c"); got != "127.0.0.1:9403" {
		t.Errorf("after a removal: %s", got)
	}
	if err := given.MayHave(&net.TCPAddr{Port: 9400}); err == nil || !strings.Contains(err.Error(), "port 9400 belongs to the store a") {
		t.Errorf("the port of another: %v", err)
	}
	if err := given.MayHave(&net.TCPAddr{Port: 9401}); err != nil {
		t.Errorf("its own port: %v", err)
	}
}

// A look at who serves a store neither makes nor takes anything.
func TestHolder(t *testing.T) {
	h := openHome(t)
	for range 2 {
		if holder, held, err := h.Holder("demo"); holder != (Holder{}) || held || err != nil {
			t.Errorf("holder of a free store: %+v, %v, %v", holder, held, err)
		}
	}
	if got := filesOf(t, h, "demo"); len(got) != 0 {
		t.Errorf("a look at a store that never was made %v", got)
	}
	for range 2 {
		lock, err := h.Lock("demo")
		if err != nil {
			t.Fatal(err)
		}
		us := Holder{PID: os.Getpid()}
		if holder, held, err := h.Holder("demo"); holder != us || !held || err != nil {
			t.Errorf("holder: %+v, %v, %v, want %+v", holder, held, err, us)
		}
		us.Addr, us.URL, us.Cert, us.Auth = "127.0.0.1:9400", "https://shop.example/a", "/cert.pem", true
		if err := lock.Announce(us); err != nil {
			t.Fatal(err)
		}
		if holder, held, err := h.Holder("demo"); holder != us || !held || err != nil {
			t.Errorf("holder that serves: %+v, %v, %v, want %+v", holder, held, err, us)
		}
		if err := lock.Unlock(); err != nil {
			t.Fatal(err)
		}
		if holder, held, err := h.Holder("demo"); holder != (Holder{}) || held || err != nil {
			t.Errorf("holder after Unlock: %+v, %v, %v", holder, held, err)
		}
	}
}

// A look that is under way does not keep a store from being served.
func TestHolderIsNotInTheWay(t *testing.T) {
	h := openHome(t)
	look, err := h.lockFile("demo")
	if err != nil {
		t.Fatal(err)
	}
	if free, err := look.TryRLock(); !free || err != nil {
		t.Fatal(free, err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = look.Unlock() })
	lock, err := h.Lock("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// The store token is made once, whoever asks, and is nobody else's to read.
func TestStoreToken(t *testing.T) {
	h := openHome(t)
	tokens := make(chan string, 8)
	for range cap(tokens) {
		go func() {
			token, err := h.StoreToken("demo")
			if err != nil {
				t.Error(err)
			}
			tokens <- token
		}()
	}
	first := <-tokens
	for range cap(tokens) - 1 {
		if token := <-tokens; token != first || len(token) != 64 {
			t.Errorf("token %q after %q", token, first)
		}
	}
	if other, err := h.StoreToken("other"); err != nil || other == first {
		t.Errorf("token of another store: %q, %v", other, err)
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "run", "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("files: %v, %v", files, err)
	}
	path := filepath.Join(h.dir, "run", "demo.token")
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	for _, bad := range []string{"", "\n", "short\n"} { // cut short by a full disk, say
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if token, err := h.StoreToken("demo"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: token %q, %v", bad, token, err)
		}
	}
}
