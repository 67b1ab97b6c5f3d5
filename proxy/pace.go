package proxy

import "cdpmux/routing"

// pace keeps one client from filling the browser's queue, in which the others'
// commands stand behind its own: one that is limits.ahead commands ahead of
// their replies is not read until half of them are answered, yet never for
// longer than limits.pause, because what hangs may be ended only by what comes
// after it. Guarded by Server.mu.
type pace struct {
	ahead int           // commands without a reply, sent since the last pause that ran out
	room  chan struct{} // closed when the client is read again; nil: it is read
}

// sent counts commands and returns the channel to wait for when they are too many.
func (p *pace) sent(n, most int) <-chan struct{} {
	if p.ahead += n; p.ahead < most {
		return nil
	}
	if p.room == nil {
		p.room = make(chan struct{})
	}
	return p.room
}

// answered counts a reply.
func (p *pace) answered(most int) {
	p.ahead = max(0, p.ahead-1)
	if p.room != nil && p.ahead <= most/2 {
		p.read()
	}
}

// ranOut ends a pause that was too long.
func (p *pace) ranOut() {
	p.ahead = 0
	if p.room != nil {
		p.read()
	}
}

func (p *pace) read() {
	close(p.room)
	p.room = nil
}

// replied counts what goes to clients among the actions that a command or a
// reply led to.
func (s *Server) replied(actions []routing.Action) {
	for i := range actions {
		if a := &actions[i]; a.Kind == routing.ToClient {
			if c := s.clients[a.Conn]; c != nil {
				c.pace.answered(s.limits.ahead)
			}
		}
	}
}

// goOn reads a client again that waited too long for replies.
func (s *Server) goOn(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.pace.ranOut()
}
