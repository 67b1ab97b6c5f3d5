package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cdpmux/lifecycle/proc"
)

// An id that is none, or a command that fails, is no list of active tasks.
func TestActiveTasks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tasks")
	if err := os.WriteFile(file, []byte("1a2b3c4d-5e6f\n\n  other \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"1a2b3c4d-5e6f", "other"}
	for _, source := range []string{file, "@cat " + file, "@printf '1a2b3c4d-5e6f\\nother'"} {
		if got, err := activeTasks(t.Context(), source); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", source, got, err)
		}
	}
	for _, source := range []string{"", "@true"} {
		if got, err := activeTasks(t.Context(), source); err != nil || len(got) != 0 {
			t.Errorf("%s: %q, %v, want none", source, got, err)
		}
	}
	for _, source := range []string{file + "-", "@false", "@echo '<html>'", "@echo a; exit 3", "@echo a b"} {
		if got, err := activeTasks(t.Context(), source); err == nil {
			t.Errorf("%s: %q, want an error", source, got)
		}
	}
}

// reap asks the proxy who is there. A daemon whose proxy cannot say is left.
func TestReap(t *testing.T) {
	d := startDouble(t)
	dir, err := d.home.RunDir()
	if err != nil {
		t.Fatal(err)
	}
	daemon := func(session string) proc.ID {
		t.Helper()
		cmd := exec.Command("sh", "-c", "while :; do sleep 0.05; done", "-m", "browser_harness.daemon")
		cmd.Env = append(os.Environ(), "BU_NAME="+session)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		file := filepath.Join(dir, "bu-"+session+".pid")
		if err := os.WriteFile(file, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		return proc.Identify(cmd.Process.Pid)
	}
	alive := func(who string, id proc.ID, want bool) {
		t.Helper()
		if id.Alive() != want {
			t.Errorf("daemon of %s alive: %v, want %v", who, id.Alive(), want)
		}
	}
	there, waiting, active, gone := daemon("demo-1a2b3c4d"), daemon("demo-2a2b3c4d-w1"), daemon("demo-3a2b3c4d"), daemon("demo-4a2b3c4d")
	const clients = `{"clients":[{"id":"1a2b3c4d-5e6f","state":"connected"},{"id":"2a2b3c4d-5e6f-w1","state":"grace"},
		{"id":"2a2b3c4d-5e6f-w1x","state":"connected"},{"id":"4a2b3c4d-5e6f","state":"http"}]}`

	for name, how := range map[string]struct {
		status int
		answer string
		code   int
		flags  []string
	}{
		"the proxy says nothing of them": {500, "", exitFailed, []string{"--older-than", "1ms"}},
		"the list of tasks is wrong":     {200, clients, exitFailed, []string{"--older-than", "1ms", "--active-tasks", "@false"}},
		"all is young":                   {200, clients, exitOK, nil},
	} {
		d.says(how.status, how.answer)
		d.run(t, how.code, append([]string{"reap"}, how.flags...)...)
		alive("a client that is gone, when "+name, gone, true)
	}

	for deadline := time.Now().Add(5 * time.Second); proc.Now()-gone.Ticks <= 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the clock of processes stands still")
		}
	}
	d.says(200, clients)
	out, _ := d.run(t, exitOK, "reap", "--older-than", "10ms", "--active-tasks", "@echo 3a2b3c4d-5e6f")
	mustSay(t, out, "demo-4a2b3c4d: daemon ended\n")
	alive("a connected client", there, true)
	alive("a client in grace", waiting, true)
	alive("an active task", active, true)
	alive("a client that is gone", gone, false)

	d.says(200, clients)
	out, _ = d.run(t, exitOK, "reap", "--task", "2a2b3c4d-5e6f", "--json")
	var list []reapedStore
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || !slices.Equal(list[0].Ended, []string{"demo-2a2b3c4d-w1"}) {
		t.Errorf("reap --task: %s, %v", out, err)
	}
	if want := []string{"GET /status", "POST /v1/clients/2a2b3c4d-5e6f-w1/close"}; !slices.Equal(d.asked, want) {
		t.Errorf("asked: %q, want %q", d.asked, want)
	}
	alive("the task that has ended", waiting, false)
	alive("another task", there, true)
	d.run(t, exitUsage, "reap", "--task", "a b")
	d.run(t, exitUsage, "reap", "--task", "a", "--active-tasks", "f")
	if err := d.lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	out, _ = d.run(t, exitOK, "reap", "--older-than", "1ms", "--json")
	if !strings.Contains(out, "not served") {
		t.Errorf("a store that is not served: %s", out)
	}
	alive("a store that is not served", there, true)
}
