//go:build unix

package keeper

import (
	"net"
	"os"
	"syscall"

	"cdpmux/lifecycle/proc"
)

// socketPair is a connection whose other end a child can inherit.
func socketPair() (net.Conn, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "keeper")
	defer ours.Close() // FileConn has a copy
	theirs := os.NewFile(uintptr(fds[1]), "proxy")
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// killGroup kills the process group that root leads. Ours it never is.
func killGroup(root proc.ID) {
	if root.PID > 1 && root.PID != syscall.Getpgrp() && root.Alive() {
		_ = syscall.Kill(-root.PID, syscall.SIGKILL)
	}
}

// reap takes a dead child of ours out of the process table.
func reap(pid int) { _, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) }

const sigchld = syscall.SIGCHLD
