package proxytest

import (
	"encoding/binary"
	"net"
	"sync"
)

// outbox holds the frames that wait to be written to one socket. Small ones
// are gathered, so that one write takes all that came while the last one ran;
// large pieces are referred to and never copied.
type outbox struct {
	limit int // bytes; a message that would not fit is lost, as in Chrome

	mu     sync.Mutex
	filled sync.Cond
	full   net.Buffers // in order; all before tail
	tail   []byte
	spare  []byte
	size   int // bytes accepted and not yet written
	ending bool
}

const (
	opText  = 1
	opClose = 8
	opPong  = 10

	copyBelow = 16 << 10 // pieces of this size and more are referred to
	keepBelow = 1 << 20  // a gathering buffer of this size and more is not used again
)

func newOutbox(limit int) *outbox {
	o := &outbox{limit: limit}
	o.filled.L = &o.mu
	return o
}

// frame adds one frame with the joined parts as payload. Large parts must not
// be changed afterwards.
func (o *outbox) frame(op byte, parts ...[]byte) {
	n := 0
	for _, part := range parts {
		n += len(part)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ending || o.size+n > o.limit {
		return
	}
	o.size += n
	o.tail = append(o.tail, 0x80|op)
	switch {
	case n < 126:
		o.tail = append(o.tail, byte(n))
	case n < 1<<16:
		o.tail = binary.BigEndian.AppendUint16(append(o.tail, 126), uint16(n))
	default:
		o.tail = binary.BigEndian.AppendUint64(append(o.tail, 127), uint64(n))
	}
	for _, part := range parts {
		if len(part) < copyBelow {
			o.tail = append(o.tail, part...)
			continue
		}
		o.full = append(o.full, o.tail, part)
		o.tail = nil
	}
	o.filled.Signal()
}

// end lets the writer go once everything is written.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = true
	o.filled.Signal()
}

// writeTo writes what comes until end or an error.
func (o *outbox) writeTo(conn net.Conn) error {
	for {
		o.mu.Lock()
		for len(o.tail) == 0 && len(o.full) == 0 {
			if o.ending {
				o.mu.Unlock()
				return nil
			}
			o.filled.Wait()
		}
		full, tail, size := o.full, o.tail, o.size
		o.full, o.tail, o.spare = nil, o.spare[:0], nil
		o.mu.Unlock()

		var err error
		if len(full) == 0 {
			_, err = conn.Write(tail)
		} else {
			all := append(full, tail)
			_, err = all.WriteTo(conn)
		}

		o.mu.Lock()
		o.size -= size
		if cap(tail) < keepBelow {
			o.spare = tail
		}
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
