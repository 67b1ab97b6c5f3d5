package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// ChromeConfig says which Chrome to run, and how.
type ChromeConfig struct {
	Path    string   // the binary; empty: look for one
	Args    []string // further switches
	Profile string   // its user data directory, made when missing
	Scratch string   // parent of its private TMPDIR; empty: /run/cdpmux or /tmp/cdpmux-<uid>

	Headless             bool
	NoSandbox            bool
	ForgetSessionCookies bool // let a clean stop end sessions, as Chrome does by itself

	Log zerolog.Logger
}

// Chrome is the backend that runs a Chrome or Chromium of its own.
type Chrome struct {
	// static after NewChrome
	cfg   ChromeConfig
	waits stopWaits

	// turn holds one token: Start and Stop take turns.
	turn chan struct{}

	// owned by whose turn it is
	run *run // the last launch; nil when nothing of it can be left
}

// NewChrome checks cfg without touching anything.
func NewChrome(cfg ChromeConfig) (*Chrome, error) {
	for _, arg := range cfg.Args {
		if err := checkArg(arg); err != nil {
			return nil, err
		}
	}
	return &Chrome{cfg: cfg, waits: defaultWaits, turn: make(chan struct{}, 1)}, nil
}

// Start returns the address of the running Chrome; it launches one when there
// is none, or when the last one has ended. ctx bounds it: when ctx ends first,
// the half-started Chrome is torn down.
func (c *Chrome) Start(ctx context.Context) (Endpoint, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return Endpoint{}, ctx.Err()
	}
	if c.run != nil {
		switch reused, err := c.reuse(ctx); {
		case err != nil:
			return Endpoint{}, err
		case reused:
			return Endpoint{c.run.ws}, nil
		}
		c.run = nil
	}
	begin := time.Now()
	r, err := c.launch()
	if err != nil {
		return Endpoint{}, err
	}
	c.run = r
	if err := r.awaitReady(ctx); err != nil {
		// The caller hears why. Without an address the ladder is a short one.
		if receipt := c.stop(context.WithoutCancel(ctx), r); receipt.Verified {
			c.run = nil
		} else {
			c.cfg.Log.Error().Interface("receipt", receipt).Msg("half-started chrome is left")
		}
		return Endpoint{}, err
	}
	c.cfg.Log.Info().Int("pid", r.root.pid).Str("binary", r.cmd.Path).Dur("ms", time.Since(begin)).Msg("chrome ready")
	return Endpoint{r.ws}, nil
}

// reuse reports whether the last launch still serves. When it has ended, what
// is left of it is removed: two Chromes must never write to one profile.
func (c *Chrome) reuse(ctx context.Context) (bool, error) {
	r := c.run
	if !r.ended() && r.ws != "" {
		if prove(ctx, r.ws) == nil {
			return true, nil
		}
		// The socket of a dying Chrome breaks a moment before its process ends.
		if !r.await(ctx, 2*time.Second) {
			return false, &Failure{
				Kind: BrowserUnreachable,
				Text: fmt.Sprintf("Chrome (pid %d) runs but does not answer", r.root.pid),
				Hint: "stop the proxy; it ends this Chrome",
			}
		}
	}
	receipt := c.stop(ctx, r)
	c.cfg.Log.Warn().Interface("receipt", receipt).Msg("chrome had ended")
	if !receipt.Verified {
		return false, &Failure{
			Kind: CleanupPending,
			Text: fmt.Sprintf("%d processes of the last Chrome are still there", receipt.Survivors),
			Hint: "try again; if it stays so, end them by hand",
		}
	}
	return false, nil
}

// Stop ends Chrome by the ladder of stop.go. It waits for a start in progress:
// end that one's ctx first. When ctx ends, the ladder goes on at once to its
// next rung.
func (c *Chrome) Stop(ctx context.Context) Receipt {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.run == nil {
		return Receipt{Method: MethodNone, Verified: true}
	}
	receipt := c.stop(ctx, c.run)
	if receipt.Verified {
		c.run = nil
	}
	return receipt
}

// Probe asks the running Chrome for its version.
func (c *Chrome) Probe(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	r := c.run
	<-c.turn
	if r == nil || r.ended() {
		return errors.New("chrome does not run")
	}
	return prove(ctx, r.ws)
}
