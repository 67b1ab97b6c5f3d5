package proxy

import (
	"net/http"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// client is one downstream connection: a root connection of a client id, or a
// page socket. Its reader is the goroutine of the HTTP handler.
type client struct {
	*wire.Link

	// static after Connect
	id      string // client id; "" is the HTTP owner
	page    string // target id of a page socket
	conn    routing.ConnID
	since   time.Time
	hasRoot chan struct{} // closed when it has a root for the first time

	// guarded by Server.mu
	held    int // bytes sent since it has no root
	pace    pace
	tracers []*tracer // nil: nobody follows it
}

// opened says that the connection has a root, its first one or, after the
// browser was lost, another one.
func (c *client) opened() {
	c.held = 0
	if !c.hadRoot() {
		close(c.hasRoot)
	}
}

func (c *client) hadRoot() bool {
	select {
	case <-c.hasRoot:
		return true
	default:
		return false
	}
}

// upgrade answers the handshake. It returns nil when it was refused.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) *wire.Link {
	return wire.Accept(w, r, s.limits.Limits, s.limits.client, sendText)
}

// serveClient serves a WebSocket handshake and the connection behind it.
func (s *Server) serveClient(w http.ResponseWriter, r *http.Request, a address) {
	id, page := a.client, a.page
	if err := s.refusedTo(a); err != nil {
		s.sendProblem(w, problemOf(err))
		return
	}
	if page == "" && !s.admit(id) {
		s.sendProblem(w, s.fullHouse())
		return
	}
	l := s.upgrade(w, r)
	c := s.join(l, a)
	if c == nil {
		return
	}
	defer s.untrack(l)
	go l.WriteLoop()
	err := c.readLoop(s)
	s.leave(c)
	l.HangUp(err)
	s.noteClosed(c)
	c.log(s.log)
}

// readLoop hands the messages to the Router, those that came together at once,
// until the connection ends.
func (c *client) readLoop(s *Server) error {
	var batch []incoming
	pause := time.NewTimer(0)
	defer pause.Stop()
	defer func() {
		if len(batch) > 0 { // what came before the end counts
			s.fromClient(c, batch)
		}
	}()
	for {
		m, _, err := c.Read()
		if err != nil {
			return err
		}
		batch = slices.Grow(batch, 1)[:len(batch)+1]
		in := &batch[len(batch)-1]
		in.msg, in.refusal = m, routing.ScanCommand(m.Text(), &in.env)
		if c.More() && len(batch) < batchMost {
			continue
		}
		backlog, ahead := s.fromClient(c, batch)
		s.cfg.Audit.wait(c.Gone())
		clear(batch) // it points to messages that are others' now
		batch = batch[:0]
		if backlog != nil {
			select {
			case <-backlog:
			case <-c.Gone():
			}
		}
		if ahead != nil {
			pause.Reset(s.limits.pause)
			select {
			case <-ahead:
			case <-pause.C:
				s.goOn(c)
			case <-c.Gone():
			}
		}
	}
}

// log writes the one line of a connection's end.
func (c *client) log(log zerolog.Logger) {
	info := c.Reason().Info()
	e := log.WithLevel(info.Level).Uint64("conn", uint64(c.conn)).Str("client", routing.ShortID(c.id))
	if c.page != "" {
		e = e.Str("page", c.page)
	}
	text := "connection ended: " + info.Text
	if c.Reason() == wire.TakenOver {
		text += ". Two agents use the name " + routing.ShortID(c.id) + ": give each a name of its own, or start workers with --worker N, which are " + routing.ShortID(c.id) + "-wN"
	}
	c.Measure(e.Str("reason", info.Label).Int("code", info.Code), c.since).Msg(text)
}
