// Package chrome is the backend that runs a Chrome or Chromium of its own,
// held by a keeper.
package chrome

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
)

// Config says which Chrome to run, and how.
type Config struct {
	Path    string   // the binary; empty: look for one
	Args    []string // further switches
	Profile string   // its user data directory, made when missing
	Scratch string   // parent of its private TMPDIR; empty: lifecycle.MachineDir

	Headless             bool
	NoSandbox            bool
	ForgetSessionCookies bool // let a clean stop end sessions, as Chrome does by itself

	Upstream string // socket on which its keeper relays its pipe, so that it opens no port; empty: it has a port

	Keeper []string      // how to run keeper.Run in a process of its own; empty: this program with "keeper"
	Record string        // file by which the next proxy finds the browser; empty: one of this machine's, named after the profile
	Grace  time.Duration // how long it waits for the next proxy
	Waits  keeper.Waits  // of the stop; zero: the usual ones

	Gate lifecycle.Gate `json:"-"` // asked before each launch; nil: no limit
	Log  zerolog.Logger `json:"-"`
}

// Chrome is the backend. The caller holds the store's lock.
type Chrome struct {
	// static after New
	cfg Config

	// turn holds one token: Start and Stop take turns.
	turn chan struct{}

	// owned by whose turn it is
	held    *keeper.Handle // the running keeper; nil: none that we know of
	id      string         // the incarnation that it keeps
	adopted bool           // it was there before us
	after   lifecycle.End  // the end that the next launch follows
	why     string
}

// New checks cfg without touching anything.
func New(cfg Config) (*Chrome, error) {
	for _, arg := range cfg.Args {
		if err := checkArg(arg); err != nil {
			return nil, err
		}
	}
	if len(cfg.Keeper) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cfg.Keeper = []string{self, "keeper"}
	}
	if cfg.Record == "" {
		dir, err := lifecycle.MachineDir()
		if err != nil {
			return nil, err
		}
		cfg.Record = filepath.Join(dir, fmt.Sprintf("browser-%x.json", sha256.Sum256([]byte(cfg.Profile)))[:40])
	}
	d := keeper.DefaultWaits
	w := &cfg.Waits
	*w = keeper.Waits{
		Close: cmp.Or(w.Close, d.Close), Interrupt: cmp.Or(w.Interrupt, d.Interrupt),
		Rest: cmp.Or(w.Rest, d.Rest), Kill: cmp.Or(w.Kill, d.Kill),
	}
	return &Chrome{cfg: cfg, turn: make(chan struct{}, 1)}, nil
}

// Start returns the address of the running Chrome. It adopts the one of an
// earlier proxy; it launches one when there is none, or when the last one has
// ended. ctx bounds it: when ctx ends first, the half-started Chrome is torn
// down.
func (c *Chrome) Start(ctx context.Context) (lifecycle.Endpoint, error) {
	if err := c.take(ctx); err != nil {
		return lifecycle.Endpoint{}, err
	}
	defer c.give()
	if c.held != nil {
		endpoint, err := c.reuse(ctx)
		if err != nil || endpoint.WS != "" {
			return endpoint, err
		}
	}
	lock, endpoint, err := c.settle(ctx)
	if lock == nil {
		return endpoint, err
	}
	defer lock.Close() // the keeper has it by then
	return c.launch(ctx, lock)
}

func (c *Chrome) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Chrome) give() { <-c.turn }

// reuse returns the browser that is kept for us if it still serves, or the
// zero Endpoint when it has ended and is cleaned up: two Chromes must never
// write to one profile.
func (c *Chrome) reuse(ctx context.Context) (lifecycle.Endpoint, error) {
	r, err := c.held.Await(ctx)
	if err == nil {
		if keeper.Prove(ctx, r.WS) == nil && !c.held.HasEnded() {
			return lifecycle.Endpoint{WS: r.WS, Incarnation: c.id, Adopted: c.adopted, Ending: c.held.Ended()}, nil
		}
		// The socket of a dying Chrome breaks a moment before its process ends.
		select {
		case <-c.held.Ended():
		case <-time.After(2 * time.Second):
			return lifecycle.Endpoint{}, &lifecycle.Failure{
				Kind: lifecycle.BrowserUnreachable,
				Text: fmt.Sprintf("Chrome (pid %d) runs but does not answer", r.Root),
				Hint: "it is sought again; if that does not help, it is replaced",
			}
		case <-ctx.Done():
			return lifecycle.Endpoint{}, ctx.Err()
		}
	} else if ctx.Err() != nil {
		return lifecycle.Endpoint{}, ctx.Err()
	}
	r = c.held.Last()
	if r.Receipt == nil {
		c.lose(lifecycle.EndKeeper, "the browser's keeper was lost")
		return lifecycle.Endpoint{}, nil
	}
	c.cfg.Log.Warn().Interface("receipt", r.Receipt).Msg("chrome had ended")
	if !r.Receipt.Verified {
		if c.held.Gone() { // it has given up: what is left is swept by its record
			c.lose(lifecycle.EndCrash, "Chrome's end could not be verified")
			return lifecycle.Endpoint{}, nil
		}
		return lifecycle.Endpoint{}, pending(*r.Receipt)
	}
	if r.Receipt.Method == lifecycle.MethodCrashed {
		c.lose(lifecycle.EndCrash, "Chrome ended by itself: "+r.Receipt.RootExit)
	} else {
		c.lose(lifecycle.EndNone, "") // its keeper was told to end it
	}
	return lifecycle.Endpoint{}, nil
}

// lose notes the end of what was held.
func (c *Chrome) lose(end lifecycle.End, why string) {
	c.held.Close()
	c.held = nil
	c.after, c.why = end, why
}

func pending(r lifecycle.Receipt) *lifecycle.Failure {
	return &lifecycle.Failure{
		Kind: lifecycle.CleanupPending,
		Text: fmt.Sprintf("%d processes of the last Chrome are still there", r.Survivors),
	}
}

// Stop ends Chrome, also one that an earlier proxy left. It waits for a start
// in progress: end that one's ctx first.
func (c *Chrome) Stop(ctx context.Context) lifecycle.Receipt {
	c.turn <- struct{}{}
	defer c.give()
	receipt := lifecycle.Receipt{Method: lifecycle.MethodNone, Verified: true}
	if c.held == nil {
		if _, err := c.recover(ctx); c.held == nil {
			receipt.Verified = !isPending(err)
			c.after = lifecycle.EndNone
			return receipt
		}
	}
	receipt, err := c.held.Stop(c.cfg.Waits)
	if errors.Is(err, keeper.ErrLost) {
		c.lose(lifecycle.EndNone, "")
		receipt = lifecycle.Receipt{Method: lifecycle.MethodNone, Verified: true}
		if rec, _ := keeper.ReadRecord(c.cfg.Record); rec != nil {
			receipt = keeper.Sweep(c.cfg.Record, rec, c.cfg.Waits)
		}
	}
	if receipt.Verified {
		c.held, c.after = nil, lifecycle.EndNone
	}
	return receipt
}

func isPending(err error) bool {
	var f *lifecycle.Failure
	return errors.As(err, &f) && f.Kind == lifecycle.CleanupPending
}

// Probe asks the running Chrome for its version.
func (c *Chrome) Probe(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	h := c.held
	c.give()
	if h == nil || h.Last().State != keeper.Ready {
		return errors.New("chrome does not run")
	}
	return keeper.Prove(ctx, h.Last().WS)
}

// Leave lets the browser live on for the next proxy, as the death of this one
// would: its keeper waits for the grace and then ends it.
func (c *Chrome) Leave() {
	c.turn <- struct{}{}
	defer c.give()
	if c.held != nil {
		c.held.Close()
		c.held = nil
	}
}
