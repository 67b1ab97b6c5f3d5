package main

import (
	"context"
	"math"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
	"cdpmux/proxy"
	"cdpmux/proxy/admin"
	"cdpmux/wrapper"
)

// reapMinAge is how old a daemon of a store that is served with o must be.
func (o *serveOptions) reapMinAge() time.Duration {
	return lifecycle.ReapMinAge(time.Duration(o.grace), time.Duration(o.startTimeout))
}

// never is an age that no daemon has.
const never = time.Duration(math.MaxInt64)

// reaperOf is the reaper of a store that server serves. A proxy that is as
// young as a daemon may be ends none: it cannot know yet who only has not come
// back to it.
func reaperOf(home *lifecycle.Home, store *lifecycle.Store, minAge time.Duration, server proc.ID, log zerolog.Logger) (lifecycle.Reaper, error) {
	dir, err := home.RunDir()
	if err != nil {
		return lifecycle.Reaper{}, err
	}
	tmp, err := home.TmpDir()
	if err != nil {
		return lifecycle.Reaper{}, err
	}
	stores, err := home.Stores()
	if err != nil {
		return lifecycle.Reaper{}, err
	}
	if time.Duration(proc.Now()-server.Ticks)*10*time.Millisecond <= minAge {
		minAge = never
	}
	r := lifecycle.Reaper{Dir: dir, Tmp: tmp, Slug: sessionBase(store.Slug), AnyTasks: store.TaskFormat == "any", MinAge: minAge, Log: log}
	for _, s := range stores {
		if s.Slug != store.Slug {
			r.Others = append(r.Others, sessionBase(s.Slug))
		}
	}
	return r, nil
}

// sessionBase is what the session names of a store begin with.
func sessionBase(slug string) string {
	if slug == wrapper.Web {
		return "web"
	}
	return slug
}

// clients are the ids that are connected or in grace.
func (a *adminAPI) clients(ctx context.Context) ([]string, error) {
	var st admin.Status
	if err := a.brief(ctx, http.MethodGet, "/status", nil, &st); err != nil {
		return nil, err
	}
	return presentClients(&st), nil
}

func presentClients(st *admin.Status) (ids []string) {
	for _, c := range st.Clients {
		if c.State == "connected" || c.State == "grace" {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

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
