package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"cdpmux/proxy/admin"
	"cdpmux/routing"
)

// start is one attempt to get a browser, shared by all who need it. It goes on
// when those who wait for it leave.
type start struct {
	done   chan struct{}
	ctx    context.Context
	after  *stopping          // it waits for this end; nil: none
	cancel context.CancelFunc // ends it: the browser is to be stopped

	// set before done is closed
	up  *upstream
	err error
}

// wake makes sure that there is a browser or one is being started, and returns
// the attempt. The lock is held.
func (s *Server) wake() *start {
	if s.starting != nil {
		return s.starting
	}
	st := &start{done: make(chan struct{})}
	switch {
	case s.closing:
		st.err = errShutdown
		close(st.done)
	case s.up != nil && s.stopping == nil:
		st.up = s.up
		close(st.done)
	default:
		st.ctx, st.cancel = context.WithCancel(s.ctx)
		st.after = s.stopping
		s.starting = st
		s.wg.Add(1)
		go s.runStart(st)
	}
	return st
}

// runStart carries an attempt out.
func (s *Server) runStart(st *start) {
	defer s.wg.Done()
	defer st.cancel()
	if end := st.after; end != nil { // two browsers must never share a profile
		<-end.done
	}
	began := time.Now()
	up, started, err := s.reach(st.ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(st.done)
	s.starting = nil
	if s.closing {
		st.err = errShutdown
		if up != nil {
			up.Close()
		}
		return
	}
	if err != nil && s.stopping != nil {
		st.err = browserStopping
		s.apply(s.router.BrowserLost(time.Now(), routing.ReasonBrowserStopped, errStopped.Error(), s.actions))
		return
	}
	if err != nil {
		st.err = err
		s.unreached(err)
		return
	}
	s.totals.Reached(started, !s.since.IsZero())
	s.log.Info().Dur("ms", time.Since(began)).Msg("browser connected")
	st.up, s.up = up, up
	s.redial.end()
	s.replaced, s.cleanup = false, false
	s.track(up.Link, admin.OfBrowser)
	go s.serveUpstream(up)
	up.silence.since = time.Now()
	up.watch = time.AfterFunc(s.limits.probe, func() { s.look(up) })
	s.apply(s.router.BrowserReady(time.Now(), started, s.actions))
	s.connected(true)
}

// unreached says that an attempt to get a browser was in vain.
func (s *Server) unreached(err error) {
	p := problemOf(err)
	s.totals.Failed(p.Kind)
	s.noBrowser = p.line()
	now := time.Now()
	if !s.redial.on && s.cfg.Life.Stop != nil && runs(err) {
		s.replaced = false
		s.redial.begin()
	}
	if !s.redial.on {
		s.log.Error().Err(err).Str("kind", p.Kind).Msg("browser could not be started")
		s.apply(s.router.BrowserLost(now, routing.ReasonStartFailed, s.noBrowser, s.actions))
		return
	}
	wait, more := s.redial.failed(&s.limits)
	hopeless := !p.Retryable || p.Kind == "breaker_open" // for the next minutes at least
	if hopeless {
		s.redial.end()
		more = false
	}
	if !more && !hopeless && s.cfg.Life.Stop != nil && !s.replaced { // it may run and hang: end it, and try once more
		s.replaced = true
		s.redial.begin()
		s.redial.count = s.limits.redials - 1
		s.replace()
		return
	}
	if !more {
		s.log.Error().Err(err).Str("kind", p.Kind).Msg("browser given up; the next client tries again")
		s.apply(s.router.BrowserLost(now, routing.ReasonBrowserLost, s.noBrowser, s.actions))
		return
	}
	s.log.Warn().Err(err).Str("kind", p.Kind).Dur("wait", wait).Msg("browser not reached")
	s.apply(s.router.StillGone(now, s.noBrowser, s.actions))
}

// runs reports whether a start failed at a browser that is there, as a lost one
// may be, and only does not answer.
func runs(err error) bool {
	var f interface{ FailureKind() string }
	return errors.As(err, &f) && f.FailureKind() == "browser_unreachable"
}

// reach starts or finds the browser and connects to it. started: it is one of
// ours, and was not there before.
func (s *Server) reach(ctx context.Context) (up *upstream, started bool, err error) {
	cancel := context.CancelFunc(func() {})
	if s.cfg.StartTimeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, s.cfg.StartTimeout)
	}
	defer cancel()
	place, err := s.cfg.Life.Start(ctx)
	if err == nil {
		another := s.another(place)
		s.meet(another)
		started = another && s.cfg.Life.Stop != nil
		if up, err = dial(ctx, place.Address, s.limits.Limits); err == nil {
			up.ending = place.Ending
		}
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w after %s: %w", errStartTimeout, s.cfg.StartTimeout, err)
	}
	return up, started, err
}

// another notes which browser answers, and reports whether it is not the one
// that the last connection, or the last proxy, had.
func (s *Server) another(place Place) bool {
	id := cmp.Or(place.ID, place.Address)
	another := id != s.lastBrowser && !(s.lastBrowser == "" && (place.Adopted || s.cfg.Attached))
	s.lastBrowser = id
	return another
}

// browser returns the browser's connection, started if need be. A caller that
// gives up does not stop the start.
func (s *Server) browser(ctx context.Context) (*upstream, error) {
	s.mu.Lock()
	st := s.wake()
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.up, st.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
