//go:build !unix

package keeper

import (
	"errors"
	"net"
	"os"
	"syscall"

	"cdpmux/lifecycle/proc"
)

// Elsewhere than on Unix the product only compiles.

func ownSession(*os.File) *syscall.SysProcAttr { return nil }

func socketPair() (net.Conn, *os.File, error) { return nil, nil, errors.ErrUnsupported }

func Lock(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func closeOnExec(int) {}

func killGroup(root proc.ID) { _ = root.Signal(syscall.SIGKILL) }

func reap(int) {}

const sigchld = syscall.Signal(0x11)
