package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// operator types commands; what they start has its HOME, so that it is found.
type operator struct {
	home  string // its HOME, and --home is below
	store string
	addr  string // of the store's proxy
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	home := tempHome(t)
	t.Cleanup(func() { mustLeaveNothing(t, home) })
	return operatorOf(t, home, "t")
}

// operatorOf is who runs one more store of a home.
func operatorOf(t *testing.T, home, store string) *operator {
	o := &operator{home, store, freeAddr(t)}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(o.state(), "log", store+".log"))
			t.Logf("log of store %s:\n%s", store, tail(string(log), 40))
		}
		o.run(t, "stop", "--proxy")
	})
	return o
}

func (o *operator) state() string { return filepath.Join(o.home, "s") }

// begin starts a command on the store.
func (o *operator) begin(t *testing.T, command string, args ...string) *process {
	t.Helper()
	all := append([]string{"HOME=" + o.home, raceBinary(t)}, strings.Fields(command)...)
	return start(t, "env", append(append(all, "--store", o.store, "--home", o.state()), args...)...)
}

func (o *operator) run(t *testing.T, command string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := o.begin(t, command, args...)
	code = p.wait(t, 60*time.Second)
	return code, p.stdout.String(), p.stderr.String()
}

// ok runs a command that must work.
func (o *operator) ok(t *testing.T, command string, args ...string) (stdout string) {
	t.Helper()
	code, stdout, stderr := o.run(t, command, args...)
	if code != 0 {
		t.Fatalf("cdpmux %s: exit %d; stdout: %s stderr:\n%s", command, code, stdout, stderr)
	}
	return stdout
}

// flags are serve's, behind a --.
func (o *operator) flags(more ...string) []string {
	flags := []string{"--", "--listen", o.addr, "--headless"}
	if os.Getuid() == 0 {
		flags = append(flags, "--no-sandbox")
	}
	return append(flags, more...)
}

// proxies are the pids of the proxies that run.
func (o *operator) proxies(t *testing.T) (pids []int) {
	t.Helper()
	for pid, line := range processesOf(t, o.state()) {
		if strings.Contains(line, " serve ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (o *operator) proxy(t *testing.T) int {
	t.Helper()
	pids := o.proxies(t)
	if len(pids) != 1 {
		t.Fatalf("proxies: want one, got pids %v", pids)
	}
	return pids[0]
}

func (o *operator) browserState(t *testing.T) string {
	t.Helper()
	var st struct{ Browser struct{ State string } }
	decode(t, []byte(o.ok(t, "status", "--json")), &st)
	return st.Browser.State
}

// However many want it at once, one proxy is started, and all of them find it.
// It is stopped in parts, and whole.
func TestEnsureAtOnce(t *testing.T) {
	o := newOperator(t)
	var calls []*process
	for range 3 {
		calls = append(calls, o.begin(t, "ensure", o.flags()...))
	}
	want := fmt.Sprintf("cdpmux t ready http://%s connect ws://%s/client-<task_id>\n", o.addr, o.addr)
	for _, p := range calls {
		if code := p.wait(t, 60*time.Second); code != 0 || p.stdout.String() != want {
			t.Errorf("ensure: exit %d, stdout %q, want %q; stderr:\n%s", code, &p.stdout, want, &p.stderr)
		}
	}
	proxy := o.proxy(t)
	if sid, err := session(proxy); err != nil || sid != proxy {
		t.Errorf("session of the proxy: %d, %v, want its own", sid, err)
	}
	if state := o.browserState(t); state != "ready" {
		t.Errorf("browser after ensure: %s", state)
	}

	mustEqual(t, "a stop", true, strings.Contains(o.ok(t, "stop"), "browser stopped, graceful"))
	if left := processesOf(t, filepath.Join(o.state(), "profiles", "t")); len(left) != 0 {
		t.Errorf("after stop: %v", left)
	}
	mustEqual(t, "browser after a stop", "stopped", o.browserState(t))
	o.ok(t, "disable")
	mustEqual(t, "browser of a disabled store", "disabled", o.browserState(t))
	if status, _ := request(t, "GET", "http://"+o.addr+"/json/version"); status != http.StatusLocked {
		t.Errorf("a client of a disabled store: want 423, got %d", status)
	}
	o.ok(t, "enable")
	mustEqual(t, "browser of an enabled store", "stopped", o.browserState(t))
	get(t, "http://"+o.addr+"/json/version") // wakes it
	mustEqual(t, "browser after a client came", "ready", o.browserState(t))
	mustEqual(t, "proxy after all this", proxy, o.proxy(t))

	mustEqual(t, "a stop of both", "t: no proxy and no browser is running\n", o.ok(t, "stop", "--proxy"))
	mustLeaveNothing(t, o.home)
	if left := processesOf(t, o.state()); len(left) != 0 {
		t.Errorf("after stop --proxy: %v", left)
	}
	if all := cdpmux(t, "status", "--home", o.state()); !strings.Contains(all, "\nt      down ") {
		t.Errorf("status of all: want store t down, got\n%s", all)
	}

	// The flags are remembered; and a browser that a killed proxy has left is
	// found by its keeper.
	mustEqual(t, "the ready line", want, o.ok(t, "ensure"))
	if err := syscall.Kill(o.proxy(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "end of the proxy", func() bool { return len(o.proxies(t)) == 0 })
	mustEqual(t, "a stop without a proxy", true, strings.Contains(o.ok(t, "stop"), "browser stopped, graceful"))
	mustLeaveNothing(t, o.home)
}

// session is the session id of a process.
func session(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	return strconv.Atoi(fields[3])
}

// What keeps the browser from coming up is told, with an exit code of its own.
func TestEnsureFails(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	refused := func(code int, words []string, args ...string) {
		t.Helper()
		got, stdout, stderr := o.run(t, "ensure", args...)
		if got != code || stdout != "" {
			t.Errorf("ensure %v: exit %d, stdout %q, want exit %d and nothing", args, got, stdout, code)
		}
		for _, word := range words {
			if !strings.Contains(stderr, word) {
				t.Errorf("ensure %v: want %q in stderr, got %s", args, word, stderr)
			}
		}
	}
	refused(1, []string{"browser_missing", "/nonexistent", "--chrome"}, o.flags("--chrome", "/nonexistent")...)
	o.proxy(t) // it stays: the next call may find a Chrome
	o.ok(t, "stop", "--proxy")

	hangs := filepath.Join(o.home, "chrome")
	if err := os.WriteFile(hangs, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	refused(75, []string{"not up in time", "--wait"}, append([]string{"--wait", "3"}, o.flags("--chrome", hangs)...)...)
	o.ok(t, "stop", "--proxy")
	mustLeaveNothing(t, o.home)

	stranger := &http.Server{Addr: o.addr}
	go func() { _ = stranger.ListenAndServe() }()
	eventually(t, 5*time.Second, "stranger on the port", func() bool {
		resp, err := http.Get("http://" + o.addr)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	refused(1, []string{o.addr})
	if err := stranger.Close(); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()

	o.ok(t, "disable")
	refused(1, []string{"t is disabled", "cdpmux enable --store t"})
	if pids := o.proxies(t); len(pids) != 0 {
		t.Errorf("proxies of a disabled store: %v", pids)
	}
}

// Agents need nobody who starts anything: their browser-use does, once.
func TestAgentsWakeTheStore(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.ok(t, "stores add", o.flags("--grace", "0")...)
	o.ok(t, "wrapper write", "--real", filepath.Join(pythonDir(t), "python"), "--timeout", "60")
	a := &agents{mux: &mux{home: o.state()}, home: o.home, path: strings.TrimSpace(o.ok(t, "wrapper path"))}
	t.Cleanup(func() { a.endDaemons(t) })
	calls := make(chan call, 2)
	for _, task := range []string{"1a2b3c4d-5e6f", "2a2b3c4d-5e6f"} {
		go func() { calls <- a.run(t.Context(), task, "print('up')") }()
	}
	for range cap(calls) {
		got := <-calls
		mustEqual(t, "output of a call", "up\n", got.ok(t))
	}
	o.proxy(t)
}
