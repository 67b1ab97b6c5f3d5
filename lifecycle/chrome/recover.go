package chrome

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
	"cdpmux/lifecycle/proc"
)

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
	case c.held != nil: // its keeper has it; that Chrome is slow is for the caller to judge
		return lifecycle.Endpoint{}, err
	case err != nil && !errors.Is(err, keeper.ErrLost):
		// A keeper that does not talk: without it, the browser quits by itself.
		c.cfg.Log.Warn().Err(err).Int("pid", rec.Keeper.PID).Msg("the keeper of a browser does not answer and is replaced")
		endKeeper(ctx, rec.Keeper)
	}
	if rec.Receipt == nil { // the keeper may have said how it ended since, or removed the record
		if rec, err = keeper.ReadRecord(c.cfg.Record); rec == nil {
			return lifecycle.Endpoint{}, err
		}
	}
	receipt := keeper.Sweep(c.cfg.Record, rec, c.cfg.Waits)
	if rec.Receipt == nil || !rec.Receipt.Verified {
		c.cfg.Log.Info().Interface("receipt", receipt).Msg("browser that nobody held swept")
	}
	if !receipt.Verified {
		return lifecycle.Endpoint{}, pending(receipt)
	}
	if c.after == lifecycle.EndNone && crashed(rec, receipt) {
		c.after, c.why = lifecycle.EndCrash, "Chrome ended by itself while no proxy was there"
	}
	return lifecycle.Endpoint{}, nil
}

// Recover takes over a browser that an earlier proxy left, or removes what is
// left of it. It reports whether there is a browser now, be it one that does
// not answer yet, and starts none.
func (c *Chrome) Recover(ctx context.Context) (bool, error) {
	if err := c.take(ctx); err != nil {
		return false, err
	}
	defer c.give()
	if c.held != nil {
		return true, nil
	}
	lock, _, err := c.settle(ctx)
	if lock != nil {
		lock.Close()
	}
	var f *lifecycle.Failure
	if errors.As(err, &f) && f.Kind == lifecycle.BrowserUnreachable {
		err = nil
	}
	return c.held != nil, err
}

// adopt connects to the keeper of an earlier proxy. Its browser may have ended
// meanwhile: then the Endpoint is zero. One that does not answer is held, and
// the error says so.
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
	endpoint, err := c.reuse(ctx)
	if endpoint.WS != "" {
		c.cfg.Log.Info().Int("pid", r.Root).Str("incarnation", rec.ID).Msg("chrome adopted")
	}
	return endpoint, err
}

// crashed tells the crash of a browser from the end that comes with that of
// its keeper and its proxy, or of the machine.
func crashed(rec *keeper.Record, receipt lifecycle.Receipt) bool {
	return rec.Receipt != nil && rec.Receipt.Method == lifecycle.MethodCrashed ||
		rec.Boot == proc.Boot() && receipt.Method == lifecycle.MethodCrashed && keeper.LeftLock(receipt)
}

// endKeeper kills a keeper that does not talk and waits until it is gone, but
// not for long: one that hangs in the kernel stays. Where a process has no name
// but its pid, a stranger may have that by now.
func endKeeper(ctx context.Context, id proc.ID) {
	if proc.Boot() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = id.Signal(syscall.SIGKILL)
	for ctx.Err() == nil && id.Alive() {
		time.Sleep(10 * time.Millisecond) // it is nobody's child that we could wait for
	}
}
