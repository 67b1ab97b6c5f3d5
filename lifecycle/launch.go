package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// run is one launch of Chrome, from exec until nothing of it is left.
type run struct {
	// static after launch
	root    procID
	cmd     *exec.Cmd
	profile string
	tmpdir  string
	out     *output
	exited  chan struct{} // closed when the root process has been reaped

	endTicks uint64 // when that was; valid once exited is closed

	// owned by whose turn it is
	ws string // once ready
}

// maxTmpdir is what Chrome's socket path leaves: with 63 bytes it aborts.
const maxTmpdir = 62

// driverSwitches make a browser fit for many drivers at once: no questions at
// the first run, and a tab that is not in front works on.
var driverSwitches = []string{
	"--no-first-run",
	"--no-default-browser-check",
	"--disable-backgrounding-occluded-windows",
	"--disable-renderer-backgrounding",
	"--disable-background-timer-throttling",
}

// launch starts the process. It does not wait for Chrome to be ready.
func (c *Chrome) launch() (*run, error) {
	binary, err := findChrome(c.cfg.Path)
	if err != nil {
		return nil, err
	}
	profile, err := prepareProfile(c.cfg.Profile, c.cfg.ForgetSessionCookies)
	if err != nil {
		return nil, err
	}
	tmpdir, err := makeTmpdir(c.cfg.Scratch)
	if err != nil {
		return nil, err
	}
	out, stderr, err := newOutput(c.cfg.Log)
	if err != nil {
		_ = os.Remove(tmpdir)
		return nil, err
	}
	cmd := exec.Command(binary, c.args(profile)...)
	cmd.Env = append(allowedEnv(os.Environ()), "TMPDIR="+tmpdir)
	cmd.Stdout, cmd.Stderr = stderr, stderr // an *os.File, which Wait does not wait for
	cmd.SysProcAttr = ownSession()
	err = cmd.Start()
	stderr.Close()
	if err != nil {
		out.close()
		_ = os.Remove(tmpdir)
		return nil, &Failure{Kind: BrowserMissing, Text: err.Error(), Hint: "give another binary with --chrome"}
	}
	r := &run{
		root:    identify(cmd.Process.Pid),
		cmd:     cmd,
		profile: profile,
		tmpdir:  tmpdir,
		out:     out,
		exited:  make(chan struct{}),
	}
	go r.reap()
	return r, nil
}

func (c *Chrome) args(profile string) []string {
	args := append([]string{"--remote-debugging-port=0", "--user-data-dir=" + profile}, driverSwitches...)
	if c.cfg.Headless {
		args = append(args, "--headless=new")
	}
	if c.cfg.NoSandbox {
		args = append(args, "--no-sandbox")
	}
	return append(args, c.cfg.Args...)
}

// checkArg refuses switches that have a flag of ours, or none for good reason.
func checkArg(arg string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	switch {
	case strings.HasPrefix(name, "remote-debugging-"):
		return fmt.Errorf("%s is refused: the proxy chooses how it reaches Chrome", arg)
	case name == "user-data-dir":
		return fmt.Errorf("%s is refused: use --profile DIR", arg)
	case name == "headless", name == "no-sandbox":
		return fmt.Errorf("%s is refused: use cdpmux's own --%s", arg, name)
	}
	return nil
}

// allowedEnv keeps what a browser needs to run and to show itself. Tokens of
// ours and proxies of the shell's do not reach it.
func allowedEnv(env []string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "LANG", "TZ", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS":
			out = append(out, kv)
		default:
			if strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "FONTCONFIG_") {
				out = append(out, kv)
			}
		}
	}
	return out
}

// makeTmpdir makes a private TMPDIR with a short path. Its name is in the
// environment of this launch only, so it also marks the launch's processes.
func makeTmpdir(parent string) (string, error) {
	if parent == "" {
		parent = "/run/cdpmux"
		if privateDir(parent) != nil || mayWrite(parent) != nil {
			parent = "/tmp/cdpmux-" + strconv.Itoa(os.Getuid())
		}
	}
	if err := privateDir(parent); err != nil {
		return "", fmt.Errorf("directory for Chrome's temporary files: %w", err)
	}
	dir := filepath.Join(parent, randomHex())
	if len(dir) > maxTmpdir {
		return "", &Failure{
			Kind: TmpdirTooLong,
			Text: fmt.Sprintf("Chrome's temporary directory %s has %d bytes, it may have %d", dir, len(dir), maxTmpdir),
			Hint: "let /run/cdpmux or /tmp be writable",
		}
	}
	return dir, os.Mkdir(dir, 0o700)
}

// reap waits for the root process.
func (r *run) reap() {
	_ = r.cmd.Wait() // its state tells
	r.endTicks = bootTicks()
	close(r.exited)
}

// ended reports whether the root process has ended. Others may be left.
func (r *run) ended() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// await waits until the root process has ended, at most for d, and reports
// whether it has.
func (r *run) await(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.exited:
	case <-t.C:
	case <-ctx.Done():
	}
	return r.ended()
}

// awaitReady waits until Chrome answers. Its own line on stderr gives the
// address first and cannot be stale; the file in the profile is for binaries
// that hide their stderr.
func (r *run) awaitReady(ctx context.Context) error {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	var ws string
	said := false // by Chrome itself
	for {
		select {
		case ws = <-r.out.listening:
			said = true
		case <-poll.C:
			if !said {
				ws = readActivePort(r.profile)
			}
		case <-r.exited:
			f := launchFailure(r.cmd.ProcessState.ExitCode(), r.out.rest())
			f.Text = fmt.Sprintf("start %s: %s (%s)", r.cmd.Path, f.Text, rootExit(r.cmd.ProcessState))
			return f
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			return &Failure{
				Kind:  LaunchTimeout,
				Text:  "Chrome was not ready in time",
				Hint:  "try again, or allow more with --start-timeout",
				Lines: lastLines(r.out.lines(), ""),
			}
		}
		if ws == "" || prove(ctx, ws) != nil {
			continue
		}
		// A Chrome without a usable profile listens, but never opens a window.
		if f := launchFailure(anyExit, r.out.lines()); f.Kind == ProfileInvalid {
			return f
		}
		r.ws = ws
		return nil
	}
}

// readActivePort returns the address in DevToolsActivePort, or nothing while
// the file is missing or half written.
func readActivePort(profile string) string {
	b, _ := os.ReadFile(filepath.Join(profile, activePort))
	port, path, ok := strings.Cut(string(b), "\n")
	path = strings.TrimSpace(path)
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || !ok || !strings.HasPrefix(path, "/devtools/browser/") {
		return ""
	}
	return "ws://127.0.0.1:" + port + path
}
