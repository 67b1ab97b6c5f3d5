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

// settle makes sure that no browser of an earlier proxy is left: it returns
// the one that was adopted, or the lock that allows a launch.
func (c *Chrome) settle(ctx context.Context) (*os.File, lifecycle.Endpoint, error) {
	for deadline := time.Now().Add(10 * time.Second); ; pause(ctx) {
		endpoint, err := c.recover(ctx)
		if err != nil || endpoint.WS != "" {
			return nil, endpoint, err
		}
		lock, err := keeper.Lock(c.cfg.Record + ".lock")
		switch {
		case err == nil:
			if rec, _ := keeper.ReadRecord(c.cfg.Record); rec == nil {
				return lock, lifecycle.Endpoint{}, nil
			}
			lock.Close() // of a keeper that came and went in between
		case !errors.Is(err, keeper.ErrKept):
			return nil, lifecycle.Endpoint{}, err
		case ctx.Err() != nil:
			return nil, lifecycle.Endpoint{}, ctx.Err()
		case time.Now().After(deadline):
			return nil, lifecycle.Endpoint{}, &lifecycle.Failure{
				Kind: lifecycle.CleanupPending,
				Text: "the keeper of an earlier browser is still there, and says nothing of it",
				Hint: "try again; if it stays so, end the process `cdpmux keeper` that holds " + c.cfg.Record + ".lock",
			}
		}
	}
}

func pause(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond): // the other keeper's record, or its end, is no event for us
	case <-ctx.Done():
	}
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
			return lifecycle.Endpoint{WS: r.WS, Incarnation: c.id, Adopted: c.adopted}, nil
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

// recover looks at the record of a browser that we do not hold. It is adopted
// when its keeper lives, and swept when not.
func (c *Chrome) recover(ctx context.Context) (lifecycle.Endpoint, error) {
	rec, err := keeper.ReadRecord(c.cfg.Record)
	if err != nil {
		return lifecycle.Endpoint{}, fmt.Errorf("%s: %w; see that no Chrome runs on the profile, and delete it", c.cfg.Record, err)
	}
	if rec == nil {
		return lifecycle.Endpoint{}, nil
	}
	var endpoint lifecycle.Endpoint
	if rec.Receipt == nil {
		endpoint, err = c.adopt(ctx, rec)
	}
	switch {
	case rec.Receipt != nil: // it ended, and its keeper goes or has given up
		endKeeper(ctx, rec.Keeper)
	case endpoint.WS != "":
		return endpoint, nil
	case ctx.Err() != nil:
		return lifecycle.Endpoint{}, ctx.Err()
	case err == nil: // it ended in the meantime, and rewrote its record or removed it
		if rec, err = keeper.ReadRecord(c.cfg.Record); rec == nil {
			return lifecycle.Endpoint{}, err
		}
	case !errors.Is(err, keeper.ErrLost):
		// A keeper that does not talk: without it, the browser quits by itself.
		c.cfg.Log.Warn().Err(err).Int("pid", rec.Keeper.PID).Msg("the keeper of a browser does not answer and is replaced")
		endKeeper(ctx, rec.Keeper)
	}
	receipt := keeper.Sweep(c.cfg.Record, rec, c.cfg.Waits)
	c.cfg.Log.Info().Interface("receipt", receipt).Msg("browser of an earlier proxy swept")
	if !receipt.Verified {
		return lifecycle.Endpoint{}, pending(receipt)
	}
	if c.after == lifecycle.EndNone && crashed(rec, receipt) {
		c.after, c.why = lifecycle.EndCrash, "Chrome ended by itself while no proxy was there"
	}
	if rec.Host != hostname() {
		// A container that came back under another name: the lock in the profile
		// is of the incarnation that was just seen dead.
		keeper.RemoveSingletons(rec.Profile, fmt.Sprintf("%s-%d", rec.Host, rec.Root.PID))
	}
	return lifecycle.Endpoint{}, nil
}

// Recover takes over a browser that an earlier proxy left, or removes what is
// left of it. It reports whether there is a browser now, and starts none.
func (c *Chrome) Recover(ctx context.Context) (bool, error) {
	if err := c.take(ctx); err != nil {
		return false, err
	}
	defer c.give()
	if c.held != nil {
		return true, nil
	}
	endpoint, err := c.recover(ctx)
	return endpoint.WS != "", err
}

// adopt connects to the keeper of an earlier proxy. Its browser may have ended
// meanwhile: then the Endpoint is zero.
func (c *Chrome) adopt(ctx context.Context, rec *keeper.Record) (lifecycle.Endpoint, error) {
	talk, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	h, err := keeper.Adopt(talk, rec, c.printed)
	if err != nil {
		return lifecycle.Endpoint{}, err
	}
	if err := h.Greeted(talk); err != nil {
		h.Close()
		return lifecycle.Endpoint{}, err
	}
	c.held, c.id, c.adopted = h, rec.ID, true
	r, err := h.Await(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return lifecycle.Endpoint{}, ctx.Err()
		}
		<-h.Ended()
		h.Wait()
		c.held = nil
		return lifecycle.Endpoint{}, nil
	}
	if err := keeper.Prove(ctx, r.WS); err != nil {
		return c.reuse(ctx)
	}
	c.cfg.Log.Info().Int("pid", r.Root).Str("incarnation", rec.ID).Msg("chrome adopted")
	return lifecycle.Endpoint{WS: r.WS, Incarnation: rec.ID, Adopted: true}, nil
}

// crashed tells the crash of a browser from the end that comes with that of
// its keeper and its proxy.
func crashed(rec *keeper.Record, receipt lifecycle.Receipt) bool {
	return rec.Receipt != nil && rec.Receipt.Method == lifecycle.MethodCrashed ||
		receipt.Method == lifecycle.MethodCrashed && receipt.ExitType == "Crashed"
}

// Stop ends Chrome, also one that an earlier proxy left. It waits for a start
// in progress: end that one's ctx first.
func (c *Chrome) Stop(ctx context.Context) lifecycle.Receipt {
	c.turn <- struct{}{}
	defer c.give()
	receipt := lifecycle.Receipt{Method: lifecycle.MethodNone, Verified: true}
	if c.held == nil {
		if endpoint, err := c.recover(ctx); err != nil || endpoint.WS == "" {
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
