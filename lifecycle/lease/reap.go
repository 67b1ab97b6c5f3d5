package lease

import (
	"context"
	"time"
)

// Run reaps from time to time, until ctx ends. Begin it when it is known what
// an earlier proxy has left: releases that failed are tried again.
func (r *Registry) Run(ctx context.Context) {
	tick := time.NewTicker(max(time.Second, min(r.cfg.Retry, r.cfg.Idle, r.cfg.TTL)/2))
	defer tick.Stop()
	for {
		r.Reap(r.cfg.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Reap closes the leases that nobody uses, tries again what could not be
// released, a few times, and forgets old tombstones. It waits for none of it.
func (r *Registry) Reap(now time.Time) {
	used := map[string]Activity{}
	for _, name := range r.readyClients() {
		used[name] = r.world.Activity(name)
	}
	r.reap(now, used)
	if err := r.journal.tidy(now.Add(-r.cfg.TTL)); err != nil {
		r.log.Error().Err(err).Msg("journal of sessions could not be made shorter")
	}
}

func (r *Registry) reap(now time.Time, used map[string]Activity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.records {
		switch {
		case rec.state == ReleaseFailed && rec.automatic < MaxAttempts && now.Sub(rec.tried) >= r.cfg.Retry:
			rec.automatic++
			r.letGo(rec)
		case rec.state == Ready:
			if a, ok := used[rec.client.Name]; ok && a.Connected == 0 && now.Sub(later(rec.touched, a.Last)) >= r.idle(rec) {
				r.unwant(rec, "expired")
			}
		}
	}
	r.prune(now)
}

func (r *Registry) readyClients() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.records {
		if rec.state == Ready {
			names = append(names, rec.client.Name)
		}
	}
	return names
}

// idle is how long a lease may be unused.
func (r *Registry) idle(rec *record) time.Duration {
	if rec.client.Grace != nil {
		return max(r.cfg.Idle, time.Duration(*rec.client.Grace)*time.Second)
	}
	return r.cfg.Idle
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Shutdown closes every lease, makes none any more, and waits until ctx ends.
// It returns how many still hold something: they stay in the journal. It may
// be called again, when more has ended.
func (r *Registry) Shutdown(ctx context.Context) (pending int) {
	r.mu.Lock()
	r.ending = true
	var waiting []*flight
	for _, rec := range r.records {
		if rec.state != Closed {
			waiting = append(waiting, r.unwant(rec, "shutdown"))
		}
	}
	r.mu.Unlock()
	for _, f := range waiting {
		select {
		case <-f.done:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.records {
		if rec.state != Closed {
			pending++
		}
	}
	return pending
}
