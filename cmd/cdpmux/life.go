package main

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/proxy"
)

// life joins a store's browser to its proxy.
type life struct {
	*lifecycle.Life
	home *lifecycle.Home
	slug string
	idle time.Duration

	links chan bool // how the proxy's connection to the browser is; see run
}

func newLife(o *serveOptions, home *lifecycle.Home, slug string, log zerolog.Logger) (*life, error) {
	breaker, err := home.BreakerFile(slug)
	if err != nil {
		return nil, err
	}
	machine, err := lifecycle.MachineDir()
	if err != nil {
		return nil, err
	}
	l, err := lifecycle.NewLife(lifecycle.LifeConfig{
		Store:       slug,
		Policy:      lifecycle.BreakerPolicy{Max: int(o.relaunchMax), Window: time.Duration(o.relaunchWindow)},
		BreakerFile: breaker,
		Lock:        lifecycle.LaunchLock{Dir: machine, Wait: time.Duration(o.lockWait)},
		Log:         log,
	})
	if err != nil {
		return nil, err
	}
	return &life{Life: l, home: home, slug: slug, idle: time.Duration(o.browserIdle), links: make(chan bool, 64)}, nil
}

// forProxy is the browser's life as the proxy needs it. A browser that was
// attached to is not ours to stop.
func (l *life) forProxy(ours bool) proxy.Life {
	p := proxy.Life{
		Start: func(ctx context.Context) (proxy.Place, error) {
			e, err := l.Start(ctx)
			return proxy.Place{Address: e.WS, ID: e.Incarnation, Adopted: e.Adopted, Ending: e.Ending}, err
		},
		Connected: func(up bool) { l.links <- up },
		Refused:   l.refused,
		Hold:      l.Hold,
		View:      func() any { return l.View() },
	}
	if ours {
		p.Stop = l.stop
	}
	return p
}

func (l *life) stop(hung bool) (any, bool) {
	end := l.Stop
	if hung {
		end = l.Replace
	}
	receipt := end(context.Background())
	return receipt, receipt.Verified
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
	if f := l.Refused(); f != nil {
		return f
	}
	return nil
}

// run passes on how the connection is, renews the budget of relaunches, and
// stops the browser whenever nobody has needed it for long enough.
func (l *life) run(ctx context.Context, server *proxy.Server) {
	pause := time.Minute
	if l.idle > 0 {
		pause = min(pause, l.idle/2+time.Second/2)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case up := <-l.links:
			if up {
				l.Life.Connected()
			} else {
				l.Life.Lost()
			}
		case <-tick.C:
			l.Settle()
			server.Sweep(func(p proxy.Picture) bool {
				idle, _ := l.Idle(lifecycle.Picture{
					Clients: p.Clients, InGrace: p.InGrace, Requests: p.Requests, Downloads: p.Downloads, Active: p.Active,
				}, l.idle)
				return idle
			})
		case <-ctx.Done():
			for len(l.links) > 0 {
				<-l.links
			}
			return
		}
	}
}
