package proxy

import (
	"time"

	"cdpmux/proxy/admin"
	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// admit reserves a place for a client id until join. A newcomer of an id that
// is connected or has a lease always has one.
func (s *Server) admit(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.router.HasClient(id) || s.upgrading[id] > 0 || s.tenants[id] != nil
	if s.cfg.MaxClients > 0 && !has && s.placesTaken() >= s.cfg.MaxClients {
		return false
	}
	s.upgrading[id]++
	return true
}

// join registers the connection behind a handshake, nil when that failed, and
// gives back what admit reserved. It returns nil when there is nothing to serve.
func (s *Server) join(l *wire.Link, a address) *client {
	id, page := a.client, a.page
	s.mu.Lock()
	defer s.mu.Unlock()
	if page == "" {
		if s.upgrading[id]--; s.upgrading[id] == 0 {
			delete(s.upgrading, id)
		}
	}
	if l == nil {
		return nil
	}
	if s.closing || !s.mayEnter(a) { // a lease may have come or gone since it was let in
		l.Close()
		return nil
	}
	s.seen(id)
	s.track(l, admin.OfClients)
	c := &client{Link: l, id: id, page: page, since: time.Now(), hasRoot: make(chan struct{})}
	var out []routing.Action
	if page == "" {
		c.conn, out = s.router.Connect(c.since, id, s.graceOf(a), s.actions)
	} else {
		c.conn, out = s.router.ConnectPage(c.since, id, page, s.actions)
	}
	s.clients[c.conn] = c
	s.traceConn(c)
	s.apply(out)
	s.wake()
	return c
}

// graceOf is for how long a client's tabs outlive it. Nobody can come back to
// a name that we made up for one connection; to one that /json/version gave
// out, who holds that answer can, and does so soon.
func (s *Server) graceOf(a address) time.Duration {
	switch {
	case a.anonymous:
		return 0
	case s.handed.has(a.client):
		return handedGrace
	}
	if t := s.tenants[a.client]; t != nil && t.Grace != nil {
		return *t.Grace
	}
	return s.cfg.Grace
}

const handedGrace = 30 * time.Second

// handed are client ids that were given out, the newest ones.
type handed struct {
	ids  map[string]bool
	ring [4096]string
	next int
}

func (h *handed) add(id string) {
	if h.ids == nil {
		h.ids = map[string]bool{}
	}
	delete(h.ids, h.ring[h.next])
	h.ring[h.next], h.ids[id] = id, true
	h.next = (h.next + 1) % len(h.ring)
}

func (h *handed) has(id string) bool { return h.ids[id] }

// leave tells the Router that a connection is gone.
func (s *Server) leave(c *client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c.conn)
	s.seen(c.id)
	s.apply(s.router.Disconnect(time.Now(), c.conn, s.actions))
}

// track counts a WebSocket and its reader until untrack. The lock is held and
// the server is not closing.
func (s *Server) track(l *wire.Link, p admin.Peer) {
	s.links[l] = p
	s.wg.Add(1)
}

func (s *Server) untrack(l *wire.Link) {
	s.mu.Lock()
	s.totals.Carried[s.links[l]].Add(l)
	delete(s.links, l)
	s.mu.Unlock()
	s.wg.Done()
}
