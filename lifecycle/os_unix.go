//go:build unix

package lifecycle

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownedByUs reports whether fi's file belongs to the user we run as.
func ownedByUs(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// privateSocket gives a socket the mode that Linux makes its file with, so that
// there is no moment in which others may open it. Elsewhere it does nothing.
func privateSocket(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}

// MayWrite says whether we could make files in dir, without making one.
func MayWrite(dir string) error { return unix.Access(dir, unix.R_OK|unix.W_OK|unix.X_OK) }
