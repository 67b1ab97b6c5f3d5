package wire

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// corkConn is the net.Conn under a WebSocket. During the handshake everything
// passes through. After cork, small writes are held until Flush, so that a
// batch of frames costs one system call; a large write leaves at once, behind
// what is held.
//
// Flush and large writes belong to the connection's one writer. Other
// goroutines (gorilla answers protocol errors from the reader) may write what
// is small: it joins what is held, touches no socket and never waits.
type corkConn struct {
	net.Conn

	// static after cork
	corked  bool
	tls     *patientConn                   // under TLS: it sees to deadlines; nil without
	tick    time.Duration                  // how often stalled is asked
	stalled func(idle time.Duration) error // asked while the peer takes nothing; an error ends the write

	// owned by the writer
	armed time.Time   // the write deadline that is set
	spare []byte      // the other half of held
	pair  [2][]byte   // room for bufs
	bufs  net.Buffers // what is being sent

	// owned by the handshake
	accept acceptFix

	mu   sync.Mutex
	held []byte // guarded by mu
}

// largeWrite is the size up to which copying is cheaper than a system call of
// its own; flushAt is how much a batch may hold before it is sent.
const (
	largeWrite = 16 << 10
	flushAt    = 64 << 10
)

// cork starts holding. No other goroutine uses the connection yet.
func (c *corkConn) cork(tick time.Duration, stalled func(idle time.Duration) error) {
	c.tick, c.stalled, c.corked = tick, stalled, true
	if c.tls != nil {
		c.tls.watch(tick, stalled)
	}
}

func (c *corkConn) Write(p []byte) (int, error) {
	if !c.corked {
		return c.Conn.Write(c.accept.apply(p))
	}
	if len(p) <= largeWrite {
		c.mu.Lock()
		c.held = append(c.held, p...)
		c.mu.Unlock()
		return len(p), nil
	}
	if err := c.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush sends what is held.
func (c *corkConn) Flush() error { return c.send(nil) }

// SetWriteDeadline is gorilla's before each frame. Once corked the deadline is
// the connection's own.
func (c *corkConn) SetWriteDeadline(t time.Time) error {
	if c.corked {
		return nil
	}
	return c.Conn.SetWriteDeadline(t)
}

// send writes what is held, then p. It waits as long as stalled allows.
func (c *corkConn) send(p []byte) error {
	c.mu.Lock()
	held := c.held
	c.held = c.spare
	c.mu.Unlock()
	defer func() { c.spare = held[:0] }()

	c.bufs = c.pair[:0]
	for _, b := range [2][]byte{held, p} {
		if len(b) > 0 {
			c.bufs = append(c.bufs, b)
		}
	}
	since := time.Now() // the peer took something
	now := since
	for len(c.bufs) > 0 {
		if c.tls == nil && now.Add(c.tick/2).After(c.armed) {
			c.armed = now.Add(c.tick)
			c.Conn.SetWriteDeadline(c.armed)
		}
		n, err := c.bufs.WriteTo(c.Conn)
		if err == nil {
			break
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		now = time.Now()
		if n > 0 {
			since = now
		}
		if err := c.stalled(now.Sub(since)); err != nil {
			return err
		}
	}
	return nil
}

// CloseWrite sends FIN behind what was flushed, where the transport can.
func (c *corkConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
