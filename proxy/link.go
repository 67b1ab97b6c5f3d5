package proxy

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"cdpmux/routing"
)

// link is one WebSocket with its outbox and its writer: what a client's
// connection and the browser's have in common. One goroutine reads, one
// (writeLoop) writes, anybody may push and finish.
type link struct {
	// static
	ws     *websocket.Conn
	frames *frameConn // above conn: tells how long a message is
	conn   *corkConn
	out    *outbox
	limits *limits
	queue  queueLimit
	mute   bool          // the peer can bear no control frame
	gone   chan struct{} // closed when the writer has ended

	ping atomic.Pointer[string] // payload of a ping that waits for its pong

	received traffic // counted by the reader
	sent     traffic // counted by the writer
}

// traffic counts the messages of one direction, and their bytes without the
// WebSocket's own. One loop adds, once for many; anybody may look.
type traffic struct{ messages, bytes atomic.Int64 }

func (t *traffic) add(messages, bytes int) {
	t.messages.Add(int64(messages))
	t.bytes.Add(int64(bytes))
}

// limits are the sizes and times that connections live by.
type limits struct {
	client    queueLimit
	held      int           // bytes a client may send before it has its root, then its reader waits
	backlog   int           // bytes that wait for the browser, then the reader of who sends more waits
	ahead     int           // commands a client may be ahead of their replies, then its reader waits for some,
	pause     time.Duration // … for so long at most
	closeWait time.Duration // what the end of a connection may take once the peer does nothing
	tick      time.Duration // how often a write that makes no progress is looked at
	answer    time.Duration // what an HTTP request waits for the browser's answer
	tabsWait  time.Duration // what closing the clients' tabs may take at the end
	cleanup   time.Duration // between attempts to get rid of what is left of a browser
	retry     time.Duration // Retry-After of what may work later
	body      time.Duration // what the body of a request may take
	answering int           // HTTP requests that may wait for their answers at once, the operator's besides

	redials    int           // attempts to get a lost browser back
	redialWait time.Duration // between the first two of them, then twice as long each time,
	redialMax  time.Duration // … up to this
	probe      time.Duration // a browser that says nothing while something is open is probed so often
	silent     time.Duration // … and after this what is open is given up,
	dead       time.Duration // … after this the connection
	save       time.Duration // the state file is written no more often than this
}

// queueLimit says when a peer is a slow consumer: over soft bytes and nothing
// taken for stall, or over hard bytes. The zero queueLimit is none.
type queueLimit struct {
	soft, hard int
	stall      time.Duration
}

// Chrome itself keeps up to 256 MiB for a reader that does not read, then
// throws replies away.
var defaultLimits = limits{
	client:    queueLimit{soft: 64 << 20, hard: 256 << 20, stall: 10 * time.Second},
	held:      64 << 20,
	backlog:   64 << 20,
	ahead:     64,
	pause:     20 * time.Millisecond,
	closeWait: time.Second,
	tick:      250 * time.Millisecond,
	answer:    30 * time.Second,
	tabsWait:  2 * time.Second,
	cleanup:   10 * time.Second,
	retry:     5 * time.Second,
	body:      5 * time.Second,
	answering: 1024, // 18 KiB each

	redials:    10,
	redialWait: time.Second,
	redialMax:  30 * time.Second,
	probe:      5 * time.Second,
	silent:     15 * time.Second,
	dead:       30 * time.Second,
	save:       time.Second,
}

// errStalled ends the write of a connection that is ending anyway.
var errStalled = errors.New("peer takes nothing")

// measure adds to a log line how long the connection lasted and what it carried.
func (l *link) measure(e *zerolog.Event, since time.Time) *zerolog.Event {
	return e.Dur("ms", time.Since(since)).
		Int64("in_messages", l.received.messages.Load()).Int64("in_bytes", l.received.bytes.Load()).
		Int64("out_messages", l.sent.messages.Load()).Int64("out_bytes", l.sent.bytes.Load())
}

// newLink takes over a WebSocket right after its handshake.
func newLink(ws *websocket.Conn, frames *frameConn, conn *corkConn, lim *limits, queue queueLimit, mute bool) *link {
	l := &link{ws: ws, frames: frames, conn: conn, out: newOutbox(lim.backlog), limits: lim, queue: queue, mute: mute, gone: make(chan struct{})}
	conn.cork(lim.tick, l.stalled)
	if mute {
		ws.SetPingHandler(func(string) error { return nil })
		ws.SetCloseHandler(func(int, string) error { return nil })
	} else {
		// gorilla's own handler gives a pong up when a frame takes longer than
		// a second to write; here the writer sends it between two frames.
		ws.SetPingHandler(func(payload string) error {
			l.ping.Store(&payload)
			l.out.poke()
			return nil
		})
	}
	return l
}

// push queues m for the peer, whom it may turn into a slow consumer.
func (l *link) push(m *routing.Message) {
	if waiting := l.out.push(m); l.queue.hard > 0 && waiting > l.queue.hard {
		l.finish(ending{reason: slowConsumer, drop: true})
	}
}

func (l *link) finish(e ending) bool { return l.out.finish(e) }

// writeLoop writes batches until the connection ends.
func (l *link) writeLoop() {
	defer close(l.gone)
	var batch []*routing.Message
	for {
		var end *ending
		batch, end = l.out.take(batch)
		err := l.writeBatch(batch)
		if err == nil && end != nil {
			err = l.goodbye(end)
		}
		if err != nil { // the reader must end too
			l.finish(ending{reason: clientLeft, drop: true})
			l.conn.Close()
			return
		}
		if end != nil {
			return
		}
		if len(batch) == 0 {
			<-l.out.wake
		}
		if cap(batch) > 4096 {
			batch = nil // the array of one burst is not kept
		}
	}
}

// writeBatch writes each message as one text frame and sends them together.
func (l *link) writeBatch(batch []*routing.Message) error {
	n, held, size := 0, 0, 0 // messages and bytes since the last flush, and what the outbox counted for them
	for i, m := range batch {
		if err := l.pong(); err != nil {
			return err
		}
		text := m.Text()
		err := l.ws.WriteMessage(websocket.TextMessage, text)
		if err == websocket.ErrCloseSent { // gorilla's, for a frame that broke the protocol
			break
		}
		if err != nil {
			return err
		}
		n, held, size = n+1, held+len(text), size+memory(m)
		freeMessage(m)
		batch[i] = nil
		if held >= flushAt {
			if err := l.flush(n, held, size); err != nil {
				return err
			}
			n, held, size = 0, 0, 0
		}
	}
	if err := l.pong(); err != nil {
		return err
	}
	return l.flush(n, held, size)
}

// flush sends n messages of so many bytes, for which the outbox counted size.
func (l *link) flush(n, bytes, size int) error {
	err := l.conn.Flush()
	l.out.written(size)
	if err == nil {
		l.sent.add(n, bytes)
	}
	return err
}

// pong answers the last ping, if there was one.
func (l *link) pong() error {
	if l.ping.Load() == nil {
		return nil
	}
	payload := l.ping.Swap(nil)
	err := l.ws.WriteMessage(websocket.PongMessage, []byte(*payload))
	if err == websocket.ErrCloseSent {
		return nil
	}
	return err
}

// goodbye says why and gives the reader a last moment for the peer's own close.
func (l *link) goodbye(end *ending) error {
	frame := end.closeFrame()
	if frame != nil && !l.mute {
		err := l.ws.WriteMessage(websocket.CloseMessage, frame)
		if err != nil && err != websocket.ErrCloseSent {
			return err
		}
	}
	if err := l.conn.Flush(); err != nil {
		return err
	}
	if frame == nil || l.mute {
		l.conn.CloseWrite()
	}
	return l.conn.SetReadDeadline(time.Now().Add(l.limits.closeWait))
}

// stalled decides about a write during which the peer took nothing for idle.
func (l *link) stalled(idle time.Duration) error {
	waiting, end := l.out.state()
	switch {
	case end != nil && end.drop && time.Since(end.at) >= l.limits.closeWait,
		end != nil && idle >= l.limits.closeWait:
		return errStalled
	case end == nil && l.queue.soft > 0 && waiting > l.queue.soft && idle >= l.queue.stall:
		l.finish(ending{reason: slowConsumer, drop: true})
	}
	return nil
}

// hangUp ends the connection after its reader stopped with err. It waits for
// the writer, then until the peer has closed: a reset, which unread bytes
// would cause, could take the close frame with it.
func (l *link) hangUp(err error) {
	l.finish(ending{reason: readEnd(err), drop: true})
	<-l.gone
	if !peerClosed(err) {
		_, _ = io.Copy(io.Discard, l.conn)
	}
	l.conn.Close()
}

// reason is why the connection ended; it is asked after the end.
func (l *link) reason() reason {
	_, end := l.out.state()
	return end.reason
}

// errBinary is a binary frame, for which Chrome would drop the connection that
// all clients share.
var errBinary = errors.New("binary frame")

// readEnd is what the error of a reader says about the end.
func readEnd(err error) reason {
	switch {
	case errors.Is(err, errBinary):
		return binaryFrame
	case errors.Is(err, websocket.ErrReadLimit):
		return messageTooBig
	case !peerClosed(err) && strings.HasPrefix(err.Error(), "websocket: "): // gorilla has no type for it
		return protocolError
	}
	return clientLeft
}

// peerClosed reports whether the peer closed, with a close frame or without.
func peerClosed(err error) bool {
	var closed *websocket.CloseError
	return errors.As(err, &closed)
}
