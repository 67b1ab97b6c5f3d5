package proxytest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Chromium is a real browser that runs for one test, headless, with a fresh
// profile, in a process group of its own.
type Chromium struct {
	WS      string // ws://127.0.0.1:port/devtools/browser/<uuid>
	HTTP    string // http://127.0.0.1:port
	Pid     int
	Profile string // --user-data-dir

	tb      testing.TB
	home    string        // holds the profile; in the command line of every process of this browser
	stopped chan struct{} // closed when the browser process has ended
	gone    atomic.Bool   // all of it, verified
}

// FindChromium returns the browser's path: $CDPMUX_CHROME, or the first one
// that is installed.
func FindChromium() (string, error) {
	if path := os.Getenv("CDPMUX_CHROME"); path != "" {
		return path, nil
	}
	for _, name := range []string{"/usr/lib/chromium/chromium", "chromium", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium found: apt-get install chromium, or set CDPMUX_CHROME to a Chrome's path")
}

// StartChromium starts a browser and waits until DevTools listens. The browser
// is killed and verified to be gone when the test ends.
func StartChromium(tb testing.TB, extraArgs ...string) *Chromium {
	tb.Helper()
	path, err := FindChromium()
	if err != nil {
		tb.Fatal(err)
	}
	// Not tb.TempDir: Chrome makes sockets below it, and their paths are limited.
	home, err := os.MkdirTemp("", "cdp")
	if err != nil {
		tb.Fatal(err)
	}
	c := &Chromium{tb: tb, home: home, Profile: filepath.Join(home, "profile"), stopped: make(chan struct{})}
	tb.Cleanup(c.remove)

	args := append([]string{
		"--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--user-data-dir=" + c.Profile,
	}, extraArgs...)
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.Command(path, args...)
	// With HOME there, the crash handlers have the folder in their command line, too.
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stderr, child, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stderr = child
	err = cmd.Start()
	_ = child.Close()
	if err != nil {
		_ = stderr.Close()
		tb.Fatalf("start %s: %v", path, err)
	}
	c.Pid = cmd.Process.Pid
	tb.Cleanup(c.Kill)

	address := make(chan string, 1)
	go func() {
		defer close(c.stopped)
		output := readAddress(stderr, address)
		_, _ = io.Copy(io.Discard, stderr)
		_ = stderr.Close()
		_ = cmd.Wait()
		if output != "" {
			address <- output
		}
	}()
	select {
	case c.WS = <-address:
	case <-time.After(30 * time.Second):
		tb.Fatalf("%s: no DevTools address after 30 s", path)
	}
	u, err := url.Parse(c.WS)
	if err != nil || u.Scheme != "ws" {
		tb.Fatalf("%s did not start:\n%s", path, c.WS)
	}
	c.HTTP = "http://" + u.Host
	return c
}

// readAddress sends the DevTools address as soon as the browser prints it. At
// the end of the output without one it returns the output.
func readAddress(stderr io.Reader, address chan<- string) string {
	var output strings.Builder
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, found, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
			address <- found
			return ""
		}
		fmt.Fprintln(&output, lines.Text())
	}
	return output.String() + "(end of its output)"
}

// Kill ends all processes of the browser and waits until they are gone.
func (c *Chromium) Kill() {
	c.signal(syscall.SIGKILL)
	deadline := time.Now().Add(10 * time.Second)
	for c.running() {
		if time.Now().After(deadline) {
			c.tb.Errorf("Chromium %d: still running 10 s after SIGKILL", c.Pid)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	<-c.stopped
	c.gone.Store(true)
}

// Stop freezes the browser: all its processes get SIGSTOP.
func (c *Chromium) Stop() { c.signal(syscall.SIGSTOP) }

// Cont undoes Stop.
func (c *Chromium) Cont() { c.signal(syscall.SIGCONT) }

// signal reaches the whole group, while it exists: its number may be given to
// another one afterwards.
func (c *Chromium) signal(sig syscall.Signal) {
	if !c.gone.Load() {
		_ = syscall.Kill(-c.Pid, sig)
	}
}

// running reports whether a process of this browser lives. A killed one whose
// parent has not yet asked for its status has no command line any more.
func (c *Chromium) running() bool {
	procs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, proc := range procs {
		line, err := os.ReadFile(proc)
		if err == nil && bytes.Contains(line, []byte(c.home)) {
			return true
		}
	}
	return false
}

func (c *Chromium) remove() {
	if err := os.RemoveAll(c.home); err != nil {
		c.tb.Errorf("remove the profile: %v", err)
	}
}
