package doctor

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// size writes bytes for people.
func size(n uint64) string {
	switch {
	case n >= gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	case n >= mib:
		return fmt.Sprintf("%d MiB", n/mib)
	}
	return fmt.Sprintf("%d KiB", n/kib)
}

// free is what a file system has left for this user.
func free(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// disk looks for room for profiles and downloads.
func disk(dir string) Finding {
	dir = existing(dir)
	left, err := free(dir)
	if err != nil {
		return warn("disk", fmt.Sprintf("%s: %v", dir, err), "see that this directory can be used")
	}
	return room(dir, left)
}

func room(dir string, left uint64) Finding {
	text := fmt.Sprintf("%s is free at %s", size(left), dir)
	switch next := "make room: old downloads lie in _prev of each store's downloads"; {
	case left < 200*mib:
		return fail("disk", text+": Chrome would lose what it cannot write, logins too", next)
	case left < 2*gib:
		return warn("disk", text, next)
	}
	return ok("disk", text)
}

// files looks at how many files a process may have open. Chrome raises its
// own limit to the hard one.
func files() Finding {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return warn("files", err.Error(), "")
	}
	return fileLimit(r.Max)
}

func fileLimit(hard uint64) Finding {
	text := fmt.Sprintf("a process may have %d open", hard)
	if hard > math.MaxInt32 {
		text = "a process may have any number open"
	}
	next := "raise the hard limit: LimitNOFILE=65536 of the unit, or ulimit -Hn"
	switch {
	case hard < 1024:
		return fail("files", text+": Chrome alone needs more", next)
	case hard < 4096:
		return warn("files", text+": many tabs need more", next)
	}
	return ok("files", text)
}

// sharedMemory looks at /dev/shm, through which Chrome passes pictures.
func sharedMemory() Finding {
	if runtime.GOOS != "linux" {
		return ok("shm", "the system's own")
	}
	left, err := free("/dev/shm")
	if err != nil {
		return warn("shm", fmt.Sprintf("/dev/shm: %v", err), "mount it, or add --chrome-arg=--disable-dev-shm-usage")
	}
	return shmRoom(left)
}

func shmRoom(left uint64) Finding {
	text := size(left) + " is free in /dev/shm"
	if left < 256*mib {
		return warn("shm", text+": large pages crash their tabs", "give the container --shm-size=1g, or add --chrome-arg=--disable-dev-shm-usage")
	}
	return ok("shm", text)
}

// memory is what the cgroup lets all of us use together.
func memory() Finding {
	limit, where := cgroupLimit("memory.max", "memory/memory.limit_in_bytes")
	return memoryLimit(limit, where)
}

func memoryLimit(limit uint64, where string) Finding {
	switch {
	case limit > 1<<50:
		return ok("memory", "no cgroup limits it")
	case limit < gib:
		return warn("memory", fmt.Sprintf("the cgroup may use %s (%s): a browser with a few tabs needs more, and is killed then", size(limit), where), "raise MemoryMax= of the unit, or --memory of the container, to 2 GiB for each browser")
	}
	return ok("memory", fmt.Sprintf("the cgroup may use %s", size(limit)))
}

// tasks is how many threads the cgroup may have.
func tasks() Finding {
	limit, where := cgroupLimit("pids.max", "pids/pids.max")
	return taskLimit(limit, where)
}

func taskLimit(limit uint64, where string) Finding {
	switch {
	case limit > 1<<31:
		return ok("tasks", "no cgroup limits them")
	case limit < 1000:
		return warn("tasks", fmt.Sprintf("the cgroup may have %d threads (%s): a browser with ten tabs has hundreds", limit, where), "raise TasksMax= of the unit, or --pids-limit of the container")
	}
	return ok("tasks", fmt.Sprintf("the cgroup may have %d threads", limit))
}

// cgroupLimit is the least limit of our cgroup and those above it, and the
// file that says so. Of cgroup v1 only a container's own root is looked at.
func cgroupLimit(v2, v1 string) (limit uint64, where string) {
	limit = math.MaxUint64
	look := func(path string) {
		b, err := os.ReadFile(path)
		if n, e := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64); err == nil && e == nil && n < limit {
			limit, where = n, path
		}
	}
	look(filepath.Join("/sys/fs/cgroup", v1))
	dir, err := keeper.OwnCgroup()
	for err == nil && strings.HasPrefix(dir, "/sys/fs/cgroup") {
		look(filepath.Join(dir, v2))
		dir = filepath.Dir(dir)
	}
	return limit, where
}

// ownCgroup says whether each browser can get a cgroup of its own, which ends
// all of its processes at once.
func ownCgroup() Finding {
	const without = "a browser gets no cgroup of its own: what it leaves is sought among the processes instead"
	dir, err := keeper.OwnCgroup()
	if err == nil {
		err = lifecycle.MayWrite(dir)
	}
	switch {
	case err == nil:
		return ok("cgroup", "each browser gets one below "+dir)
	case os.Getenv("INVOCATION_ID") != "": // systemd's
		return warn("cgroup", without, "add Delegate=yes to the unit, as scripts/cdpmux@.service has it")
	}
	return ok("cgroup", without)
}

// watches looks at inotify, by which Chrome watches its files. Other systems
// have none.
func watches() (Finding, bool) {
	instances, err := strconv.ParseUint(sysctl("fs/inotify/max_user_instances"), 10, 64)
	if err != nil {
		return Finding{}, false
	}
	each, _ := strconv.ParseUint(sysctl("fs/inotify/max_user_watches"), 10, 64)
	return watchLimit(instances, each), true
}

func watchLimit(instances, each uint64) Finding {
	text := fmt.Sprintf("a user may have %d inotify instances and %d watches", instances, each)
	if instances < 128 || each < 8192 {
		return warn("inotify", text+": several browsers need more", "sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=65536")
	}
	return ok("inotify", text)
}
