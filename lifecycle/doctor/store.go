package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
)

// home looks at the state directory.
func home(h *lifecycle.Home, err error) Finding {
	const check = "home"
	const next = "mend it, or give another directory with --home"
	if errors.Is(err, fs.ErrNotExist) {
		parent := existing(h.Dir())
		if err := lifecycle.MayWrite(parent); err != nil {
			return fail(check, fmt.Sprintf("%s is not there, and %s lets this user make nothing: %v", h.Dir(), parent, err), next)
		}
		return ok(check, h.Dir()+" is made at the first start")
	}
	if err == nil {
		err = h.Check()
	}
	if err == nil {
		err = lifecycle.MayWrite(h.Dir())
	}
	if err != nil {
		return fail(check, strings.ReplaceAll(err.Error(), "\n", "; "), next)
	}
	return ok(check, h.Dir()+" is this user's alone")
}

// existing is path, or the nearest directory above it that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// store looks at the store's record.
func store(p Plan) Finding {
	const check = "store"
	s, err := p.Home.Store(p.Store)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(check, p.Store+" is put on the list at its first start")
	case err != nil:
		return fail(check, err.Error(), "mend that file, or move it away to begin anew")
	case s.Disabled:
		return warn(check, p.Store+" is disabled: nobody is let in", "cdpmux enable --store "+p.Store)
	}
	return ok(check, p.Store+", id "+s.ID)
}

// port says whose the store's address is: free, ours, or a stranger's.
func port(ctx context.Context, p Plan) Finding {
	const check = "port"
	holder, held, err := p.Home.Holder(p.Store)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(check, err.Error(), "see that this user owns the state directory")
	}
	pid, addr := holder.PID, p.Listen
	if addr == "" {
		if addr, err = p.Home.StoreAddr(p.Store); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(check, err.Error(), "mend that file, or move it away to begin anew")
		}
	}
	if held && holder.Addr != "" {
		addr = holder.Addr
	}
	if addr == "" {
		return ok(check, "the store gets one at its first start")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	network, address := "tcp", addr
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, address = "unix", path
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		conn.Close()
	}
	listener := listenerAt(addr)
	next := "free it, or choose another address with --listen"
	switch {
	case err != nil && held:
		return fail(check, fmt.Sprintf("pid %d has the store, but nothing listens at %s", pid, addr), "wait a moment if it starts or ends now; otherwise end that process")
	case err != nil:
		return ok(check, addr+" is free")
	case held && (listener == pid || listener == 0 || pid == 0):
		return ok(check, fmt.Sprintf("%s is served by pid %d", addr, pid))
	case listener == 0:
		return fail(check, addr+" is in use by another program", next)
	}
	return fail(check, fmt.Sprintf("%s is in use by another program, pid %d (%s)", addr, listener, nameOf(listener)), next)
}

// nameOf is the name of a program that runs.
func nameOf(pid int) string {
	program, _, _ := strings.Cut(string(proc.Cmdline(pid)), "\x00")
	program, _, _ = strings.Cut(program, " ")
	return filepath.Base(program)
}

// profile looks whether the browser could have its profile.
func profile(p Plan) Finding {
	const check = "profile"
	dir := p.Chrome.Profile
	if dir == "" {
		var err error
		if dir, err = p.Home.Profile(p.Store); errors.Is(err, fs.ErrNotExist) {
			return ok(check, "it is made at the first start")
		} else if err != nil {
			return fail(check, err.Error(), "mend it, or give another directory with --profile")
		}
	}
	real, err := chrome.CheckProfile(dir)
	var failure *lifecycle.Failure
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ok(check, dir+" is made at the first start")
	case errors.As(err, &failure) && failure.Kind == lifecycle.ProfileInUse && ownBrowser(p, real):
		return ok(check, dir+" is in use by this store's own browser")
	case err != nil:
		return failed(check, err)
	}
	return locked(real)
}

// ownBrowser reports whether the browser on a profile is the one that the
// store's keeper has.
func ownBrowser(p Plan, profile string) bool {
	path, err := p.Home.RecordFile(p.Store)
	if err != nil {
		return false
	}
	rec, err := keeper.ReadRecord(path)
	return err == nil && rec != nil && rec.Boot == proc.Boot() && rec.Root.Alive() && rec.Profile == profile
}

// locked reads the lock that a Chrome which is gone has left in its profile.
func locked(profile string) Finding {
	const check = "profile"
	owner, err := os.Readlink(filepath.Join(profile, lifecycle.Singletons[0]))
	if err != nil {
		return ok(check, profile+" is free")
	}
	i := strings.LastIndexByte(owner, '-')
	if i < 0 {
		return warn(check, fmt.Sprintf("%s has a lock of nobody: %s", profile, owner), "delete "+lifecycle.Singletons[0]+" there, when no Chrome runs on it")
	}
	self, _ := os.Hostname()
	if host := owner[:i]; host != self {
		return fail(check, fmt.Sprintf("%s is locked by a Chrome on the host %s, pid %s", profile, host, owner[i+1:]),
			"stop that Chrome; if it is gone for good, delete "+lifecycle.Singletons[0]+" in the profile")
	}
	return ok(check, fmt.Sprintf("%s is free; the lock of pid %s, which is gone, is stale and no obstacle", profile, owner[i+1:]))
}
