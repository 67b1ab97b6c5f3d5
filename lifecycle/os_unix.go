//go:build unix

package lifecycle

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs reports whether fi's file belongs to the user we run as.
func ownedByUs(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// ownSession keeps the terminal's signals from a child, and makes its pid the
// id of its process group.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killGroup kills the process group that root leads. Ours it never is.
func killGroup(root procID) {
	if root.pid > 1 && root.pid != syscall.Getpgrp() && root.same() {
		_ = syscall.Kill(-root.pid, syscall.SIGKILL)
	}
}

// errReadOnly is what a read-only file system answers.
const errReadOnly = syscall.EROFS

// mayWrite asks the kernel whether dir takes new files.
func mayWrite(dir string) error {
	const writeAndSearch = 2 | 1
	return syscall.Access(dir, writeAndSearch)
}
