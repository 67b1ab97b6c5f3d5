package access

import (
	"net"
	"net/http"
	"sync"
)

// Crowd bounds the connections that cost memory and do nothing. Those that have
// not sent the whole head of their first request (a TLS handshake belongs to
// it) are closed when there are too many, the newest first, as are those that
// are kept alive between two requests. WebSockets and requests that are being
// answered are not counted.
type Crowd struct {
	most int // of each kind

	mu      sync.Mutex
	state   map[net.Conn]http.ConnState // of the two kinds
	count   map[http.ConnState]int
	refused int64 // connections closed before their first request
}

// NewCrowd lets in so many connections of each kind. Its Note is for
// http.Server.ConnState.
func NewCrowd(most int) *Crowd {
	return &Crowd{most: most, state: map[net.Conn]http.ConnState{}, count: map[http.ConnState]int{}}
}

// Note is told of each change, by net/http, and closes what is too many.
func (c *Crowd) Note(conn net.Conn, state http.ConnState) {
	if c.full(conn, state) {
		_ = conn.Close()
	}
}

func (c *Crowd) full(conn net.Conn, state http.ConnState) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.state[conn]; ok {
		delete(c.state, conn)
		c.count[old]--
	}
	if state != http.StateNew && state != http.StateIdle {
		return false
	}
	if c.count[state] >= c.most {
		if state == http.StateNew {
			c.refused++
		}
		return true
	}
	c.state[conn] = state
	c.count[state]++
	return false
}

// TurnedAway is how many connections were closed before their first request.
func (c *Crowd) TurnedAway() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}
