package proxy

import (
	"context"
	"slices"
	"time"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// upstream is the one connection to the browser.
type upstream struct {
	*wire.Link
	http     string          // the browser's own HTTP endpoint, without a path; empty: it has none
	protocol protocolCache   // what it answers to /json/protocol
	known    chan struct{}   // closed when the Router knows the browser's version
	ending   <-chan struct{} // closed when the browser is known to end; may be nil
	since    time.Time

	// guarded by Server.mu
	watch   *time.Timer // looks whether it is silent
	silence silence
}

// dial connects to a browser's WebSocket address, see [wire.Dial].
func dial(ctx context.Context, address string, lim wire.Limits) (*upstream, error) {
	l, base, err := wire.Dial(ctx, address, lim)
	if err != nil {
		return nil, err
	}
	return &upstream{Link: l, http: base, known: make(chan struct{}), since: time.Now()}, nil
}

// serveUpstream is the upstream's reader. It never waits for a client: Chrome
// throws replies away once 256 MiB wait unread.
func (s *Server) serveUpstream(up *upstream) {
	defer s.untrack(up.Link)
	go up.WriteLoop()
	if up.ending != nil {
		go up.cutWithBrowser()
	}
	err := up.readLoop(s)
	lost := s.lost(up, err)
	up.HangUp(err)
	if !lost {
		up.Measure(s.log.Info(), up.since).Msg("browser connection closed")
	}
}

// cutWithBrowser ends the connection as soon as the browser is known to end:
// one that is quitting still takes commands, and makes tabs that die with it.
func (up *upstream) cutWithBrowser() {
	select {
	case <-up.ending:
		up.Close()
	case <-up.Gone():
	}
}

// incoming is one message with what was found in it.
type incoming struct {
	msg     *routing.Message
	env     routing.Envelope
	refusal *routing.Refusal // a client's text that is no command
}

// batchMost bounds how many messages are routed under one lock.
const batchMost = 64

// readLoop hands the messages to the Router, those that came together at once.
func (up *upstream) readLoop(s *Server) error {
	var batch []incoming
	defer func() {
		if len(batch) > 0 { // what came before the end counts
			s.fromBrowser(up, batch)
		}
	}()
	for {
		m, text, err := up.Read()
		if err != nil {
			return err
		}
		batch = slices.Grow(batch, 1)[:len(batch)+1]
		in := &batch[len(batch)-1]
		if in.msg = m; !text || !routing.Scan(m.Text(), &in.env) {
			s.log.Warn().Int("bytes", len(m.Text())).Msg("unreadable message from the browser")
			wire.Free(m)
			batch = batch[:len(batch)-1]
		}
		if len(batch) > 0 && (!up.More() || len(batch) == batchMost) {
			s.fromBrowser(up, batch)
			clear(batch) // it points to messages that are others' now
			batch = batch[:0]
		}
	}
}

// lost says that the browser's connection ended. It reports false when that
// was our own doing.
func (s *Server) lost(up *upstream, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up != up {
		return false
	}
	s.up = nil
	up.watch.Stop()
	up.Measure(s.log.Warn(), up.since).Err(err).Msg("browser connection lost")
	s.connected(false)
	s.apply(s.router.BrowserGone(time.Now(), errLost.Error(), s.actions))
	s.failRequests(errLost.Error())
	s.noteIdle()
	if !s.closing {
		s.redial.begin()
		s.wake()
	}
	return true
}
