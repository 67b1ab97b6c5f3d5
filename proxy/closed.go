package proxy

import (
	"slices"
	"time"

	"cdpmux/proxy/admin"
	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// closed remembers how connections ended: of all of them the number, of the
// last few what they were. Guarded by Server.mu.
type closed struct {
	count [wire.ReasonCount]int64
	last  []admin.Closed // oldest first
}

// closedKept bounds what is remembered.
const closedKept = 50

// noteClosed is the end of a connection, whose loops have ended.
func (s *Server) noteClosed(c *client) {
	now, info := time.Now(), c.Reason().Info()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.count[c.Reason()]++
	if len(s.closed.last) == closedKept {
		s.closed.last = s.closed.last[:copy(s.closed.last, s.closed.last[1:])]
	}
	s.closed.last = append(s.closed.last, admin.Closed{
		At: now.UTC(), Client: routing.ShortID(c.id), Page: c.page != "", Reason: info.Label, Level: info.Level.String(),
		MS: now.Sub(c.since).Milliseconds(), Received: c.Received.Messages.Load(), Sent: c.Sent.Messages.Load(),
	})
	s.traceEnd(c, c.Reason())
	s.traceGone()
}

// list is the last ones, the very last first.
func (c *closed) list() []admin.Closed {
	list := append([]admin.Closed{}, c.last...)
	slices.Reverse(list)
	return list
}
