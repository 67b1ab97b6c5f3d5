package lifecycle

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustListenUnix(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestListenUnix(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	path := filepath.Join(dir, "s") // its directory is made
	l := mustListenUnix(t, path)
	if fi, err := os.Stat(path); err != nil || fi.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", fi, err)
	}
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "another program answers") {
		t.Errorf("a socket that is in use: %v", err)
	}
	if _, err := net.Dial("unix", path); err != nil {
		t.Errorf("after somebody else tried: %v", err)
	}

	// What a proxy that was killed left behind.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if err := mustListenUnix(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a proxy that ended has left its socket")
	}
}

func TestListenUnixRefused(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		prepare func(path string) error
		want    string
	}{
		"file":             {func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }, "is no socket"},
		"directory":        {func(path string) error { return os.Mkdir(path, 0o700) }, "is no socket"},
		"link to a socket": {func(path string) error { return os.Symlink("/nowhere", path) }, "is no socket"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := tc.prepare(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
			t.Errorf("%s is not what it was: %v", name, err)
		}
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(filepath.Join(open, "s")); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("in a directory of everybody's: %v", err)
	}
	if _, err := ListenUnix(filepath.Join(dir, strings.Repeat("l", 104))); err == nil || !strings.Contains(err.Error(), "choose a shorter one") {
		t.Errorf("a long path: %v", err)
	}
}

// A socket is remembered like a port, which stays the store's.
func TestSocketIsRemembered(t *testing.T) {
	h := openHome(t)
	s, err := h.OpenStore("demo", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Addr(); err != nil { // its port
		t.Fatal(err)
	}
	for _, step := range []struct {
		addr net.Addr
		want string
	}{
		{&net.UnixAddr{Name: "/run/x/demo.sock", Net: "unix"}, "unix:/run/x/demo.sock"},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: firstPort}, "192.0.2.1:9400"},
	} {
		if err := s.Remember(step.addr); err != nil {
			t.Fatal(err)
		}
		again, err := h.Store("demo")
		if err != nil {
			t.Fatal(err)
		}
		if addr, err := again.Addr(); err != nil || addr != step.want || again.Port != firstPort {
			t.Errorf("%v: %s, %v, port %d", step.addr, addr, err, again.Port)
		}
	}
}
