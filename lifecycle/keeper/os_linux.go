package keeper

import (
	"os"
	"syscall"
)

// adoptOrphans makes this process the parent of every process below it whose
// own parent ends: Chrome's crash handlers leave its group and its session.
func adoptOrphans() {
	const prSetChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0) // since Linux 3.4
}

// ownSession keeps the terminal's signals from a child, and makes its pid the
// id of its process group. The child is born into cgroup, if there is one.
func ownSession(cgroup *os.File) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if cgroup != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(cgroup.Fd())
	}
	return attr
}
