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
