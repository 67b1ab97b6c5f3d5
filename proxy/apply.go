package proxy

import (
	"time"

	"cdpmux/routing"
)

// apply carries out the Router's actions in their order. The lock is held;
// pushing never waits.
func (s *Server) apply(actions []routing.Action) {
	for i := range actions {
		switch a := &actions[i]; a.Kind {
		case routing.ToBrowser:
			if s.up != nil {
				s.up.push(a.Msg)
			}
		case routing.ToClient:
			if c := s.clients[a.Conn]; c != nil {
				c.push(a.Msg)
			}
		case routing.Opened:
			if c := s.clients[a.Conn]; c != nil {
				c.opened()
			}
		case routing.Close:
			if c := s.clients[a.Conn]; c != nil {
				delete(s.clients, a.Conn)
				if a.Reason == routing.ReasonTargetClosed {
					c.push(routing.NewMessage(lastWord))
				}
				end := ending{reason: routed[a.Reason]}
				if end.reason == startFailed { // it may not have sent a command to answer yet
					end.text = s.noBrowser
				}
				c.finish(end)
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
		}
	}
	clear(actions) // they point to messages that are others' now
	s.actions = actions[:0]
	if at := s.router.Next(); at != s.timerAt {
		s.timerAt = at
		if at.IsZero() {
			s.timer.Stop()
		} else {
			s.timer.Reset(time.Until(at))
		}
	}
	s.saveSoon()
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

// fromClient hands a client's message to the Router. When the client should
// not be read for a while, it returns the channel to wait for.
func (s *Server) fromClient(c *client, m *routing.Message, refusal *routing.Refusal) <-chan struct{} {
	size := memory(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if refusal != nil {
		s.apply(s.router.Refuse(c.conn, refusal, s.actions))
		freeMessage(m)
	} else {
		s.apply(s.router.FromClient(time.Now(), c.conn, m, &c.env, s.actions))
	}
	hadRoot := c.hadRoot()
	if hadRoot && s.up != nil {
		return s.up.out.backlog()
	}
	c.held += size
	switch {
	case c.held <= s.limits.held:
		return nil
	case !hadRoot:
		return c.hasRoot
	case s.starting != nil: // the browser was lost
		return s.starting.done
	}
	return nil
}

// fromBrowser hands a message of the browser to the Router.
func (s *Server) fromBrowser(m *routing.Message, env *routing.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(s.router.FromBrowser(time.Now(), m, env, s.actions))
	s.noteIdle()
}

// noteIdle tells Shutdown when nothing of the clients' is left in the browser.
func (s *Server) noteIdle() {
	if s.idle != nil && (s.router.Idle() || s.cfg.KeepTabs && s.router.Settled()) {
		close(s.idle)
		s.idle = nil
	}
}
