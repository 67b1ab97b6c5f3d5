package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/lifecycle/lease"
	"cdpmux/proxy"
	"cdpmux/proxy/admin"
)

// leases join the sessions that callers take to the proxy and the browser.
type leases struct {
	// static after open
	registry *lease.Registry
	server   *proxy.Server
	life     *life
	log      zerolog.Logger
	keep     bool   // they outlive the proxy, as the browser and the tabs do
	ours     bool   // the browser ends with the proxy, and all that is in it
	chrome   string // path of the browser, where it is ours to start

	swept    chan struct{} // closed when it is known what an earlier proxy left
	sweptErr error         // set before that
	ended    atomic.Bool   // the browser is seen gone: nothing of it can be left
}

// lateStart is for how much longer than a browser may take a session's start
// is waited for.
const lateStart = 2 * time.Second

// open takes over the sessions of an earlier proxy.
func (l *leases) open(o *serveOptions, home *lifecycle.Home, store *lifecycle.Store, server *proxy.Server) error {
	l.server, l.swept = server, make(chan struct{})
	if o.browser.value == "chrome" {
		l.chrome, _ = chrome.Find(o.chrome.Path) // a start tells why there is none
	}
	path, err := home.SessionsFile(store.Slug)
	if err != nil {
		return err
	}
	timeout := time.Duration(o.startTimeout)
	if timeout > 0 {
		timeout += lateStart
	}
	l.registry, err = lease.Open(lease.Config{
		Store: store.Slug, ID: store.ID, Journal: path, Prefix: o.door.publicPath(), Capacity: int(o.maxClients), StartTimeout: timeout, Log: l.log,
		World: lease.World{
			Refused: server.Refused,
			Reserve: func(c lease.Client, digest []byte, s lease.State) error {
				tenant := proxy.Tenant{Digest: digest, TabCap: c.TabCap, Grace: graceOf(c), Closing: s == lease.ReleaseFailed}
				return server.Reserve(c.Name, tenant, s != lease.Creating)
			},
			Start: l.start, Release: l.release, Free: server.Free,
			Activity: func(client string) (a lease.Activity) {
				a.Connected, a.Tabs, a.Last = server.ClientActivity(client)
				return a
			},
			URLs: server.LeaseURLs,
		},
	})
	return err
}

func graceOf(c lease.Client) *time.Duration {
	if c.Grace == nil {
		return nil
	}
	grace := time.Duration(*c.Grace) * time.Second
	return &grace
}

// run reaps the sessions that nobody uses, once it is known what an earlier
// proxy left, of which err is what went wrong.
func (l *leases) run(ctx context.Context, err error) {
	l.sweptErr = err
	close(l.swept)
	l.registry.Run(ctx)
}

// start has the browser up for a session.
func (l *leases) start(ctx context.Context) (lease.Receipt, error) {
	began := time.Now()
	cold, err := l.server.Up(ctx)
	if err != nil {
		return lease.Receipt{}, err
	}
	view := l.life.View()
	r := lease.Receipt{
		Action: lease.ActionAdopt, Incarnation: view.Incarnation, Ownership: lease.Retained,
		ElapsedMS: time.Since(began).Milliseconds(),
	}
	if !cold {
		return r, nil
	}
	if len(view.Start) > 0 && !view.Adopted {
		r.Action, r.ColdStart, r.Stages = lease.ActionStart, true, view.Start
	}
	rest := r.ElapsedMS
	for _, stage := range r.Stages {
		rest -= stage.MS
	}
	r.Stages = append(r.Stages[:len(r.Stages):len(r.Stages)], lifecycle.Stage{Name: "upstream", MS: max(0, rest), OK: true})
	return r, nil
}

// release ends a session's client and sees that nothing of it is left. The
// browser stays, for the idle sweep.
func (l *leases) release(ctx context.Context, client string) (lease.Receipt, error) {
	watch := lifecycle.NewWatch()
	err := l.known(ctx)
	if err == nil && !l.ended.Load() {
		err = l.server.Release(ctx, client)
	}
	watch.Done("tabs", err == nil)
	view := l.life.View()
	r := lease.Receipt{
		Action: lease.ActionStop, Incarnation: view.Incarnation, Ownership: lease.Retained,
		Stages: watch.Stages, ElapsedMS: watch.ElapsedMS(),
		Cleanup: &lease.Cleanup{Method: lifecycle.MethodGraceful, Verified: err == nil},
	}
	if view.Receipt != nil && view.State != lifecycle.StateReady { // it went with the browser
		r.Cleanup = lease.CleanupOf(*view.Receipt)
	}
	return r, err
}

// known waits until it is known what an earlier proxy left. Until that is
// swept, or taken over, no session of that proxy is released.
func (l *leases) known(ctx context.Context) error {
	if l.ended.Load() {
		return nil
	}
	select {
	case <-l.swept:
	case <-ctx.Done():
		return errors.New("it is not known yet what an earlier proxy left")
	}
	if l.sweptErr != nil && l.life.View().State != lifecycle.StateReady {
		return fmt.Errorf("what an earlier proxy left: %w", l.sweptErr)
	}
	return nil
}

// ServeSessions answers for the proxy.
func (l *leases) ServeSessions(w http.ResponseWriter, r *http.Request, operator bool) {
	l.registry.ServeSessions(w, r, operator)
}

// Status is their part of the status.
func (l *leases) Status() admin.LeaseStatus {
	counts := l.registry.Counts()
	return admin.LeaseStatus{
		Sessions: admin.SessionCounts(counts.Sessions), Leases: admin.LeaseCounts(counts.Leases),
		Launch:    admin.LaunchCounts(l.life.Launches()),
		Admission: admin.Admission{BrowserPath: l.chrome, OK: l.server.Refused() == nil},
		Degraded:  counts.Degraded,
	}
}

// leaseWait bounds the first attempt to close all sessions at the proxy's end:
// what is left then ends with the browser.
const leaseWait = 2 * time.Second

// close ends the sessions. end ends the clients and the browser, and says
// whether that was seen. It returns how many sessions could not be released.
func (l *leases) close(end func() (verified bool)) (pending int) {
	closeAll := func() int {
		ctx, cancel := context.WithTimeout(context.Background(), leaseWait)
		defer cancel()
		return l.registry.Shutdown(ctx)
	}
	if !l.keep {
		pending = closeAll()
	}
	l.ended.Store(end() && l.ours)
	if pending > 0 {
		pending = closeAll()
	}
	if err := l.registry.Close(); err != nil {
		l.log.Error().Err(err).Msg("journal of sessions")
	}
	if pending > 0 {
		l.log.Error().Int("count", pending).Msg("shutdown_cleanup_pending")
	}
	return pending
}
