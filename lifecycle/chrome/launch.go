package chrome

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
)

// maxTmpdir is what Chrome's socket path leaves: with 63 bytes it aborts.
// maxSocket is what the kernel takes.
const (
	maxTmpdir = 62
	maxSocket = 107
)

// driverSwitches make a browser fit for many drivers at once: no questions at
// the first run, and a tab that is not in front works on.
var driverSwitches = []string{
	"--no-first-run",
	"--no-default-browser-check",
	"--disable-backgrounding-occluded-windows",
	"--disable-renderer-backgrounding",
	"--disable-background-timer-throttling",
}

// launch starts a Chrome, if the gate lets it.
func (c *Chrome) launch(ctx context.Context, lock *os.File) (lifecycle.Endpoint, error) {
	binary, err := Find(c.cfg.Path)
	if err != nil {
		return lifecycle.Endpoint{}, err
	}
	spec, err := c.spec(binary)
	if err != nil {
		return lifecycle.Endpoint{}, err
	}
	if spec.Profile, err = prepareProfile(c.cfg.Profile, c.cfg.ForgetSessionCookies); err != nil {
		return lifecycle.Endpoint{}, err
	}
	spec.Args = c.args(spec.Profile)
	watch := lifecycle.NewWatch()
	started := func(error) {}
	if c.cfg.Gate != nil {
		if started, err = c.cfg.Gate(ctx, c.after, c.why); err != nil {
			return lifecycle.Endpoint{}, err
		}
	}
	watch.Done("lock", true)
	c.after, c.why = lifecycle.EndNone, ""
	endpoint, err := c.begin(ctx, lock, spec)
	started(err)
	if err != nil {
		return lifecycle.Endpoint{}, err
	}
	endpoint.Stages = append(watch.Stages, endpoint.Stages...)
	return endpoint, nil
}

// begin has a keeper start Chrome and waits until it is ready.
func (c *Chrome) begin(ctx context.Context, lock *os.File, spec keeper.Spec) (lifecycle.Endpoint, error) {
	h, err := keeper.Spawn(c.cfg.Keeper, lock, spec, c.printed)
	if err != nil {
		return lifecycle.Endpoint{}, err
	}
	c.held, c.id, c.adopted = h, spec.ID, false
	r, err := h.Await(ctx)
	switch {
	case err == nil:
		c.cfg.Log.Info().Int("pid", r.Root).Str("binary", spec.Binary).Interface("stages", r.Stages).Msg("chrome ready")
		return lifecycle.Endpoint{WS: r.WS, Incarnation: spec.ID, Stages: r.Stages, Ending: h.Ended()}, nil
	case ctx.Err() != nil:
		err = ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			err = &lifecycle.Failure{Kind: lifecycle.LaunchTimeout, Text: "Chrome was not ready in time"}
		}
		receipt, lost := h.Stop(c.cfg.Waits)
		if lost != nil || !receipt.Verified {
			c.cfg.Log.Error().Err(lost).Interface("receipt", receipt).Msg("half-started chrome is left")
			return lifecycle.Endpoint{}, err // held, or found by its record
		}
		var f *lifecycle.Failure
		if errors.As(err, &f) {
			f.Lines = h.Last().Tail
		}
	default:
		if receipt := h.Last().Receipt; receipt != nil && !receipt.Verified {
			c.cfg.Log.Error().Interface("receipt", receipt).Msg("chrome that did not start is left")
			return lifecycle.Endpoint{}, err
		}
	}
	h.Wait()
	c.held = nil
	return lifecycle.Endpoint{}, err
}

// spec is what the keeper is to run.
func (c *Chrome) spec(binary string) (keeper.Spec, error) {
	parent := c.cfg.Scratch
	if parent == "" {
		dir, err := lifecycle.MachineDir()
		if err != nil {
			return keeper.Spec{}, err
		}
		parent = dir
	}
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	id := hex.EncodeToString(b[:])
	tmpdir := filepath.Join(parent, id)
	if len(tmpdir) > maxTmpdir {
		return keeper.Spec{}, &lifecycle.Failure{
			Kind: lifecycle.TmpdirTooLong,
			Text: fmt.Sprintf("Chrome's temporary directory %s has %d bytes, it may have %d", tmpdir, len(tmpdir), maxTmpdir),
		}
	}
	if n := len(c.cfg.Upstream); n > maxSocket {
		return keeper.Spec{}, &lifecycle.Failure{
			Kind: lifecycle.LaunchFailed,
			Text: fmt.Sprintf("the socket %s has a path of %d bytes, it may have %d", c.cfg.Upstream, n, maxSocket),
			Hint: "use a shorter --home, or --upstream ws",
		}
	}
	return keeper.Spec{
		ID: id, Binary: binary, Env: allowedEnv(os.Environ()), TMPDIR: tmpdir,
		Socket: tmpdir + ".keeper", Upstream: c.cfg.Upstream, Record: c.cfg.Record, Grace: c.cfg.Grace, Waits: c.cfg.Waits,
		Verbose: c.cfg.Log.GetLevel() <= zerolog.DebugLevel,
	}, nil
}

// args are Chrome's switches. With the pipe it quits when its keeper dies; the
// port is what we connect to, unless the pipe serves for that as well.
func (c *Chrome) args(profile string) []string {
	args := append([]string{"--remote-debugging-pipe", "--user-data-dir=" + profile}, driverSwitches...)
	if c.cfg.Upstream == "" {
		args = append(args, "--remote-debugging-port=0")
	}
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

func (c *Chrome) printed(line string) { c.cfg.Log.Debug().Str("line", line).Msg("chrome prints") }
