package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSocketPath is the longest path a Unix socket may have on every system.
const maxSocketPath = 103

// ListenUnix listens on a Unix socket that nobody else may open, in a directory
// that nobody else may change. A socket of before is removed when nobody
// answers there; any other file stays, and is an error. The caller holds the
// Lock of the store whose socket it is.
func ListenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("%s: %d bytes, and the path of a socket has at most %d; choose a shorter one", path, len(path), maxSocketPath)
	}
	if err := privateDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("directory of the socket: %w", err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{Control: privateSocket}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeStale makes room for a socket, if there is nothing but a dead one.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case fi.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there and is no socket: remove it, or choose another path", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("another program answers on %s: end it, or choose another path", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return fmt.Errorf("a socket of before: %w; remove it, or choose another path", err)
}
