package download

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Somebody swaps the client's directory for a symbolic link again and again:
// no file ever comes out at its other end.
func TestLinkRace(t *testing.T) {
	p := newPlace(t)
	outside := t.TempDir()
	dir, link := filepath.Join(p.root, "dir"), filepath.Join(p.root, "link")
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "inner"), 0o700),
		os.Mkdir(filepath.Join(outside, "inner"), 0o700),
		os.Symlink(outside, link),
	); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for {
			select {
			case <-stop:
				stopped <- err
				return
			default:
				err = errors.Join(err, unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE))
			}
		}
	}()
	linked, kept := 0, 0
	for end := time.Now().Add(20 * time.Second); (linked < 50 || kept < 50) && time.Now().Before(end); {
		for _, dir := range []string{dir, filepath.Join(dir, "inner")} {
			stage(t, p.Store, "guid", "x")
			name := fmt.Sprint(linked, "-", kept)
			if settle(t, p.Store, File{GUID: "guid", Name: name, Behavior: "allow", Dir: dir}).Kept == nil {
				linked++
			} else {
				kept++
			}
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if linked < 50 || kept < 50 {
		t.Errorf("%d linked, %d kept: want both often", linked, kept)
	}
	mustList(t, outside, "inner")
	mustList(t, filepath.Join(outside, "inner"), "")
}
