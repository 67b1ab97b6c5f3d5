package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/routing"
)

// upstream is the one connection to the browser.
type upstream struct {
	*link
	http     string          // the browser's own HTTP endpoint, without a path; empty: it has none
	protocol protocolCache   // what it answers to /json/protocol
	known    chan struct{}   // closed when the Router knows the browser's version
	ending   <-chan struct{} // closed when the browser is known to end; may be nil
	since    time.Time

	// guarded by Server.mu
	watch   *time.Timer // looks whether it is silent
	silence silence
}

const (
	// writeSize is above nearly every command: Chrome takes fragments, but a
	// single frame is masked and sent in one go.
	writeSize = 1 << 20
	readSize  = 64 << 10
	// readLimit is above what Chrome can send (256 MiB).
	readLimit   = 512 << 20
	dialTimeout = 10 * time.Second
)

// dial connects to a browser's WebSocket address. One of ws+unix:///PATH is
// served on a Unix socket.
func dial(ctx context.Context, address string, lim *limits) (*upstream, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("dial browser: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	network, place := "tcp", hostPort(u)
	if u.Scheme == "ws+unix" {
		network, place = "unix", u.Path
		u = &url.URL{Scheme: "ws", Host: "localhost"}
	}
	socket, err := new(net.Dialer).DialContext(ctx, network, place)
	if err != nil {
		return nil, fmt.Errorf("dial browser: %w", err)
	}
	conn := &corkConn{Conn: socket}
	frames := &frameConn{Conn: conn}
	base := url.URL{Scheme: "http", Host: socket.RemoteAddr().String()}
	header := http.Header{"Host": {base.Host}} // Chrome refuses most names
	switch {
	case network == "unix":
		base = url.URL{}
		header.Set("Host", u.Host)
	case u.Scheme == "wss":
		base.Scheme, base.Host = "https", u.Host
		header.Set("Host", u.Host)
	}
	dialer := websocket.Dialer{
		NetDialContext:  func(context.Context, string, string) (net.Conn, error) { return frames, nil },
		ReadBufferSize:  readSize,
		WriteBufferSize: writeSize,
	}
	ws, resp, err := dialer.DialContext(ctx, u.String(), header)
	if err != nil {
		socket.Close()
		if resp != nil {
			return nil, fmt.Errorf("dial browser: HTTP %s", resp.Status)
		}
		return nil, fmt.Errorf("dial browser: %w", err)
	}
	ws.SetReadLimit(readLimit)
	frames.on = u.Scheme == "ws" // Chrome says nothing before it is asked
	return &upstream{
		link:  newLink(ws, frames, conn, lim, queueLimit{}, false),
		http:  base.String(),
		known: make(chan struct{}),
		since: time.Now(),
	}, nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"ws": "80", "wss": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// serveUpstream is the upstream's reader. It never waits for a client: Chrome
// throws replies away once 256 MiB wait unread.
func (s *Server) serveUpstream(up *upstream) {
	defer s.untrack(up.link)
	go up.writeLoop()
	if up.ending != nil {
		go up.cutWithBrowser()
	}
	err := up.readLoop(s)
	lost := s.lost(up, err)
	up.hangUp(err)
	if !lost {
		up.measure(s.log.Info(), up.since).Msg("browser connection closed")
	}
}

// cutWithBrowser ends the connection as soon as the browser is known to end:
// one that is quitting still takes commands, and makes tabs that die with it.
func (up *upstream) cutWithBrowser() {
	select {
	case <-up.ending:
		up.conn.Close()
	case <-up.gone:
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
		kind, r, err := up.ws.NextReader()
		if err != nil {
			return err
		}
		m, err := readMessage(r, up.frames.next())
		if err != nil {
			return err
		}
		more := up.frames.taken()
		batch = slices.Grow(batch, 1)[:len(batch)+1]
		in := &batch[len(batch)-1]
		if in.msg = m; kind != websocket.TextMessage || !routing.Scan(m.Text(), &in.env) {
			s.log.Warn().Int("bytes", len(m.Text())).Msg("unreadable message from the browser")
			freeMessage(m)
			batch = batch[:len(batch)-1]
		}
		if len(batch) > 0 && (!more || len(batch) == batchMost) {
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
	up.measure(s.log.Warn(), up.since).Err(err).Msg("browser connection lost")
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
