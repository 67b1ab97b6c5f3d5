package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cdpmux/lifecycle/proc"
)

func TestReapVerdict(t *testing.T) {
	const old, young = 10 * time.Minute, 9 * time.Minute
	for name, tc := range map[string]struct {
		d    daemon
		use  InUse
		want reapVerdict
	}{
		"gone":                       {daemon{"1a2b3c4d", false, 0}, InUse{}, cleanFiles},
		"gone, its client is there":  {daemon{"1a2b3c4d", false, 0}, InUse{Clients: []string{"1a2b3c4d-5e6f"}}, cleanFiles},
		"left":                       {daemon{"1a2b3c4d", true, old}, InUse{}, endDaemon},
		"young":                      {daemon{"1a2b3c4d", true, young}, InUse{}, keepDaemon},
		"its client is there":        {daemon{"1a2b3c4d", true, old}, InUse{Clients: []string{"1a2b3c4d-5e6f-7a8b"}}, keepDaemon},
		"its worker is there":        {daemon{"1a2b3c4d-w2", true, old}, InUse{Clients: []string{"1a2b3c4d-5e6f-w2"}}, keepDaemon},
		"only another worker":        {daemon{"1a2b3c4d-w2", true, old}, InUse{Clients: []string{"1a2b3c4d-5e6f-w1", "1a2b3c4d-5e6f"}}, endDaemon},
		"only a worker":              {daemon{"1a2b3c4d", true, old}, InUse{Clients: []string{"1a2b3c4d-w1"}}, endDaemon},
		"another client":             {daemon{"1a2b3c4d", true, old}, InUse{Clients: []string{"1a2b3c4e"}}, endDaemon},
		"its task is active":         {daemon{"1a2b3c4d", true, old}, InUse{Tasks: []string{"1a2b3c4d-5e6f"}}, keepDaemon},
		"its worker's task":          {daemon{"1a2b3c4d-w3", true, old}, InUse{Tasks: []string{"1a2b3c4d-5e6f"}}, keepDaemon},
		"a short task":               {daemon{"ab", true, old}, InUse{Tasks: []string{"ab"}}, keepDaemon},
		"a task that begins like it": {daemon{"ab", true, old}, InUse{Tasks: []string{"abc"}}, endDaemon},
	} {
		if got := tc.d.verdict(tc.use, young); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// fakeDaemon is a process that looks like a daemon of browser-harness.
func fakeDaemon(t *testing.T, dir, session, body string) proc.ID {
	t.Helper()
	cmd := exec.Command("sh", "-c", body, "-m", "browser_harness.daemon")
	cmd.Env = append(os.Environ(), "BU_NAME="+session)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	id := proc.Identify(cmd.Process.Pid)
	pidFile(t, dir, session, fmt.Sprint(id.PID))
	return id
}

func pidFile(t *testing.T, dir, session, text string) {
	t.Helper()
	write(t, filepath.Join(dir, "bu-"+session+".pid"), text, 0o600)
	write(t, filepath.Join(dir, "bu-"+session+".sock"), "", 0o600)
}

const waits = "while :; do sleep 0.05; done"

func TestReaperPass(t *testing.T) {
	dir := t.TempDir()
	left := fakeDaemon(t, dir, "shop-1a2b3c4d", waits)
	stubborn := fakeDaemon(t, dir, "shop-1a2b3c4d-w1", "trap '' TERM; "+waits)
	used := fakeDaemon(t, dir, "shop-2a2b3c4d", waits)
	bare := fakeDaemon(t, dir, "shop", waits)
	aux := fakeDaemon(t, dir, "shop-aux", waits)
	other := fakeDaemon(t, dir, "shop-2-1a2b3c4d", waits)
	stranger := fakeDaemon(t, dir, "else-00000000", waits)
	pidFile(t, dir, "shop-3a2b3c4d", fmt.Sprint(stranger.PID)) // its pid is another's now
	pidFile(t, dir, "shop-4a2b3c4d", "no pid")
	pidFile(t, dir, "shop-5a2b3c4d", "1")
	reused := fakeDaemon(t, dir, "shop-6a2b3c4d", waits)
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "bu-shop-6a2b3c4d.pid"), long, long); err != nil {
		t.Fatal(err)
	}
	r := Reaper{Dir: dir, Tmp: t.TempDir(), Slug: "shop", MinAge: -1}

	got, err := r.Pass(t.Context(), InUse{Clients: []string{"2a2b3c4d-5e6f"}})
	want := "{[shop-1a2b3c4d-w1 shop-1a2b3c4d] [shop-3a2b3c4d shop-4a2b3c4d shop-5a2b3c4d shop-6a2b3c4d] [shop-2a2b3c4d]}"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	for _, id := range []proc.ID{left, stubborn} {
		if id.Alive() {
			t.Errorf("pid %d lives", id.PID)
		}
	}
	for _, id := range []proc.ID{used, bare, aux, other, stranger, reused} {
		if !id.Alive() {
			t.Errorf("pid %d was ended: %s", id.PID, proc.Environ(id.PID))
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "bu-*"))
	if len(files) != 2*5 {
		t.Errorf("files left: %q", files)
	}
}

// A session's folder goes when nothing runs in it and its client is away, be
// it that its daemon has ended by itself long ago; and no other.
func TestReaperRemovesFolders(t *testing.T) {
	dir, tmp, kept := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(kept, "file"), "", 0o600)
	long := time.Now().Add(-time.Hour)
	folder := func(session string) {
		t.Helper()
		path := filepath.Join(tmp, session)
		err := errors.Join(os.MkdirAll(filepath.Join(path, "shots"), 0o700), os.Symlink(kept, filepath.Join(path, "elsewhere")), os.Chtimes(path, long, long))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(kept, filepath.Join(tmp, "shop-aaaaaaaa")), os.Chtimes(kept, long, long)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tmp, "shop-bbbbbbbb"), "no folder", 0o600)
	for _, session := range []string{
		"shop-1f2b3c4d", "shop-2f2b3c4d-w1", "shop-3f2b3c4d", "shop-4f2b3c4d", "shop-5f2b3c4d", "shop-6f2b3c4d", // ours
		"shop", "shop-aux", "shop-2-1f2b3c4d", "web-1f2b3c4d",
	} {
		folder(session)
	}
	fakeDaemon(t, dir, "shop-3f2b3c4d", waits)
	if err := os.Remove(filepath.Join(dir, "bu-shop-3f2b3c4d.pid")); err != nil {
		t.Fatal(err)
	}
	used := filepath.Join(tmp, "shop-4f2b3c4d") // by a call just now
	if err := os.Chtimes(used, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	pidFile(t, dir, "shop-5f2b3c4d", "no pid")
	pidFile(t, dir, "shop-6f2b3c4d", "no pid")
	r := Reaper{Dir: dir, Tmp: tmp, Slug: "shop", MinAge: time.Minute}

	got, err := r.Pass(t.Context(), InUse{Clients: []string{"6f2b3c4d-5e6f"}, Tasks: []string{"2f2b3c4d-5e6f"}})
	if want := "{[] [shop-5f2b3c4d shop-6f2b3c4d shop-1f2b3c4d] []}"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	left := func(want string) {
		t.Helper()
		var names []string
		entries, err := os.ReadDir(tmp)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := fmt.Sprint(names); err != nil || got != want {
			t.Errorf("left: %s, %v, want %s", got, err, want)
		}
	}
	left("[shop shop-2-1f2b3c4d shop-2f2b3c4d-w1 shop-3f2b3c4d shop-4f2b3c4d shop-6f2b3c4d shop-aaaaaaaa shop-aux shop-bbbbbbbb web-1f2b3c4d]")

	// A task that is over needs its folders no more, its daemon's too.
	last := fakeDaemon(t, dir, "shop-4f2b3c4d", `exec perl -e sleep -- "$0" "$1"`) // without children that would outlive it
	eventually(t, "exec, in whose course a process has no arguments", func() bool { return proc.HasEntry(proc.Cmdline(last.PID), "perl") })
	if got, err := r.EndTask(t.Context(), "4f2b3c4d-5e6f"); err != nil || len(got.Ended) != 1 || len(got.Cleaned) > 0 || last.Alive() {
		t.Errorf("%+v, %v", got, err)
	}
	left("[shop shop-2-1f2b3c4d shop-2f2b3c4d-w1 shop-3f2b3c4d shop-6f2b3c4d shop-aaaaaaaa shop-aux shop-bbbbbbbb web-1f2b3c4d]")
	if _, err := os.Stat(filepath.Join(kept, "file")); err != nil {
		t.Errorf("where a link leads: %v", err)
	}
}

func TestReaperKeepsTheYoung(t *testing.T) {
	dir := t.TempDir()
	id := fakeDaemon(t, dir, "shop-1a2b3c4d", waits)
	r := Reaper{Dir: dir, Tmp: t.TempDir(), Slug: "shop", MinAge: ReapMinAge(time.Second, 0)}
	if got, err := r.Pass(t.Context(), InUse{}); err != nil || len(got.Kept) != 1 || !id.Alive() {
		t.Errorf("%+v, %v", got, err)
	}
	// A task that is over is over, however young its daemons are.
	if got, err := r.EndTask(t.Context(), "1a2b3c4d-5e6f"); err != nil || len(got.Ended) != 1 || id.Alive() {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReaperTaskFormat(t *testing.T) {
	dir := t.TempDir()
	id := fakeDaemon(t, dir, "shop-my_task", waits)
	r := Reaper{Dir: dir, Tmp: t.TempDir(), Slug: "shop", MinAge: -1}
	if got, err := r.Pass(t.Context(), InUse{}); err != nil || len(got.Ended) > 0 {
		t.Errorf("hex format: %+v, %v", got, err)
	}
	r.AnyTasks, r.Others = true, []string{"shop", "shop-2"}
	bare := fakeDaemon(t, dir, "shop-2", waits)
	if got, err := r.Pass(t.Context(), InUse{}); err != nil || len(got.Ended) != 1 || id.Alive() {
		t.Errorf("any format: %+v, %v", got, err)
	}
	if !bare.Alive() {
		t.Error("the daemon of the store shop-2 was ended")
	}
}
