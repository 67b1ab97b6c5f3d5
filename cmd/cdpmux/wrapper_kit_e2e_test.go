package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/proxy/admin"
	"cdpmux/wrapper"
)

// task is what the agents of these tests work on.
const task = "1a2b3c4d-5e6f"

// agents are those who call browser-use on one PATH.
type agents struct {
	mux    *mux
	home   string // theirs, and the state directory's parent
	path   string // PATH
	starts chan chan<- struct{}
}

// startAgents writes the wrapper of store t, serves it when the wrapper first
// asks for that, and gives the agents its PATH.
func startAgents(t *testing.T) *agents {
	t.Helper()
	a := &agents{home: tempHome(t), starts: make(chan chan<- struct{})}
	state := filepath.Join(a.home, "s")
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := make(chan struct{})
		select {
		case a.starts <- started:
			<-started
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(api.Close)
	addr := freeAddr(t)
	serveAt(t, state, "--listen", addr).stop(t) // which is remembered
	cdpmux(t, "wrapper", "write", "--store", "t", "--home", state, "--real", filepath.Join(pythonDir(t), "python"),
		"--start-url", api.URL, "--timeout", "60")
	a.path = strings.TrimSpace(cdpmux(t, "wrapper", "path", "--store", "t", "--home", state))
	t.Cleanup(func() { mustLeaveNothing(t, a.home) })
	first := make(chan call, 1)
	go func() { first <- a.run(t.Context(), task, "print('up')") }()
	select {
	case started := <-a.starts:
		a.mux = serveAt(t, state, append(grace, "--listen", addr)...)
		close(started)
	case got := <-first:
		t.Fatalf("with no proxy: want the start API asked, got %v", got)
	}
	mustEqual(t, "output of the first call", "up\n", (<-first).ok(t))
	t.Cleanup(func() { a.endDaemons(t) })
	return a
}

// endDaemons ends the daemons that browser-use has left.
func (a *agents) endDaemons(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(a.mux.home, "run", "bu-*.pid"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		pid, bad := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || bad != nil || !slices.Contains(processesWith(a.home), pid) {
			t.Errorf("%s: want the pid of a daemon, got %q, %v", file, text, err)
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// freeAddr is an address that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// cdpmux runs a command of the product that must succeed.
func cdpmux(t *testing.T, args ...string) string {
	t.Helper()
	p := start(t, raceBinary(t), args...)
	if code := p.wait(t, 30*time.Second); code != 0 {
		t.Fatalf("cdpmux %v: exit %d; stderr:\n%s", args, code, &p.stderr)
	}
	return p.stdout.String()
}

// call is one ended call of browser-use.
type call struct {
	code           int
	stdout, stderr string
	err            error
}

func (c call) String() string {
	return fmt.Sprintf("exit %d, %v\nstdout: %s\nstderr: %s", c.code, c.err, c.stdout, tail(c.stderr, 20))
}

// ok returns the output of a call that must have worked.
func (c call) ok(t *testing.T) string {
	t.Helper()
	if c.code != 0 || c.err != nil {
		t.Errorf("browser-use: %v", c)
	}
	return c.stdout
}

// run is what an agent types: browser-use <args> with a script on stdin.
func (a *agents) run(ctx context.Context, task, script string, args ...string) call {
	return a.runOn(ctx, a.path, task, script, args...)
}

func (a *agents) runOn(ctx context.Context, path, task, script string, args ...string) call {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", `browser-use "$@"`, "agent"}, args...)...)
	cmd.Env = []string{"PATH=" + path, "HOME=" + a.home, "BH_TELEMETRY=0", "CDPMUX_TASK_ID=" + task}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(script), &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return call{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), err}
}

// clients are the ids that the proxy knows.
func (a *agents) clients(t *testing.T) []string {
	t.Helper()
	var st admin.Status
	decode(t, json.RawMessage(cdpmux(t, "status", "--store", "t", "--home", a.mux.home, "--json")), &st)
	var ids []string
	for _, c := range st.Clients {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}

// otherStore writes the wrapper of another store, whose proxy would be at addr,
// and returns the PATH of its agents.
func (a *agents) otherStore(t *testing.T, slug, addr string) string {
	t.Helper()
	bin := wrapper.Bin{Dir: filepath.Join(a.mux.home, "bin")}
	s := wrapper.Script{Slug: slug, ID: "id-2", Addr: addr, Home: a.mux.home, Cdpmux: "/nowhere", Settings: wrapper.Defaults()}
	s.Real, s.StartURL = filepath.Join(pythonDir(t), wrapper.Name), "http://127.0.0.1:1/start"
	if err := bin.Write(s); err != nil {
		t.Fatal(err)
	}
	return bin.Path(slug, os.Getenv("PATH"))
}

func mustEqual[T comparable](t *testing.T, what string, want, got T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}
