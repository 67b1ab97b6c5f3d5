package wire

import (
	"io"
	"math/bits"
	"sync"

	"cdpmux/routing"
)

// Messages are read into buffers that are used again. Small ones come from
// pools by size, powers of two, so that a queue of small messages never holds
// on to large buffers; large ones from spares.
const (
	smallestBuffer = 512
	largestPooled  = 64 << 10
	poolClasses    = 8 // 512 … 65536
)

// pools[i] holds messages whose buffers have a capacity of at least 512<<i.
var pools [poolClasses]sync.Pool

// newMessage returns a message with a buffer of at least size bytes, at its
// full length.
func newMessage(size int) *routing.Message {
	class := bits.Len(uint(max(size, smallestBuffer)-1) / smallestBuffer)
	if class >= poolClasses {
		if m := large.take(size); m != nil {
			m.Buf, m.Start = m.Buf[:cap(m.Buf)], routing.Headroom
			return m
		}
		return &routing.Message{Buf: make([]byte, size), Start: routing.Headroom}
	}
	if m, ok := pools[class].Get().(*routing.Message); ok {
		m.Buf = m.Buf[:cap(m.Buf)]
		m.Start = routing.Headroom
		return m
	}
	return &routing.Message{Buf: make([]byte, smallestBuffer<<class), Start: routing.Headroom}
}

// Free gives a message back, to be used again. The caller is its only owner.
func Free(m *routing.Message) {
	switch size := cap(m.Buf); {
	case size < smallestBuffer:
	case size > largestPooled:
		large.put(m)
	default:
		pools[bits.Len(uint(size)/smallestBuffer)-1].Put(m)
	}
}

// readMessage reads r to its end into a message with headroom. size is what is
// known of its length; 0 is nothing.
func readMessage(r io.Reader, size int) (*routing.Message, error) {
	m := newMessage(routing.Headroom + size + 1) // the one finds the end
	end := routing.Headroom
	for {
		if end == len(m.Buf) {
			larger := newMessage(2 * len(m.Buf))
			copy(larger.Buf, m.Buf)
			Free(m)
			m = larger
		}
		n, err := r.Read(m.Buf[end:])
		end += n
		if err == io.EOF {
			m.Buf = m.Buf[:end]
			return m, nil
		}
		if err != nil {
			Free(m)
			return nil, err
		}
	}
}

// Memory is what a queued message costs, in bytes.
func Memory(m *routing.Message) int { return max(len(m.Buf), smallestBuffer) }
