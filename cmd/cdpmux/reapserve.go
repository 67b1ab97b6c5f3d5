package main

import (
	"context"
	"os"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
	"cdpmux/proxy"
)

// reapEvery is how often serve --reap looks at the daemons of its store.
const reapEvery = 5 * time.Minute

// reapOwn ends what agents have left in this store, once now and then every
// five minutes, until ctx ends.
func (o *serveOptions) reapOwn(ctx context.Context, home *lifecycle.Home, store *lifecycle.Store, server *proxy.Server, log zerolog.Logger) {
	if !o.reap {
		return
	}
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		// Anew each time: which other stores there are, and the format of our
		// sessions, may have changed.
		if err := o.reapOnce(ctx, home, store.Slug, server, log); err != nil && ctx.Err() == nil {
			log.Error().Err(err).Msg("daemons that agents left are not looked at")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (o *serveOptions) reapOnce(ctx context.Context, home *lifecycle.Home, slug string, server *proxy.Server, log zerolog.Logger) error {
	store, err := home.Store(slug)
	if err != nil {
		return err
	}
	reaper, err := reaperOf(home, store, o.reapMinAge(), proc.Identify(os.Getpid()), log)
	if err != nil {
		return err
	}
	st := server.Status()
	_, err = reaper.Pass(ctx, lifecycle.InUse{Clients: presentClients(&st)})
	return err
}
