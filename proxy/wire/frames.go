package wire

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"
)

// frameConn reads along with a WebSocket and learns how long each message is
// before it is read: gorilla does not tell, and a screenshot that grows its
// buffer by doubling costs twice its size. It also knows which messages are
// here to their end: what came together is routed together.
type frameConn struct {
	net.Conn
	last atomic.Int64 // when something came last, in nanoseconds since 1970

	// owned by the reader
	on      bool
	header  [14]byte // of the frame that begins, as far as it has been read
	have    int
	payload uint64 // bytes of the frame that are still to come
	final   bool   // with it a message ends
	sizes   []int  // of the messages that began and were not asked for yet
	whole   int    // messages that ended and were not taken yet
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
			c.end()
			continue
		}
		c.header[c.have] = b[0]
		c.have++
		b = b[1:]
		if size, ok := frameSize(c.header[:c.have]); ok {
			opcode := c.header[0] & 0xf
			if opcode == 1 || opcode == 2 {
				c.sizes = append(c.sizes, int(size))
			}
			c.payload, c.have = size, 0
			c.final = c.header[0]&0x80 != 0 && opcode < 8
			c.end()
		}
	}
}

// end counts a message whose last byte has come.
func (c *frameConn) end() {
	if c.payload == 0 && c.final {
		c.whole++
		c.final = false
	}
}

// taken says that the reader has read a message to its end.
func (c *frameConn) taken() {
	if c.whole > 0 {
		c.whole--
	}
}

// more reports whether the next message can be read without waiting for the peer.
func (c *frameConn) more() bool { return c.whole > 0 }

// frameSize reads the payload length of a frame; false when more of the header
// is needed.
func frameSize(h []byte) (uint64, bool) {
	if len(h) < 2 {
		return 0, false
	}
	need, size := 2, uint64(h[1]&0x7f)
	switch size {
	case 126:
		need = 4
	case 127:
		need = 10
	}
	mask := int(h[1] >> 7 * 4) // a client's frames are masked
	if len(h) < need+mask {
		return 0, false
	}
	switch need {
	case 4:
		size = uint64(binary.BigEndian.Uint16(h[2:]))
	case 10:
		size = binary.BigEndian.Uint64(h[2:])
	}
	return size, true
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
