// Package ziniao is the backend for a store of the Ziniao client, an
// anti-detect browser with a local HTTP API. The client itself is neither
// started nor stopped here; one store is opened in it, and closed.
//
// Written against ziniaotest, a double of that API: the real client was not
// available.
package ziniao

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
)

// Config says which store of which account to open.
type Config struct {
	Addr    string  // HOST:PORT of the client's API
	Profile string  // the store there: its browserId or its browserOauth
	Account Account // who opens it
	Store   string  // our own slug of the store, for the account guard
	Record  string  // file by which the next proxy finds the store that this one opened; empty: none
	Guard   string  // directory of the account guard; empty: lifecycle.MachineDir

	Gate   lifecycle.Gate // asked before each launch; nil: no limit
	Log    zerolog.Logger
	Timing Timing // zero: the usual one
}

// Timing bounds the waits; the tests have shorter ones.
type Timing struct {
	Try   time.Duration // for one look at the browser; 5 s
	Pause time.Duration // between two looks; 2 s
}

const (
	launches = 5 // the first try, and four more after a stale launch
	looks    = 4 // at each gate of readiness
	stopping = 3 // times Timing.Try: for the client to close the store
)

// Ziniao is the backend.
type Ziniao struct {
	// static after New
	cfg Config
	api *client

	// turn holds one token: Start and Stop take turns.
	turn chan struct{}

	// owned by whose turn it is
	port    int // of the open browser; 0: none is open
	id      string
	adopted bool // it was open before us
	failed  lifecycle.End
}

// New checks cfg without touching anything.
func New(cfg Config) (*Ziniao, error) {
	if cfg.Addr == "" || cfg.Profile == "" {
		return nil, errors.New("--browser ziniao needs --ziniao-addr and --ziniao-profile")
	}
	if err := cfg.Account.check(); err != nil {
		return nil, err
	}
	if cfg.Timing == (Timing{}) {
		cfg.Timing = Timing{Try: 5 * time.Second, Pause: 2 * time.Second}
	}
	return &Ziniao{cfg: cfg, api: newClient(cfg.Addr, cfg.Account), turn: make(chan struct{}, 1)}, nil
}

// Start returns the address of the open store, also of one that an earlier
// proxy opened. Opening it again would replace it, so that is done only when it
// is not there any more.
func (z *Ziniao) Start(ctx context.Context) (lifecycle.Endpoint, error) {
	if err := z.take(ctx); err != nil {
		return lifecycle.Endpoint{}, err
	}
	defer z.give()
	if z.port != 0 {
		if ws, err := z.version(ctx, z.port); err == nil {
			return lifecycle.Endpoint{WS: ws, Incarnation: z.id, Adopted: z.adopted}, nil
		}
		if ctx.Err() != nil {
			return lifecycle.Endpoint{}, ctx.Err()
		}
		z.port, z.failed = 0, lifecycle.EndCrash
		z.forget()
	} else if endpoint, err := z.adopt(ctx); err != nil || endpoint.WS != "" {
		return endpoint, err
	}
	if err := z.guard(); err != nil {
		return lifecycle.Endpoint{}, err
	}
	started := func(error) {}
	if z.cfg.Gate != nil {
		var err error
		if started, err = z.cfg.Gate(ctx, z.failed, "the browser of the Ziniao store was gone"); err != nil {
			return lifecycle.Endpoint{}, err
		}
	}
	z.failed = lifecycle.EndNone
	endpoint, err := z.open(ctx)
	started(err)
	return endpoint, err
}

// open launches the store, until it is ready or was stale too often.
func (z *Ziniao) open(ctx context.Context) (lifecycle.Endpoint, error) {
	info, err := z.find(ctx)
	if err != nil {
		return lifecycle.Endpoint{}, err
	}
	watch := lifecycle.NewWatch()
	var stale error
	for try := range launches {
		if try > 0 {
			z.unstick(ctx, info)
		}
		port, err := z.api.start(ctx, info)
		var refused *apiError
		switch {
		case err == nil:
		case ctx.Err() != nil:
			z.abandon(ctx, info)
			return lifecycle.Endpoint{}, timedOut(ctx)
		case errors.As(err, &refused) && !refused.denied():
			stale = err // a launch that did not work; the next one often does
			continue
		default:
			return lifecycle.Endpoint{}, explain(z.cfg.Addr, err)
		}
		watch.Done("launch", true)
		ws, err := z.ready(ctx, port)
		if err == nil {
			watch.Done("devtools", true)
			z.port, z.id, z.adopted = port, fmt.Sprintf("%s-%d", info.ID(), port), false
			z.remember(ws)
			return lifecycle.Endpoint{WS: ws, Incarnation: z.id, Stages: watch.Stages}, nil
		}
		if ctx.Err() != nil {
			z.abandon(ctx, info)
			return lifecycle.Endpoint{}, timedOut(ctx)
		}
		watch.Done("devtools", false)
		stale = err
		z.cfg.Log.Warn().Err(err).Int("try", try+1).Msg("ziniao opened a store that is not live")
	}
	z.abandon(ctx, info)
	return lifecycle.Endpoint{}, &lifecycle.Failure{
		Kind: lifecycle.ZiniaoFailed,
		Text: fmt.Sprintf("the Ziniao client did not open store %s in %d tries: %v", z.cfg.Profile, launches, stale),
	}
}

// find looks for the store in the account's list.
func (z *Ziniao) find(ctx context.Context) (browserInfo, error) {
	all, err := z.api.list(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return browserInfo{}, timedOut(ctx)
		}
		return browserInfo{}, explain(z.cfg.Addr, err)
	}
	for _, b := range all {
		if b.OAuth == z.cfg.Profile || b.ID() == z.cfg.Profile {
			return b, nil
		}
	}
	return browserInfo{}, &lifecycle.Failure{
		Kind: lifecycle.ProfileInvalid,
		Text: fmt.Sprintf("the account %s has no Ziniao store %s", z.cfg.Account.Username, z.cfg.Profile),
		Hint: "give the store's browserId or browserOauth with --ziniao-profile",
	}
}

// unstick ends a stale launch of this store and removes the locks that keep
// its profile. Other stores, and the client, go on.
func (z *Ziniao) unstick(ctx context.Context, info browserInfo) {
	if err := z.api.stop(ctx, info); err != nil {
		z.cfg.Log.Debug().Err(err).Msg("ziniao stop of a stale launch")
	}
	if info.UserData != "" {
		for _, name := range lifecycle.Singletons {
			_ = os.Remove(filepath.Join(info.UserData, name))
		}
	}
	pause(ctx, z.cfg.Timing.Pause)
}

// abandon closes the store whose start was given up.
func (z *Ziniao) abandon(ctx context.Context, info browserInfo) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), z.cfg.Timing.Try)
	defer cancel()
	if err := z.api.stop(ctx, info); err != nil {
		z.cfg.Log.Warn().Err(err).Msg("ziniao did not close a store whose start was given up")
	}
}

// Stop closes the store. The client says when it is closed; that its port is
// silent then is the proof, since its processes are not ours to look at. One
// that does not answer is waited for no longer than a Chrome of ours.
func (z *Ziniao) Stop(ctx context.Context) lifecycle.Receipt {
	z.turn <- struct{}{}
	defer z.give()
	receipt := lifecycle.Receipt{Method: lifecycle.MethodNone, Verified: true}
	if z.port == 0 {
		if _, err := z.adopt(ctx); err != nil {
			z.cfg.Log.Warn().Err(err).Msg("what an earlier proxy opened in the ziniao client is not known")
		}
	}
	if z.port == 0 {
		z.leave()
		return receipt
	}
	watch := lifecycle.NewWatch()
	receipt = lifecycle.Receipt{Incarnation: z.id, Method: lifecycle.MethodGraceful}
	call, cancel := context.WithTimeout(ctx, stopping*z.cfg.Timing.Try)
	defer cancel()
	info, err := z.find(call)
	if err == nil {
		err = z.api.stop(call, info)
	}
	if call.Err() != nil {
		err = fmt.Errorf("the Ziniao client at %s does not answer", z.cfg.Addr)
	}
	watch.Done("close", err == nil)
	for range looks {
		if _, dead := z.version(ctx, z.port); dead != nil && ctx.Err() == nil {
			receipt.Verified = true
			break
		}
		pause(ctx, z.cfg.Timing.Pause)
	}
	watch.Done("verify", receipt.Verified)
	receipt.Stages, receipt.ElapsedMS = watch.Stages, watch.ElapsedMS()
	receipt.DataRisk = err != nil || !receipt.Verified
	if err != nil {
		z.cfg.Log.Warn().Err(err).Msg("ziniao did not close the store")
	}
	if receipt.Verified {
		z.port, z.failed = 0, lifecycle.EndNone
		z.forget()
		z.leave()
	}
	return receipt
}

// Probe looks whether the open store answers.
func (z *Ziniao) Probe(ctx context.Context) error {
	if err := z.take(ctx); err != nil {
		return err
	}
	port := z.port
	z.give()
	if port == 0 {
		return errors.New("the Ziniao store is not open")
	}
	_, err := z.version(ctx, port)
	return err
}

// KeepLastPage is true: the client counts a store without a page as closed,
// so the proxy puts about:blank in the place of the last one.
func (z *Ziniao) KeepLastPage() bool { return true }

func (z *Ziniao) take(ctx context.Context) error {
	select {
	case z.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (z *Ziniao) give() { <-z.turn }

func timedOut(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &lifecycle.Failure{Kind: lifecycle.LaunchTimeout, Text: "the Ziniao store was not ready in time"}
	}
	return ctx.Err()
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
