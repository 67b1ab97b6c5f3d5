//go:build !unix

package lifecycle

import (
	"io/fs"
	"syscall"
)

// Elsewhere than on Unix the product only compiles: files have no owner to compare.
func ownedByUs(fs.FileInfo) bool { return true }

func privateSocket(_, _ string, _ syscall.RawConn) error { return nil }

// MayWrite cannot know without a try.
func MayWrite(string) error { return nil }
