//go:build unix && !linux

package keeper

import (
	"os"
	"syscall"
)

func ownSession(*os.File) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
