package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/lifecycle/proc"
	"cdpmux/proxy/proxytest"
)

// The reaper and the real daemon: who is there stays, who has left goes, and
// the daemons of another store are not looked at.
func TestReapDaemons(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	second := operatorOf(t, o.home, "t-2") // its sessions begin like t's
	o.ok(t, "stores add")
	run := filepath.Join(o.state(), "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(run, "bu-t-8a2b3c4d.pid")
	if err := os.WriteFile(old, []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.ok(t, "ensure", o.flags("--grace", "0", "--reap")...)
	eventually(t, 5*time.Second, "end of the files that serve --reap found", func() bool {
		_, err := os.Stat(old)
		return err != nil
	})
	second.ok(t, "ensure", "--", "--listen", second.addr, "--browser", "attach", "--endpoint", proxytest.StartChromium(t).HTTP)

	task, other := o.daemon(t, "t-1a2b3c4d", "1a2b3c4d-5e6f"), o.daemon(t, "t-2a2b3c4d", "2a2b3c4d-5e6f")
	bare, others := o.daemon(t, "t", "nobodys"), second.daemon(t, "t-2-1a2b3c4d", "1a2b3c4d-5e6f")
	bystander := exec.Command("sleep", "600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bystander.Process.Kill(); _ = bystander.Wait() })
	stale := filepath.Join(run, "bu-t-9a2b3c4d.pid")
	if err := os.WriteFile(stale, []byte(strconv.Itoa(bystander.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	lives := func(when string, id proc.ID, want bool) {
		t.Helper()
		if id.Alive() != want {
			t.Errorf("%s: process %d lives: %v, want %v", when, id.PID, !want, want)
		}
	}

	mustEqual(t, "daemons ended while their clients are there", "[]", o.reap(t, "--older-than", "100ms"))
	for _, id := range []proc.ID{task, other, bare, others, proc.Identify(bystander.Process.Pid)} {
		lives("after a pass", id, true)
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("the files of a daemon whose pid is a stranger's are there")
	}

	// A client vanishes and leaves its daemon.
	o.closeClient(t, "2a2b3c4d-5e6f")
	o.closeClient(t, "nobodys")
	mustEqual(t, "daemons of clients that vanished", "[t-2a2b3c4d]", o.reap(t, "--older-than", "100ms"))
	lives("after its client vanished", other, false)
	lives("a bare slug", bare, true)
	// A task ends, in all stores.
	mustEqual(t, "daemons of a task that has ended", "[t-1a2b3c4d t-2-1a2b3c4d]", o.reap(t, "--task", "1a2b3c4d-5e6f"))
	lives("after its task ended", task, false)
	lives("after its task ended", others, false)
	lives("a stranger", proc.Identify(bystander.Process.Pid), true)
	left, _ := filepath.Glob(filepath.Join(run, "bu-*"))
	mustEqual(t, "files of daemons", fmt.Sprint([]string{filepath.Join(run, "bu-t.pid"), filepath.Join(run, "bu-t.sock")}), fmt.Sprint(left))
	if err := bare.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// reap names the daemons that a pass over all stores ended.
func (o *operator) reap(t *testing.T, args ...string) string {
	t.Helper()
	var ended []string
	var stores []struct{ Ended []string }
	decode(t, []byte(cdpmux(t, append([]string{"reap", "--home", o.state(), "--json"}, args...)...)), &stores)
	for _, s := range stores {
		ended = append(ended, s.Ended...)
	}
	slices.Sort(ended)
	return fmt.Sprint(ended)
}

// daemon has browser-harness start a daemon, as the wrapper does.
func (o *operator) daemon(t *testing.T, session, client string) proc.ID {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(pythonDir(t), "browser-harness"))
	cmd.Env = append(os.Environ(), "HOME="+o.home, "BH_RUNTIME_DIR="+filepath.Join(o.state(), "run"), "BH_RUNTIME_DIR_SHARED=1",
		"BH_TMP_DIR="+filepath.Join(o.home, session), "BH_HOME="+filepath.Join(o.home, "bh"), "BH_TELEMETRY=0",
		"BU_NAME="+session, "BU_CDP_WS=ws://"+o.addr+"/client-"+client, "NO_PROXY=127.0.0.1,localhost")
	cmd.Stdin = strings.NewReader("print(len(list_tabs()))")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("browser-harness of %s: %v\n%s", session, err, out)
	}
	return proc.Identify(o.daemonPID(t, session))
}

// daemonPID reads the pid file of a daemon.
func (o *operator) daemonPID(t *testing.T, session string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.state(), "run", "bu-"+session+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// closeClient ends a client, by the control API.
func (o *operator) closeClient(t *testing.T, id string) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(o.state(), "run", "t.admin"))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+o.addr+"/v1/clients/"+id+"/close", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var closed struct{ Tabs int }
	if err := json.NewDecoder(resp.Body).Decode(&closed); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("close of client %s: %s, %v", id, resp.Status, err)
	}
}
