package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Life is one store's browser over time: a backend with the budget of its
// relaunches, its turn among the launches of the machine, and its state. Make
// it first, give its Gate to the backend, then Use the backend.
type Life struct {
	// static after Use
	cfg     LifeConfig
	backend Backend

	mu      sync.Mutex
	breaker *Breaker
	state   State
	holds   Holds
	last    Endpoint
	receipt *Receipt // of the last stop

	launches Launches
}

// LifeConfig is what a Life needs to know.
type LifeConfig struct {
	Store       string // its slug, for the messages of others
	Policy      BreakerPolicy
	BreakerFile string
	Lock        LaunchLock
	Log         zerolog.Logger
}

// State is what status says of a browser. Degraded is the proxy's to add: up,
// and not connected.
type State string

// The states of a browser.
const (
	StateStopped  State = "stopped"
	StateStarting State = "starting"
	StateReady    State = "ready"
	StateDegraded State = "degraded"
	StateStopping State = "stopping"
	StatePending  State = "cleanup_pending"
	StateRefused  State = "refused"
	StateDisabled State = "disabled"
)

// NewLife reads the store's breaker.
func NewLife(cfg LifeConfig) (*Life, error) {
	b, err := LoadBreaker(cfg.BreakerFile, cfg.Policy)
	if err != nil {
		return nil, err
	}
	return &Life{cfg: cfg, breaker: b, state: StateStopped, holds: Holds{}}, nil
}

// Use sets the backend, once, before all else.
func (l *Life) Use(b Backend) { l.backend = b }

// Refused says why a start would be refused at once: a *Failure with when to
// come again, or nil. Ask before a client is let in.
func (l *Life) Refused() *Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lives() {
		return nil
	}
	return l.refusedNow()
}

// lives reports whether there is a browser, reached or being sought.
func (l *Life) lives() bool { return l.state == StateReady || l.state == StateDegraded }

func (l *Life) refused() *Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusedNow()
}

func (l *Life) refusedNow() *Failure {
	if next, refused := l.breaker.Refused(time.Now()); refused {
		return l.open(next)
	}
	return nil
}

// open is the refusal of an open breaker.
func (l *Life) open(next time.Time) *Failure {
	return &Failure{
		Kind: BreakerOpen,
		Text: fmt.Sprintf("the browser ended %d times in %s without having been stopped, the last time: %s; the next try is at %s",
			len(l.breaker.Relaunches), l.cfg.Policy.Window, l.breaker.Why, next.Format(time.TimeOnly)),
		Retry: time.Until(next),
	}
}

// Start returns the browser's address; it launches one if need be and if it
// may. It is also how a lost connection is sought: the same browser gives the
// same address.
func (l *Life) Start(ctx context.Context) (Endpoint, error) {
	l.set(StateStarting)
	endpoint, err := l.backend.Start(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	var f *Failure
	switch {
	case err == nil:
		l.state, l.last = StateReady, endpoint
		if len(endpoint.Stages) > 0 && !endpoint.Adopted {
			l.launches.OK++
		}
	case errors.As(err, &f) && f.Kind == CleanupPending:
		l.state = StatePending
	case errors.As(err, &f) && f.Kind == BreakerOpen:
		l.state = StateRefused
	case errors.As(err, &f) && f.Kind == BrowserUnreachable:
		l.state = StateDegraded
	default:
		l.state = StateStopped
	}
	l.launches.count(err)
	return endpoint, err
}

// Launches are the launches of this process.
type Launches struct {
	OK, Failed      int64
	LastFailureKind string // "": none has failed
}

// count notes a start that came to nothing, unless it only sought a browser,
// or was called off.
func (n *Launches) count(err error) {
	kind := LaunchFailed
	var f *Failure
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return
	case errors.As(err, &f) && f.Kind == BrowserUnreachable:
		return
	case f != nil:
		kind = f.Kind
	case errors.Is(err, context.DeadlineExceeded):
		kind = LaunchTimeout
	}
	n.Failed++
	n.LastFailureKind = kind
}

// Launches says how many launches there were.
func (l *Life) Launches() Launches {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.launches
}

func (l *Life) set(s State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = s
}

// Gate is the backend's: it counts the launch, and waits for its turn among
// the launches of the machine.
func (l *Life) Gate(ctx context.Context, after End, why string) (func(error), error) {
	if after != EndNone {
		l.ended(after, why)
	}
	if f := l.refused(); f != nil { // at once, not after a wait
		return nil, f
	}
	release, err := l.cfg.Lock.Acquire(ctx, l.cfg.Store)
	if err != nil {
		return nil, err
	}
	if err := l.admit(); err != nil {
		release()
		return nil, err
	}
	return func(err error) {
		release()
		if err != nil && !errors.Is(err, context.Canceled) {
			l.ended(EndFailed, err.Error())
		}
	}, nil
}

// admit counts a launch that is about to happen.
func (l *Life) admit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	after := l.breaker.Last
	v := l.breaker.Allow(time.Now())
	l.save()
	switch {
	case !v.OK:
		return l.open(v.Next)
	case v.Trial:
		l.cfg.Log.Warn().Msg("browser is tried once more")
	case v.Count > 0:
		l.cfg.Log.Warn().Str("after", string(after)).Str("why", l.breaker.Why).Int("count", v.Count).Int("of", l.cfg.Policy.Max).Msg("browser is launched again")
	}
	return nil
}

func (l *Life) ended(end End, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaker.Ended(time.Now(), end, why)
	l.save()
}

// Connected and Lost say how the proxy's connection is. Only a browser that
// was connected for HealthyAfter without a break has its budget renewed; call
// Settle now and then, so that this is known before the connection breaks.
func (l *Life) Connected() { l.note((*Breaker).Connected) }

// Lost notes that the connection broke.
func (l *Life) Lost() { l.note((*Breaker).Lost) }

// Settle renews the budget if that is due.
func (l *Life) Settle() { l.note(func(b *Breaker, now time.Time) { b.Settle(now) }) }

func (l *Life) note(f func(*Breaker, time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.breaker.Relaunches)
	f(l.breaker, time.Now())
	if len(l.breaker.Relaunches) != before {
		l.save()
	}
}

// save keeps the breaker for the next proxy. Without that, only a proxy that
// is restarted again and again could exceed the budget.
func (l *Life) save() {
	if l.cfg.BreakerFile == "" {
		return
	}
	if err := l.breaker.Save(l.cfg.BreakerFile); err != nil {
		l.cfg.Log.Warn().Err(err).Msg("the count of relaunches is not kept")
	}
}

// Stop ends the browser because somebody wants it to: the next start is no
// relaunch.
func (l *Life) Stop(ctx context.Context) Receipt { return l.stop(ctx, EndNone, "") }

// Replace ends a browser that lives and is not reached any more: the next
// start is a relaunch that counts.
func (l *Life) Replace(ctx context.Context) Receipt {
	return l.stop(ctx, EndForced, "it ran, but could not be reached")
}

func (l *Life) stop(ctx context.Context, end End, why string) Receipt {
	l.set(StateStopping)
	receipt := l.backend.Stop(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.receipt = StateStopped, &receipt
	if !receipt.Verified {
		l.state = StatePending
	}
	l.breaker.Ended(time.Now(), end, why)
	l.save()
	return receipt
}

// Hold keeps the browser from the idle sweep for ttl, by the name of who asks.
func (l *Life) Hold(name string, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds.Hold(name, time.Now(), ttl)
}

// Idle reports whether the sweep is to stop the browser now; Holds and
// Starting of p are filled in here.
func (l *Life) Idle(p Picture, limit time.Duration) (idle bool, busy string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.Starting = l.state == StateStarting
	p.Holds = l.holds
	return p.Idle(time.Now(), limit)
}

// View is what status shows of a Life.
type View struct {
	State       State                `json:"state"`
	Incarnation string               `json:"incarnation,omitempty"`
	Adopted     bool                 `json:"adopted,omitempty"`
	Start       []Stage              `json:"start,omitempty"`
	Receipt     *Receipt             `json:"last_stop,omitempty"`
	Relaunches  int                  `json:"relaunches"`
	BreakerOpen bool                 `json:"breaker_open"` // only a trial is let through
	NextTrial   time.Time            `json:"next_trial,omitzero"`
	Holds       map[string]time.Time `json:"holds,omitempty"`
}

// View says how it is now.
func (l *Life) View() View {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	v := View{State: l.state, Receipt: l.receipt, Relaunches: len(l.breaker.Relaunches), BreakerOpen: l.breaker.Open, Holds: map[string]time.Time{}}
	if next, refused := l.breaker.Refused(now); refused && !l.lives() {
		v.State, v.NextTrial = StateRefused, next
	}
	if l.state == StateReady {
		v.Incarnation, v.Adopted, v.Start = l.last.Incarnation, l.last.Adopted, l.last.Stages
	}
	l.holds.Any(now)
	for name, end := range l.holds {
		v.Holds[name] = end
	}
	return v
}
