//go:build unix

package keeper

import (
	"errors"
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

// Lock takes the right to have a keeper, or returns ErrKept. It is handed to
// the keeper (Spawn) and ends with it, however it ends: so there is never a
// second one, not even when a proxy died between the start of its keeper and
// the keeper's record.
func Lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrKept
		}
		return nil, err
	}
	return f, nil
}

// closeOnExec keeps Chrome from inheriting a file of ours.
func closeOnExec(fd int) { syscall.CloseOnExec(fd) }

// killGroup kills the process group that root leads. Ours it never is.
func killGroup(root proc.ID) {
	if root.PID > 1 && root.PID != syscall.Getpgrp() && root.Alive() {
		_ = syscall.Kill(-root.PID, syscall.SIGKILL)
	}
}

// reap takes a dead child of ours out of the process table.
func reap(pid int) { _, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) }

const sigchld = syscall.SIGCHLD
