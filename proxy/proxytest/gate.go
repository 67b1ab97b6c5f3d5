package proxytest

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// gate is a net.Conn whose reading can be stopped and resumed at any moment,
// also while a Read is waiting: a peer that does not read.
type gate struct {
	net.Conn
	muted bool // Write discards; set before the reader starts

	mu      sync.Mutex
	open    sync.Cond
	stops   int // calls of stop
	stopped bool
	closed  bool
}

func newGate(conn net.Conn) *gate {
	g := &gate{Conn: conn}
	g.open.L = &g.mu
	return g
}

func (g *gate) Read(p []byte) (int, error) {
	for {
		stops := g.await()
		n, err := g.Conn.Read(p)
		if n > 0 { // it may have begun before stop
			g.await()
			return n, err
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		g.mu.Lock()
		ours := g.stops != stops
		g.mu.Unlock()
		if !ours {
			return n, err
		}
	}
}

// await waits while the gate is stopped, and returns how often it was.
func (g *gate) await() (stops int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.stopped && !g.closed {
		g.open.Wait()
	}
	return g.stops
}

func (g *gate) Write(p []byte) (int, error) {
	if g.muted {
		return len(p), nil
	}
	return g.Conn.Write(p)
}

// stop ends a Read that waits by a deadline in the past; Read then waits here.
func (g *gate) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops++
	g.stopped = true
	_ = g.SetReadDeadline(time.Unix(1, 0))
}

func (g *gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = false
	_ = g.SetReadDeadline(time.Time{})
	g.open.Broadcast()
}

func (g *gate) Close() error {
	g.mu.Lock()
	g.closed = true
	g.open.Broadcast()
	g.mu.Unlock()
	return g.Conn.Close()
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// drop resets the connection: the peer sees neither a close frame nor a FIN.
func (g *gate) drop() {
	if tcp, ok := g.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = g.Close()
}
