package proxy

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// TraceLine is one line of GET /v1/clients/{id}/trace: what a client and the
// browser say to each other, without what it is about. Params, results, URLs
// and texts of errors are never in it.
type TraceLine struct {
	Time      time.Time `json:"time"`
	Kind      string    `json:"kind"`                 // see the constants below
	Conn      uint64    `json:"conn,omitempty"`       // the connection's number, as in the log
	ID        *int32    `json:"id,omitempty"`         // the client's own, of a command and its reply
	Method    string    `json:"method,omitempty"`     // of a reply: its command's
	Session   string    `json:"session,omitempty"`    // the first 8 characters
	Target    string    `json:"target,omitempty"`     // the type of the session's target
	Bytes     int       `json:"bytes,omitempty"`      // of the whole message
	LatencyMS *float64  `json:"latency_ms,omitempty"` // of a reply: since its command came
	Error     int       `json:"error,omitempty"`      // code of a reply that is an error
	Reason    string    `json:"reason,omitempty"`     // of a connection's end
	Lost      int       `json:"lost,omitempty"`       // lines that were dropped here
}

// Kinds of a TraceLine.
const (
	TraceWaiting   = "waiting" // first line: the client is not there yet
	TraceConnected = "connected"
	TraceCommand   = "command"
	TraceReply     = "reply"
	TraceEvent     = "event"
	TraceEnded     = "ended" // one connection
	TraceLost      = "lost"  // the reader was too slow
	TraceGone      = "gone"  // last line: the client has left for good
)

const (
	maxTracers  = 4
	traceRing   = 1024 // lines that wait for a slow reader
	tracePend   = 4096 // commands without a reply whose latency can be told
	traceMethod = 64   // the longest method of Chrome has fewer characters
)

// tracer is one reader of a trace. Only who holds Server.mu sends to lines.
type tracer struct {
	client string
	lines  chan TraceLine
	gone   chan struct{} // closed when the client has left for good

	// guarded by Server.mu
	seen    bool // the client was there
	conns   int  // that are followed, and whose end was not told yet
	lost    int
	pending map[traceKey]tracePending
}

type traceKey struct {
	conn    routing.ConnID
	id      int32
	session string
}

type tracePending struct {
	at             time.Time
	method, target string
}

// put queues a line, or counts it as lost.
func (t *tracer) put(l TraceLine) {
	if t.lost > 0 {
		select {
		case t.lines <- TraceLine{Time: l.Time, Kind: TraceLost, Lost: t.lost}:
			t.lost = 0
		default:
		}
	}
	if t.lost == 0 {
		select {
		case t.lines <- l:
			return
		default:
		}
	}
	t.lost++
}

// traceCommand tells the tracers of a client's command. The lock is held, and
// the Router has not had the message yet.
func (s *Server) traceCommand(c *client, in *incoming, now time.Time) {
	l := TraceLine{
		Time: now, Kind: TraceCommand, Conn: uint64(c.conn), Method: methodName(in.env.Method),
		Session: shortSession(in.env.Session), Target: s.router.TargetType(in.env.Session), Bytes: len(in.msg.Text()),
	}
	if in.env.IDSpan.Present() {
		id := in.env.ID
		l.ID = &id
	}
	key := traceKey{c.conn, in.env.ID, string(in.env.Session)}
	for _, t := range c.tracers {
		if l.ID != nil && len(t.pending) < tracePend {
			t.pending[key] = tracePending{now, l.Method, l.Target}
		}
		t.put(l)
	}
}

// traceMessage tells the tracers of a message for a client. The lock is held.
func (s *Server) traceMessage(c *client, m *routing.Message) {
	var env routing.Envelope
	text := m.Text()
	if !routing.Scan(text, &env) {
		return
	}
	l := TraceLine{
		Time: time.Now(), Kind: TraceEvent, Conn: uint64(c.conn), Method: methodName(env.Method),
		Session: shortSession(env.Session), Target: s.router.TargetType(env.Session), Bytes: len(text),
	}
	if env.IDSpan.Present() {
		l.Kind, l.ID = TraceReply, &env.ID
	}
	if env.Error.Present() {
		if code, ok := routing.Member(env.Error.Of(text), "code"); ok {
			l.Error, _ = strconv.Atoi(string(code.Of(env.Error.Of(text))))
		}
	}
	key := traceKey{c.conn, env.ID, string(env.Session)}
	for _, t := range c.tracers {
		line := l
		if p, ok := t.pending[key]; ok && l.ID != nil {
			delete(t.pending, key)
			ms := float64(l.Time.Sub(p.at).Microseconds()) / 1000
			line.LatencyMS, line.Method, line.Target = &ms, p.method, p.target
		}
		t.put(line)
	}
}

// traceConn tells the tracers of a connection that it is there, and has it
// followed. The lock is held.
func (s *Server) traceConn(c *client) {
	for _, t := range s.tracers {
		if t.client == c.id {
			t.follow(c)
		}
	}
}

func (t *tracer) follow(c *client) {
	t.seen = true
	t.conns++
	c.tracers = append(c.tracers, t)
	t.put(TraceLine{Time: time.Now(), Kind: TraceConnected, Conn: uint64(c.conn)})
}

// traceEnd tells the tracers of a connection's end. The lock is held.
func (s *Server) traceEnd(c *client, why wire.Reason) {
	for _, t := range c.tracers {
		t.conns--
		for key := range t.pending {
			if key.conn == c.conn {
				delete(t.pending, key)
			}
		}
		t.put(TraceLine{Time: time.Now(), Kind: TraceEnded, Conn: uint64(c.conn), Reason: why.Info().Label})
	}
}

// traceGone ends the tracers of clients that have left for good, once the ends
// of their connections were told. The lock is held.
func (s *Server) traceGone() {
	s.tracers = slices.DeleteFunc(s.tracers, func(t *tracer) bool {
		if !t.seen || t.conns > 0 || s.router.Knows(t.client) {
			return false
		}
		close(t.gone)
		return true
	})
}

// startTrace begins to follow a client; nil when too many are followed.
func (s *Server) startTrace(id string) *tracer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tracers) >= maxTracers {
		return nil
	}
	t := &tracer{client: id, lines: make(chan TraceLine, traceRing), gone: make(chan struct{}), pending: map[traceKey]tracePending{}}
	s.tracers = append(s.tracers, t)
	if t.seen = s.router.Knows(id); !t.seen {
		t.put(TraceLine{Time: time.Now(), Kind: TraceWaiting})
	}
	for _, c := range s.clients {
		if c.id == id {
			t.follow(c)
		}
	}
	return t
}

func (s *Server) endTrace(t *tracer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(o *tracer) bool { return o == t }
	s.tracers = slices.DeleteFunc(s.tracers, is)
	for _, c := range s.clients {
		if c.tracers = slices.DeleteFunc(c.tracers, is); len(c.tracers) == 0 {
			c.tracers = nil
		}
	}
}

// serveTrace answers with one JSON object a line, until the client leaves for
// good or the reader goes.
func (s *Server) serveTrace(w http.ResponseWriter, r *http.Request, id string) {
	if !validID(id) {
		s.sendProblem(w, problemOf(badRequest("the client id is none")))
		return
	}
	t := s.startTrace(id)
	if t == nil {
		s.sendProblem(w, problem{
			Text: fmt.Sprintf("%d traces run, which is the limit", maxTracers), Kind: "capacity_unavailable", Retryable: true,
			Next: "end one of them", status: http.StatusServiceUnavailable,
		})
		return
	}
	defer s.endTrace(t)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	buf := bufio.NewWriter(w)
	out, flusher := json.NewEncoder(buf), http.NewResponseController(w)
	flush := func() error {
		_ = flusher.SetWriteDeadline(time.Now().Add(sendTime))
		if err := buf.Flush(); err != nil {
			return err
		}
		return flusher.Flush()
	}
	if flush() != nil {
		return
	}
	for {
		select {
		case l := <-t.lines:
			_ = out.Encode(l) // a Flush tells of the error
			for len(t.lines) > 0 {
				_ = out.Encode(<-t.lines)
			}
		case <-t.gone:
			for len(t.lines) > 0 {
				_ = out.Encode(<-t.lines)
			}
			_ = out.Encode(TraceLine{Time: time.Now(), Kind: TraceGone})
			_ = flush()
			return
		case <-r.Context().Done():
			return
		}
		if flush() != nil {
			return
		}
	}
}

// methodName is a method as it may be shown: a client can write anything there.
func methodName(method []byte) string {
	name := string(method)
	if len(name) > traceMethod || strings.Trim(name, idAlphabet+".") != "" {
		return "(no method)"
	}
	return name
}

func shortSession(id []byte) string {
	if len(id) > 8 {
		id = id[:8]
	}
	if strings.Trim(string(id), idAlphabet) != "" {
		return "(invalid)"
	}
	return string(id)
}
