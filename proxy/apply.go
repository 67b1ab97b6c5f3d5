package proxy

import (
	"time"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// apply carries out the Router's actions in their order. The lock is held;
// pushing never waits.
func (s *Server) apply(actions []routing.Action) {
	for i := range actions {
		switch a := &actions[i]; a.Kind {
		case routing.ToBrowser:
			if s.up != nil {
				s.up.Push(a.Msg)
			}
		case routing.ToClient:
			if c := s.clients[a.Conn]; c != nil {
				if c.tracers != nil {
					s.traceMessage(c, a.Msg)
				}
				c.Push(a.Msg)
			}
		case routing.Opened:
			if c := s.clients[a.Conn]; c != nil {
				c.opened()
			}
		case routing.Close:
			if c := s.clients[a.Conn]; c != nil {
				delete(s.clients, a.Conn)
				if a.Reason == routing.ReasonTargetClosed {
					c.Push(routing.NewMessage(lastWord))
				}
				end := wire.Ending{Reason: wire.ReasonOf(a.Reason)}
				if end.Reason == wire.StartFailed { // it may not have sent a command to answer yet
					end.Text = s.noBrowser
				}
				c.Finish(end)
			}
		case routing.Answer:
			s.answer(a.Token, a.Result)
		case routing.Save:
			s.settle(a.Download)
		case routing.Discard:
			s.discard(a.Download)
		case routing.Aborted:
			s.aborted(a.Download)
		case routing.Note:
			s.log.Warn().Msg(a.Text)
		case routing.Audited:
			s.cfg.Audit.put(a.Decision)
		}
	}
	clear(actions) // they point to messages that are others' now
	s.actions = actions[:0]
	if len(s.leaving) > 0 {
		s.noteLeft()
	}
	if at := s.router.Next(); at != s.timerAt {
		s.timerAt = at
		if at.IsZero() {
			s.timer.Stop()
		} else {
			s.timer.Reset(time.Until(at))
		}
	}
	s.saveSoon()
	if len(s.tracers) > 0 {
		s.traceGone()
	}
}

// tick does what is due in the Router.
func (s *Server) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timerAt = time.Time{}
	s.apply(s.router.Tick(time.Now(), s.actions))
}

// lastWord is what Chrome says on a page socket before it drops the connection.
const lastWord = `{"method":"Inspector.detached","params":{"reason":"target_closed"}}`

// answer gives an HTTP request its result. Token 0 is nobody's: it says that
// the browser's version is known.
func (s *Server) answer(token uint64, result routing.Result) {
	if token == 0 {
		if s.up != nil {
			close(s.up.known)
		}
		return
	}
	if done, ok := s.requests[token]; ok {
		delete(s.requests, token)
		done <- result
	}
}

// failRequests ends the HTTP requests that wait for an answer.
func (s *Server) failRequests(why string) {
	for token := range s.requests {
		s.answer(token, routing.Result{Err: why})
	}
}

// fromClient hands a client's messages to the Router. When the client should
// not be read for a while, it returns the channels to wait for: as long as it
// takes for backlog, limits.pause at most for ahead.
func (s *Server) fromClient(c *client, batch []incoming) (backlog, ahead <-chan struct{}) {
	size, bytes := 0, 0
	for i := range batch {
		size += wire.Memory(batch[i].msg)
		bytes += len(batch[i].msg.Text())
	}
	c.Received.Add(len(batch), bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	out, now := s.actions, time.Now()
	for i := range batch {
		in := &batch[i]
		if c.tracers != nil {
			s.traceCommand(c, in, now)
		}
		if in.refusal != nil {
			out = s.router.Refuse(c.conn, in.refusal, out)
			wire.Free(in.msg)
		} else {
			out = s.router.FromClient(now, c.conn, in.msg, &in.env, out)
		}
	}
	hadRoot := c.hadRoot()
	if hadRoot && s.up != nil {
		ahead = c.pace.sent(len(batch), s.limits.ahead)
		s.replied(out)
	}
	s.apply(out)
	if hadRoot && s.up != nil {
		return s.up.Backlog(), ahead
	}
	c.held += size
	switch {
	case c.held <= s.limits.held:
		return nil, nil
	case !hadRoot:
		return c.hasRoot, nil
	case s.starting != nil: // the browser was lost
		return s.starting.done, nil
	}
	return nil, nil
}

// fromBrowser hands messages of the browser to the Router.
func (s *Server) fromBrowser(up *upstream, batch []incoming) {
	bytes := 0
	for i := range batch {
		bytes += len(batch[i].msg.Text())
	}
	up.Received.Add(len(batch), bytes)
	s.mu.Lock()
	defer s.mu.Unlock()
	out, now := s.actions, time.Now()
	for i := range batch {
		reply, before := batch[i].env.IDSpan.Present(), len(out)
		out = s.router.FromBrowser(now, batch[i].msg, &batch[i].env, out)
		if reply {
			s.replied(out[before:])
		}
	}
	s.apply(out)
	s.noteIdle()
}

// noteIdle tells Shutdown when nothing of the clients' is left in the browser.
func (s *Server) noteIdle() {
	if s.idle != nil && (s.router.Idle() || s.cfg.KeepTabs && s.router.Settled()) {
		close(s.idle)
		s.idle = nil
	}
}
