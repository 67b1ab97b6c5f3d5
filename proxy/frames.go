package proxy

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"
)

// frameConn reads along with a WebSocket and learns how long each message is
// before it is read: gorilla does not tell, and a screenshot that grows its
// buffer by doubling costs twice its size. It serves the browser's connection,
// whose frames are unmasked and whole.
type frameConn struct {
	net.Conn
	last atomic.Int64 // when something came last, in nanoseconds since 1970

	// owned by the reader
	on      bool
	header  [10]byte // of the frame that begins, as far as it has been read
	have    int
	payload uint64 // bytes of the frame that are still to come
	sizes   []int  // of the messages that began and were not asked for yet
}

func (c *frameConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.last.Store(time.Now().UnixNano())
	if c.on {
		c.follow(p[:n])
	}
	return n, err
}

// follow takes in what was read.
func (c *frameConn) follow(b []byte) {
	for len(b) > 0 {
		if c.payload > 0 {
			n := min(c.payload, uint64(len(b)))
			c.payload -= n
			b = b[n:]
			continue
		}
		c.header[c.have] = b[0]
		c.have++
		b = b[1:]
		if size, ok := frameSize(c.header[:c.have]); ok {
			if opcode := c.header[0] & 0xf; opcode == 1 || opcode == 2 {
				c.sizes = append(c.sizes, int(size))
			}
			c.payload, c.have = size, 0
		}
	}
}

// frameSize reads the payload length of an unmasked frame; false when more of
// the header is needed.
func frameSize(h []byte) (uint64, bool) {
	switch {
	case len(h) < 2:
		return 0, false
	case h[1]&0x7f < 126:
		return uint64(h[1] & 0x7f), true
	case h[1]&0x7f == 126:
		if len(h) < 4 {
			return 0, false
		}
		return uint64(binary.BigEndian.Uint16(h[2:])), true
	}
	if len(h) < 10 {
		return 0, false
	}
	return binary.BigEndian.Uint64(h[2:]), true
}

// next is the size of the message that the reader has just begun; of a
// fragmented one the size of its first frame.
func (c *frameConn) next() int {
	if len(c.sizes) == 0 {
		return 0
	}
	n := c.sizes[0]
	c.sizes = c.sizes[:copy(c.sizes, c.sizes[1:])]
	return n
}
