package doctor

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// sandboxed is what decides whether Chrome can build its sandbox. On Linux it
// takes a user namespace, or else a setuid helper.
type sandboxed struct {
	off   bool // --no-sandbox
	root  bool
	linux bool

	namespace error // of a try to make a user namespace; nil: it worked
	apparmor  bool  // only programs with a profile may use one
	helper    bool  // the setuid chrome-sandbox is there
	noNew     bool  // we run with no_new_privs, under which setuid does nothing
	binary    string
}

func sandboxFacts(ctx context.Context, binary string, off bool) sandboxed {
	s := sandboxed{off: off, root: os.Geteuid() == 0, linux: runtime.GOOS == "linux", binary: binary}
	if !s.linux || s.root || off || binary == "" {
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// The kernel's switches are many, and a container's filter has none to
	// read: what counts is whether it lets us.
	cmd := exec.CommandContext(ctx, binary, "--version")
	cmd.WaitDelay = patience
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	cmd.SysProcAttr = inNamespace()
	if s.namespace = cmd.Start(); s.namespace == nil {
		_ = cmd.Wait()
	}
	s.apparmor = sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1"
	helper := os.Getenv("CHROME_DEVEL_SANDBOX")
	if helper == "" {
		helper = filepath.Join(filepath.Dir(binary), "chrome-sandbox")
	}
	if fi, err := os.Stat(helper); err == nil {
		st, ok := fi.Sys().(*syscall.Stat_t)
		s.helper = ok && st.Uid == 0 && fi.Mode()&fs.ModeSetuid != 0 && fi.Mode().Perm()&0o001 != 0
	}
	status, _ := os.ReadFile("/proc/self/status")
	s.noNew = strings.Contains(string(status), "\nNoNewPrivs:\t1\n")
	return s
}

// sandbox says whether Chrome's sandbox will work.
func sandbox(s sandboxed) Finding {
	const check = "sandbox"
	switch {
	case s.off:
		return warn(check, "it is off: a page that breaks out of its renderer can do what this user can", "serve as a user of its own, without --no-sandbox")
	case s.root && s.linux:
		return fail(check, "Chrome does not run as root with its sandbox", "serve as another user, or add --no-sandbox")
	case !s.linux:
		return ok(check, "the system's own")
	case s.binary == "":
		return warn(check, "it cannot be looked at without a browser", "see the line of the browser")
	case s.helper && !s.noNew:
		return ok(check, "by the setuid helper beside "+s.binary)
	case s.namespace != nil:
		next := "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000; in a container, a seccomp profile that lets clone(CLONE_NEWUSER) pass; or add --no-sandbox"
		if s.helper {
			next = "run without NoNewPrivileges, which keeps Chrome's setuid helper from working, or " + next
		}
		return fail(check, "this machine gives Chrome no user namespace: "+s.namespace.Error(), next)
	case s.apparmor:
		return warn(check, "AppArmor lets only programs with a profile have user namespaces (kernel.apparmor_restrict_unprivileged_userns=1)",
			"if the browser ends with launch_sandbox, give "+s.binary+" a profile with userns in /etc/apparmor.d, or set that switch to 0")
	}
	return ok(check, "by user namespaces")
}

// sysctl reads a switch of the kernel; "" is none.
func sysctl(name string) string {
	b, _ := os.ReadFile(filepath.Join("/proc/sys", name))
	return strings.TrimSpace(string(b))
}
