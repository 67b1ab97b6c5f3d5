package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// mux is one running `cdpmux serve` with a Chromium of its own behind it.
type mux struct {
	*process
	home   string // its --home
	addr   string // host:port it listens on
	killed bool
}

var readyLine = regexp.MustCompile(`^cdpmux t ready http://(\S+) connect ws://([^/]+)(?:/t/<capability>)?/client-<task_id>\n$`)

// Tests that measure, or look at all processes of the machine, run alone. Those
// that only wait for browsers are parallel: they run after all the others.

// serve starts the proxy for store "t" and waits for its ready line. When the
// test ends it is stopped by SIGINT and must leave nothing behind.
func serve(t *testing.T, args ...string) *mux {
	t.Helper()
	return serveAt(t, tempHome(t), args...)
}

// serveAt is serve with a home that outlives the proxy.
func serveAt(t *testing.T, home string, args ...string) *mux {
	t.Helper()
	return serveBinary(t, raceBinary(t), home, args...)
}

func serveBinary(t *testing.T, binary, home string, args ...string) *mux {
	t.Helper()
	m := &mux{home: home}
	m.process = start(t, binary, append(serveFlags(m.home), args...)...)
	t.Cleanup(func() { m.stop(t) })
	eventually(t, 15*time.Second, "a ready line on stdout", func() bool {
		return strings.Contains(m.stdout.String(), "\n") || m.hasExited()
	})
	match := readyLine.FindStringSubmatch(m.stdout.String())
	if match == nil || match[1] != match[2] {
		t.Fatalf("stdout: want one line like %s, got %q; stderr:\n%s", readyLine, &m.stdout, &m.stderr)
	}
	m.addr = match[1]
	return m
}

// serveFlags are the flags every proxy of these tests runs with. Tabs go with
// their client, which may have any number; a later flag says otherwise.
func serveFlags(home string) []string {
	flags := []string{"serve", "--store", "t", "--home", home, "--listen", "127.0.0.1:0", "--headless", "--grace", "0", "--tab-cap", "0"}
	if os.Getuid() == 0 {
		flags = append(flags, "--no-sandbox")
	}
	return flags
}

func (m *mux) http(path string) string { return "http://" + m.addr + path }
func (m *mux) ws(path string) string   { return "ws://" + m.addr + path }
func (m *mux) profile() string         { return filepath.Join(m.home, "profiles", "t") }

// browserURL is the WebSocket address of the Chromium behind, for looking past the proxy.
func (m *mux) browserURL(t *testing.T) string {
	t.Helper()
	host, path := m.browserAddress(t)
	return "ws://" + host + path
}

// browserAddress is where the Chromium behind listens, and the path of its browser target.
func (m *mux) browserAddress(t *testing.T) (host, path string) {
	t.Helper()
	eventually(t, 20*time.Second, "port and path in DevToolsActivePort", func() (found bool) {
		text, _ := os.ReadFile(filepath.Join(m.profile(), "DevToolsActivePort"))
		host, path, found = strings.Cut(strings.TrimSpace(string(text)), "\n")
		return found
	})
	return "127.0.0.1:" + host, path
}

// browserPID is the pid of the browser process, the parent of all renderers.
func (m *mux) browserPID(t *testing.T) int {
	t.Helper()
	var found []int
	for pid, line := range processesOf(t, m.profile()) {
		if strings.Contains(line, "--user-data-dir=") && !strings.Contains(line, "--type=") {
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		t.Fatalf("browser processes on %s: want one, got pids %v", m.profile(), found)
	}
	return found[0]
}

// kill ends the proxy as kill -9 does, which leaves the browser as it is.
func (m *mux) kill(t *testing.T) {
	t.Helper()
	m.killed = true
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-m.exited
}

// stop interrupts the proxy and checks how it went: exit code 0, a log
// without panics and races, no Chromium left.
func (m *mux) stop(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Logf("stderr of the proxy:\n%s", tail(m.stderr.String(), 40))
	}
	if !m.hasExited() {
		_ = m.cmd.Process.Signal(os.Interrupt)
	}
	if code := m.wait(t, 30*time.Second); code != 0 && !m.killed {
		t.Errorf("exit code after SIGINT: want 0, got %d; stderr:\n%s", code, tail(m.stderr.String(), 40))
	}
	for _, word := range []string{"panic:", "fatal error:", "DATA RACE"} {
		if log := m.stderr.String(); strings.Contains(log, word) {
			t.Errorf("stderr of the proxy has %q:\n%s", word, log[strings.Index(log, word):])
		}
	}
	for pid, line := range processesOf(t, m.profile()) {
		t.Errorf("left behind by the proxy: process %d %.100s", pid, line)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// process is a started command whose output is kept.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr output
	exited         chan struct{} // closed when the command has ended and waitErr is set
	waitErr        error
}

func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.WaitDelay = 5 * time.Second // a child that keeps our pipe must not keep the test
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.waitErr = p.cmd.Wait()
		close(p.exited)
	}()
	return p
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// wait returns the exit code; a process that outlives limit is killed and fails the test.
func (p *process) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill()
		<-p.exited
		t.Errorf("%v still ran after %v; stderr:\n%s", p.cmd.Args, limit, tail(p.stderr.String(), 40))
	}
	if errors.Is(p.waitErr, exec.ErrWaitDelay) {
		t.Errorf("%v left a child that holds its output open", p.cmd.Args)
	}
	return p.cmd.ProcessState.ExitCode()
}

// memory returns one line of /proc/<pid>/status, VmRSS or VmHWM (its peak), in bytes.
func (p *process) memory(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("/proc/%d/status has no %s:\n%s", p.cmd.Process.Pid, field, text)
	}
	kib, _ := strconv.Atoi(string(match[1]))
	return kib << 10
}

// output collects what a process writes; it may be read at any time.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// processesOf returns the command lines that name a Chromium profile, by pid.
func processesOf(t *testing.T, profile string) map[int]string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(paths) == 0 {
		t.Fatalf("processes: these tests read /proc (%v)", err)
	}
	found := map[int]string{}
	for _, path := range paths {
		line, _ := os.ReadFile(path) // empty when the process has just ended
		if bytes.Contains(line, []byte(profile)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		}
	}
	return found
}

// tempHome returns a fresh directory with a short path: Chromium puts sockets below it.
func tempHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the home: %v", err)
		}
	})
	return dir
}

// eventually polls for something outside that announces itself by no event.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within %v", what, limit)
		}
	}
}

// scaled shrinks a repeat count by CDPMUX_TEST_SCALE, never below 2.
func scaled(t *testing.T, n int) int {
	t.Helper()
	text := os.Getenv("CDPMUX_TEST_SCALE")
	if text == "" {
		return n
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale <= 0 {
		t.Fatalf("CDPMUX_TEST_SCALE=%q: want a number above 0", text)
	}
	return max(2, int(float64(n)*scale))
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// binaryDir holds the binaries under test until TestMain ends.
var binaryDir string

var buildRace = sync.OnceValues(func() (string, error) { return build("cdpmux-race", "-race") })
var buildPlain = sync.OnceValues(func() (string, error) { return build("cdpmux") })

// raceBinary is the product with the race detector in it.
func raceBinary(t *testing.T) string { return built(t, buildRace) }

// plainBinary is the product as users run it, for measuring.
func plainBinary(t *testing.T) string { return built(t, buildPlain) }

func built(t *testing.T, build func() (string, error)) string {
	t.Helper()
	if testing.Short() {
		t.Skip("end to end: not with -short")
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(name string, flags ...string) (string, error) {
	path := filepath.Join(binaryDir, name)
	out, err := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

func TestMain(m *testing.M) {
	var err error
	if binaryDir, err = os.MkdirTemp("", "cdpmux-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(binaryDir)
		os.Exit(code)
	}))
}
