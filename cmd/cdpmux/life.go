package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/proxy"
)

// life joins a store's browser to its proxy: what a start has to pass, what is
// noted of an end, and when the browser is swept.
type life struct {
	// static
	slug    string
	home    *lifecycle.Home
	turns   lifecycle.LaunchLock
	breaks  string // path of the breaker's file
	idle    time.Duration
	log     zerolog.Logger
	backend lifecycle.Backend // set before the proxy serves

	file sync.Mutex // one writer of the breaker's file; before mu

	mu      sync.Mutex // nothing waits under it: the proxy's own lock is held around it
	breaker *lifecycle.Breaker
	well    *time.Timer // the browser has been up for long enough
}

func newLife(o *serveOptions, home *lifecycle.Home, slug string, log zerolog.Logger) (*life, error) {
	path, err := home.BreakerFile(slug)
	if err != nil {
		return nil, err
	}
	breaker, err := lifecycle.LoadBreaker(path, lifecycle.BreakerPolicy{Max: int(o.relaunchMax), Window: time.Duration(o.relaunchWindow)})
	if err != nil {
		return nil, err
	}
	dir, err := lifecycle.MachineDir()
	if err != nil {
		return nil, err
	}
	l := &life{
		slug: slug, home: home, breaks: path, breaker: breaker, log: log,
		turns: lifecycle.LaunchLock{Dir: dir, Wait: time.Duration(o.lockWait)},
		idle:  time.Duration(o.browserIdle),
	}
	l.well = time.AfterFunc(lifecycle.HealthyAfter, l.settle)
	l.well.Stop()
	return l, nil
}

// forProxy is the browser's life as the proxy needs it. A browser that was
// attached to is not ours to stop.
func (l *life) forProxy(ours bool) proxy.Life {
	p := proxy.Life{Start: l.start, Connected: l.connected, Refused: l.refused}
	if ours {
		p.Stop = l.stop
	}
	return p
}

func (l *life) start(ctx context.Context) (proxy.Place, error) {
	e, err := l.backend.Start(ctx)
	return proxy.Place{Address: e.WS, ID: e.Incarnation, Adopted: e.Adopted}, err
}

// gate is what a launch has to pass: the breaker, then its turn on the machine.
func (l *life) gate(ctx context.Context, after lifecycle.End, why string) (started func(error), err error) {
	now := time.Now()
	l.mu.Lock()
	if after != lifecycle.EndNone {
		l.breaker.Ended(now, after, why)
	}
	verdict := l.breaker.Allow(now)
	l.mu.Unlock()
	l.save()
	if !verdict.OK {
		return nil, l.open(verdict.Next)
	}
	if verdict.Count > 0 {
		l.log.Warn().Int("relaunch", verdict.Count).Bool("trial", verdict.Trial).Msg("browser is started again: " + why)
	}
	release, err := l.turns.Acquire(ctx, l.slug)
	if err != nil {
		return nil, err
	}
	return func(err error) {
		release()
		if err != nil {
			l.ended(lifecycle.EndFailed, err.Error())
		}
	}, nil
}

// open is the refusal of an open breaker.
func (l *life) open(next time.Time) *lifecycle.Failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &lifecycle.Failure{
		Kind:  lifecycle.BreakerOpen,
		Text:  fmt.Sprintf("the browser ended too often (the last time: %s); it is tried again after %s", l.breaker.Why, next.Local().Format(time.TimeOnly)),
		Retry: time.Until(next),
	}
}

// ended notes an end of the browser.
func (l *life) ended(end lifecycle.End, why string) {
	l.mu.Lock()
	l.breaker.Ended(time.Now(), end, why)
	l.mu.Unlock()
	l.save()
}

func (l *life) stop(hung string) (any, bool) {
	receipt := l.backend.Stop(context.Background())
	if hung != "" {
		l.ended(lifecycle.EndForced, "it ran and could not be reached: "+hung)
	} else {
		l.ended(lifecycle.EndNone, "")
	}
	return receipt, receipt.Verified
}

// connected is told under the proxy's lock.
func (l *life) connected(up bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if up {
		l.breaker.Connected(time.Now())
		l.well.Reset(lifecycle.HealthyAfter)
	} else {
		l.breaker.Lost(time.Now())
		l.well.Stop()
	}
}

// settle closes the breaker once the browser has been well for long enough.
func (l *life) settle() {
	l.mu.Lock()
	changed := l.breaker.Settle(time.Now())
	l.mu.Unlock()
	if changed {
		l.save()
	}
}

// refused says why a newcomer can have no browser. up says that there is one.
func (l *life) refused(up bool) error {
	if disabled, err := l.home.Disabled(l.slug); err != nil {
		return err
	} else if disabled {
		return &lifecycle.Failure{Kind: lifecycle.StoreLocked, Text: "the store " + l.slug + " is disabled"}
	}
	if up {
		return nil
	}
	l.mu.Lock()
	next, refused := l.breaker.Refused(time.Now())
	l.mu.Unlock()
	if refused {
		return l.open(next)
	}
	return nil
}

func (l *life) save() {
	l.file.Lock()
	defer l.file.Unlock()
	l.mu.Lock()
	b := *l.breaker
	l.mu.Unlock()
	if err := b.Save(l.breaks); err != nil {
		l.log.Error().Err(err).Msg("the count of the browser's restarts is not kept")
	}
}

// sweep stops the browser whenever nobody has needed it for long enough.
func (l *life) sweep(ctx context.Context, server *proxy.Server) {
	if l.idle == 0 {
		return
	}
	tick := time.NewTicker(min(time.Minute, l.idle/2+time.Second/2))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			server.Sweep(func(p proxy.Picture) bool {
				idle, _ := lifecycle.Picture{
					Clients: p.Clients, InGrace: p.InGrace, Requests: p.Requests, Downloads: p.Downloads,
					Starting: p.Starting, Holds: p.Holds, Active: p.Active,
				}.Idle(now, l.idle)
				return idle
			})
		case <-ctx.Done():
			return
		}
	}
}
