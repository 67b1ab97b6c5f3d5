package wire

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

// Link is one WebSocket with its outbox and its writer: what a client's
// connection and the browser's have in common. [Accept] and [Dial] make one.
// One goroutine reads (Read, More, and HangUp in the end), one writes
// (WriteLoop), anybody may do the rest.
type Link struct {
	// static
	ws      *websocket.Conn
	frames  *frameConn // above conn: tells how long a message is
	conn    *corkConn
	out     *outbox
	limits  Limits
	slow    SlowLimit
	trusted int           // bytes that a message is believed to have before any of them came
	strict  bool          // a binary frame ends the connection
	mute    bool          // the peer can bear no control frame
	gone    chan struct{} // closed when the writer has ended

	ping atomic.Pointer[string] // payload of a ping that waits for its pong

	Received Traffic // counted by who reads
	Sent     Traffic // counted by the writer
}

// Traffic counts the messages of one direction, and their bytes without the
// WebSocket's own. One loop adds, once for many; anybody may look.
type Traffic struct{ Messages, Bytes atomic.Int64 }

// Add counts so many messages that have so many bytes together.
func (t *Traffic) Add(messages, bytes int) {
	t.Messages.Add(int64(messages))
	t.Bytes.Add(int64(bytes))
}

// errStalled ends the write of a connection that is ending anyway.
var errStalled = errors.New("peer takes nothing")

// Measure adds to a log line how long the connection lasted and what it carried.
func (l *Link) Measure(e *zerolog.Event, since time.Time) *zerolog.Event {
	return e.Dur("ms", time.Since(since)).
		Int64("in_messages", l.Received.Messages.Load()).Int64("in_bytes", l.Received.Bytes.Load()).
		Int64("out_messages", l.Sent.Messages.Load()).Int64("out_bytes", l.Sent.Bytes.Load())
}

// begin takes over a WebSocket right after its handshake; all that is static
// is set but out and gone.
func (l *Link) begin() {
	l.out, l.gone = newOutbox(l.limits.Backlog), make(chan struct{})
	l.conn.cork(l.limits.Tick, l.stalled)
	if l.mute {
		l.ws.SetPingHandler(func(string) error { return nil })
		l.ws.SetCloseHandler(func(int, string) error { return nil })
	} else {
		// gorilla's own handler gives a pong up when a frame takes longer than
		// a second to write; here the writer sends it between two frames.
		l.ws.SetPingHandler(func(payload string) error {
			l.ping.Store(&payload)
			l.out.poke()
			return nil
		})
	}
}

// Read reads the next message to its end; it is the caller's then. text is
// false for a binary one, which a client may not send. The error is for HangUp.
func (l *Link) Read() (m *routing.Message, text bool, err error) {
	kind, r, err := l.ws.NextReader()
	if err != nil {
		return nil, false, err
	}
	text = kind == websocket.TextMessage
	if l.strict && !text {
		return nil, false, errBinary
	}
	if m, err = readMessage(r, min(l.frames.next(), l.trusted)); err != nil {
		return nil, false, err
	}
	l.frames.taken()
	return m, text, nil
}

// More reports whether the next message is here to its end, so that Read will
// not wait for the peer.
func (l *Link) More() bool { return l.frames.more() }

// Heard is when something came last, a part of a message at least.
func (l *Link) Heard() time.Time { return time.Unix(0, l.frames.last.Load()) }

// Push queues m, whose ownership it takes, for the peer, whom it may turn into
// a slow consumer. It never waits. After Finish the message is dropped.
func (l *Link) Push(m *routing.Message) {
	if waiting := l.out.push(m); l.slow.Hard > 0 && waiting > l.slow.Hard {
		l.Finish(Ending{Reason: SlowConsumer, Drop: true})
	}
}

// Queued is how many bytes wait to be sent, or are being sent.
func (l *Link) Queued() int {
	bytes, _ := l.out.state()
	return bytes
}

// Backlog returns nil while no more than Limits.Backlog bytes wait, else a
// channel that is closed when that is so again, or the connection ends.
func (l *Link) Backlog() <-chan struct{} { return l.out.backlog() }

// Finish decides how the connection ends; WriteLoop carries it out. The first
// decision stands; Finish reports whether this was it.
func (l *Link) Finish(e Ending) bool { return l.out.finish(e) }

// Close drops the connection at once: reader and writer end.
func (l *Link) Close() { l.conn.Close() }

// Gone is closed when the writer has ended.
func (l *Link) Gone() <-chan struct{} { return l.gone }

// WriteLoop writes batches until the connection ends.
func (l *Link) WriteLoop() {
	defer close(l.gone)
	var batch []*routing.Message
	for {
		var end *Ending
		batch, end = l.out.take(batch)
		err := l.writeBatch(batch)
		if err == nil && end != nil {
			err = l.goodbye(end)
		}
		if err != nil { // the reader must end too
			l.Finish(Ending{Reason: ClientLeft, Drop: true})
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
func (l *Link) writeBatch(batch []*routing.Message) error {
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
		n, held, size = n+1, held+len(text), size+Memory(m)
		Free(m)
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
func (l *Link) flush(n, bytes, size int) error {
	err := l.conn.Flush()
	l.out.written(size)
	if err == nil {
		l.Sent.Add(n, bytes)
	}
	return err
}

// pong answers the last ping, if there was one.
func (l *Link) pong() error {
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
func (l *Link) goodbye(end *Ending) error {
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
	return l.conn.SetReadDeadline(time.Now().Add(l.limits.CloseWait))
}

// stalled decides about a write during which the peer took nothing for idle.
func (l *Link) stalled(idle time.Duration) error {
	waiting, end := l.out.state()
	switch {
	case end != nil && end.Drop && time.Since(end.at) >= l.limits.CloseWait,
		end != nil && idle >= l.limits.CloseWait:
		return errStalled
	case end == nil && l.slow.Soft > 0 && waiting > l.slow.Soft && idle >= l.slow.Stall:
		l.Finish(Ending{Reason: SlowConsumer, Drop: true})
	}
	return nil
}

// HangUp ends the connection after its reader stopped with err. It waits for
// the writer, then until the peer has closed: a reset, which unread bytes
// would cause, could take the close frame with it.
func (l *Link) HangUp(err error) {
	l.Finish(Ending{Reason: readEnd(err), Drop: true})
	<-l.gone
	if !peerClosed(err) {
		_, _ = io.Copy(io.Discard, l.conn)
	}
	l.conn.Close()
}

// Reason is why the connection ended; it is asked after the end.
func (l *Link) Reason() Reason {
	_, end := l.out.state()
	return end.Reason
}

// errBinary is a binary frame, for which Chrome would drop the connection that
// all clients share.
var errBinary = errors.New("binary frame")

// readEnd is what the error of a reader says about the end.
func readEnd(err error) Reason {
	switch {
	case errors.Is(err, errBinary):
		return BinaryFrame
	case errors.Is(err, websocket.ErrReadLimit):
		return MessageTooBig
	case !peerClosed(err) && strings.HasPrefix(err.Error(), "websocket: "): // gorilla has no type for it
		return ProtocolError
	}
	return ClientLeft
}

// peerClosed reports whether the peer closed, with a close frame or without.
func peerClosed(err error) bool {
	var closed *websocket.CloseError
	return errors.As(err, &closed)
}
