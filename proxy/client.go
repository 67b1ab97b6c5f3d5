package proxy

import (
	"bufio"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"cdpmux/routing"
)

// client is one downstream connection: a root connection of a client id, or a
// page socket. Its reader is the goroutine of the HTTP handler.
type client struct {
	*link

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

// maxCommand is the payload for which Chrome drops the connection.
const maxCommand = 100 << 20

// upgrade answers the handshake. It returns nil when it was refused.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) *link {
	fix, rod := fixRodKey(r.Header)
	h := &hijacker{ResponseWriter: w, fix: fix}
	upgrader := websocket.Upgrader{
		CheckOrigin: func(*http.Request) bool { return true }, // the guard has seen to it
		Error: func(w http.ResponseWriter, _ *http.Request, status int, err error) {
			w.Header().Set("Sec-Websocket-Version", "13")
			sendText(w, status, err.Error())
		},
	}
	ws, err := upgrader.Upgrade(h, r, nil)
	if err != nil {
		return nil
	}
	ws.SetReadLimit(maxCommand - 1)
	h.frames.on = true // a client says nothing before the handshake's end
	return newLink(ws, h.frames, h.conn, &s.limits, s.limits.client, rod)
}

// hijacker puts a frameConn and a corkConn under the WebSocket.
type hijacker struct {
	http.ResponseWriter
	fix    acceptFix
	frames *frameConn
	conn   *corkConn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &corkConn{Conn: conn, accept: h.fix, tls: under(conn)}
	h.frames = &frameConn{Conn: h.conn}
	return h.frames, rw, nil
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
	go l.writeLoop()
	err := c.readLoop(s)
	s.leave(c)
	l.hangUp(err)
	s.noteClosed(c)
	c.log(s.log)
}

// trusted is what a client may announce of a message's length without sending
// any of it.
const trusted = 1 << 20

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
		kind, r, err := c.ws.NextReader()
		if err != nil {
			return err
		}
		if kind != websocket.TextMessage {
			return errBinary
		}
		m, err := readMessage(r, min(c.frames.next(), trusted))
		if err != nil {
			return err
		}
		more := c.frames.taken()
		batch = slices.Grow(batch, 1)[:len(batch)+1]
		in := &batch[len(batch)-1]
		in.msg, in.refusal = m, routing.ScanCommand(m.Text(), &in.env)
		if more && len(batch) < batchMost {
			continue
		}
		backlog, ahead := s.fromClient(c, batch)
		s.cfg.Audit.wait(c.gone)
		clear(batch) // it points to messages that are others' now
		batch = batch[:0]
		if backlog != nil {
			select {
			case <-backlog:
			case <-c.gone:
			}
		}
		if ahead != nil {
			pause.Reset(s.limits.pause)
			select {
			case <-ahead:
			case <-pause.C:
				s.goOn(c)
			case <-c.gone:
			}
		}
	}
}

// log writes the one line of a connection's end.
func (c *client) log(log zerolog.Logger) {
	info := c.reason().info()
	e := log.WithLevel(info.level).Uint64("conn", uint64(c.conn)).Str("client", routing.ShortID(c.id))
	if c.page != "" {
		e = e.Str("page", c.page)
	}
	text := "connection ended: " + info.text
	if c.reason() == takenOver {
		text += ". Two agents use the name " + routing.ShortID(c.id) + ": give each a name of its own, or start workers with --worker N, which are " + routing.ShortID(c.id) + "-wN"
	}
	c.measure(e.Str("reason", info.label).Int("code", info.code), c.since).Msg(text)
}
