package proxy

import (
	"context"
	"errors"
	"time"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// Place is where a browser answers.
type Place struct {
	Address string // of its WebSocket
	ID      string // names this very browser, one life long; "" when only its address does
	Adopted bool   // it was there before this proxy

	// Ending is closed when the browser is known to end, which it may do a
	// moment before its connection does; nil: that is not known.
	Ending <-chan struct{}
}

// Life is the browser's life outside of the proxy. What is nil is not done.
type Life struct {
	// Start starts or finds the browser. It is called when one is needed and
	// there is none, by one goroutine at a time, and again after that browser
	// was lost. An error may have the methods FailureKind, Next, Status,
	// Retryable and RetryAfter, which clients are told of.
	Start func(ctx context.Context) (Place, error)

	// Stop ends the browser and says what was seen of that. verified is false
	// while something of it is left. hung: nobody wanted it to end, but it
	// runs and is not reached.
	Stop func(hung bool) (receipt any, verified bool)

	// Connected is told when the connection to the browser comes and goes. It
	// must not wait.
	Connected func(up bool)

	// Refused says why newcomers are turned away at once. up says whether
	// there is a browser, or one is being started.
	Refused func(up bool) error

	// Hold keeps the browser from the idle sweep for ttl, by the name of who
	// asks; a ttl of 0 ends the hold.
	Hold func(name string, ttl time.Duration)

	// View is what it says of itself in the status.
	View func() any
}

// stopping is one end of the browser, shared by all who want it.
type stopping struct {
	done chan struct{}

	// set before done is closed
	receipt  any
	verified bool
}

// browserInUse is why a browser is not stopped without force.
type browserInUse struct{}

func (browserInUse) Error() string       { return "clients are connected to the browser" }
func (browserInUse) FailureKind() string { return "browser_in_use" }
func (browserInUse) Next() string        { return "wait until they have left, or force it" }
func (browserInUse) Status() int         { return 409 }
func (browserInUse) Retryable() bool     { return true }

var errNotOurs = errors.New("the browser was not started here: end it where it was started")

// StopBrowser ends the browser: clients are closed (only with force may there
// be any), then their tabs, then the browser. The next client starts another
// one. It returns the receipt of Life.Stop.
func (s *Server) StopBrowser(ctx context.Context, force bool) (receipt any, verified bool, err error) {
	s.mu.Lock()
	switch {
	case s.cfg.Life.Stop == nil:
		err = errNotOurs
	case s.closing:
		err = errShutdown
	case s.stopping == nil && !force && s.inUse():
		err = browserInUse{}
	}
	if err != nil {
		s.mu.Unlock()
		return nil, false, err
	}
	st := s.stop("stopped by the operator")
	s.mu.Unlock()
	select {
	case <-st.done:
		return st.receipt, st.verified, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// inUse reports whether a client is connected or connecting. The lock is held.
func (s *Server) inUse() bool { return len(s.clients) > 0 || len(s.upgrading) > 0 }

// stop begins the end of the browser, unless it is ending. The lock is held.
func (s *Server) stop(why string) *stopping {
	if s.stopping == nil {
		s.log.Info().Msg("stopping the browser: " + why)
		s.stopping = &stopping{done: make(chan struct{})}
		s.redial.end()
		if s.up != nil { // in this very moment: who connects from here on has the next browser
			s.apply(s.router.CloseAll(time.Now(), errStopped.Error(), routing.ReasonBrowserStopped, s.actions))
			s.failRequests(errStopped.Error())
		}
		s.wg.Add(1)
		go s.runStop(s.stopping, s.starting)
	}
	return s.stopping
}

// runStop carries the end of the browser out, after that of a start that was
// under way. Who connects meanwhile waits for the next one.
func (s *Server) runStop(st *stopping, starting *start) {
	defer s.wg.Done()
	if starting != nil {
		starting.cancel()
		<-starting.done
	}
	s.mu.Lock()
	if s.up != nil {
		s.awaitIdle(context.Background())
	}
	if up := s.up; up != nil {
		s.up = nil
		up.watch.Stop()
		up.Finish(wire.Ending{Reason: wire.ShuttingDown})
		s.apply(s.router.BrowserGone(time.Now(), errStopped.Error(), s.actions))
		s.connected(false)
	}
	s.mu.Unlock()
	receipt, verified := s.endBrowser(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(st, receipt, verified)
	if len(s.clients) > 0 && !s.closing {
		s.wake()
	}
}

// endBrowser has the browser ended. What is left of it is tried again a few
// times: until it is gone, no other browser may use its profile.
func (s *Server) endBrowser(hung bool) (receipt any, verified bool) {
	receipt, verified = s.cfg.Life.Stop(hung)
	s.mu.Lock()
	s.ends++
	end := s.ends
	s.cleanup = !verified
	s.totals.Stopped(verified)
	s.mu.Unlock()
	e := s.log.Info()
	if !verified {
		e = s.log.Error()
		s.wg.Go(func() { s.cleanUp(end, hung) })
	}
	e.Interface("receipt", receipt).Bool("verified", verified).Msg("browser ended")
	return receipt, verified
}

// ended lets go of those who wait for the browser's end. The lock is held.
func (s *Server) ended(st *stopping, receipt any, verified bool) {
	st.receipt, st.verified = receipt, verified
	s.stopping = nil
	close(st.done)
	s.noteLeft()
}

// cleanUp tries again to get rid of what an end of the browser has left,
// unless a later start or end has seen to it.
func (s *Server) cleanUp(end int, hung bool) {
	var receipt any
	for tries := 0; tries < cleanups; {
		select {
		case <-time.After(s.limits.cleanup):
		case <-s.ctx.Done():
			return
		}
		s.mu.Lock()
		if !s.cleanup || s.ends != end || s.closing {
			s.mu.Unlock()
			return
		}
		if s.starting != nil || s.stopping != nil {
			s.mu.Unlock()
			continue
		}
		st := &stopping{done: make(chan struct{})} // who comes meanwhile waits: it must not be the next browser that is ended
		s.stopping = st
		s.mu.Unlock()
		tries++
		var verified bool
		receipt, verified = s.cfg.Life.Stop(hung)
		s.mu.Lock()
		s.cleanup = !verified
		s.ended(st, receipt, verified)
		s.mu.Unlock()
		if verified {
			s.log.Info().Msg("what was left of the browser is gone")
			return
		}
	}
	s.log.Error().Interface("receipt", receipt).Msg("processes of the browser are still there: end them by hand, then run cdpmux stop")
}

const cleanups = 3

// replace ends a browser that runs and is not reached any more, so that the
// next start is another one. The lock is held; redial is over.
func (s *Server) replace() {
	st := &stopping{done: make(chan struct{})}
	s.stopping = st
	s.wg.Go(func() {
		receipt, verified := s.endBrowser(true)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended(st, receipt, verified)
		if !s.closing {
			s.wake()
		}
	})
}

// Picture is what could need the browser now.
type Picture struct {
	Clients   int // connected
	InGrace   int // gone, and their tabs wait for them
	Requests  int // in flight
	Downloads int
	Active    time.Time // the last message of a client, or a human's doing
}

// Sweep stops the browser when idle says so of what there is now. One that was
// not started here stays.
func (s *Server) Sweep(idle func(Picture) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Life.Stop != nil && s.up != nil && s.starting == nil && s.stopping == nil && !s.closing && idle(s.picture()) {
		s.stop("nobody has used it")
	}
}

func (s *Server) picture() Picture {
	stats := s.router.Stats()
	p := Picture{
		Clients: len(s.clients) + len(s.upgrading), InGrace: s.router.InGrace(), Requests: stats.Requests + len(s.requests),
		Downloads: stats.Downloads, Active: s.router.Active(),
	}
	if p.Active.Before(s.since) {
		p.Active = s.since
	}
	return p
}

// connected tells that the browser's connection came or went. The lock is held.
func (s *Server) connected(up bool) {
	if up {
		s.since = time.Now()
	}
	if s.cfg.Life.Connected != nil {
		s.cfg.Life.Connected(up)
	}
}

// refused says why a newcomer is turned away at once; nil is welcome.
func (s *Server) refused() error {
	s.mu.Lock()
	draining, up := s.draining, s.up != nil || s.starting != nil
	s.mu.Unlock()
	switch {
	case draining:
		return errDraining
	case s.cfg.Life.Refused != nil:
		return s.cfg.Life.Refused(up)
	}
	return nil
}

// Wake has the browser started, or an earlier one taken over, before anybody
// needs it.
func (s *Server) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}
