package wire

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"cdpmux/routing"
)

func TestReadMessageKeepsTextAndHeadroom(t *testing.T) {
	for _, size := range []int{0, 1, smallestBuffer - routing.Headroom, smallestBuffer, 5000, largestPooled - routing.Headroom, largestPooled, 1 << 20} {
		text := bytes.Repeat([]byte("x"), size)
		for name, r := range map[string]io.Reader{
			"whole":    bytes.NewReader(text),
			"data+EOF": iotest.DataErrReader(bytes.NewReader(text)),
			"halves":   iotest.HalfReader(bytes.NewReader(text)),
		} {
			m, err := readMessage(r, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(m.Text(), text) || m.Start != routing.Headroom {
				t.Errorf("%d bytes, %s: read %d bytes from %d", size, name, len(m.Text()), m.Start)
			}
			if size > smallestBuffer && cap(m.Buf) > 5*(size+routing.Headroom)/2 { // grown to twice that, by a spare
				t.Errorf("%d bytes lie in a buffer of %d", size, cap(m.Buf))
			}
			Free(m)
		}
	}
}

func TestReadMessageFails(t *testing.T) {
	_, err := readMessage(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader([]byte("abc")))), 0)
	if err != iotest.ErrTimeout {
		t.Errorf("error %v, want the reader's", err)
	}
}

// A buffer from the pool must be as large as the class that it comes from
// says, whatever made it.
func TestPooledBuffersAreLargeEnough(t *testing.T) {
	for size := 1; size <= 2*largestPooled; size = size*3/2 + 1 {
		Free(&routing.Message{Buf: make([]byte, 0, size)})
	}
	for size := 1; size <= 2*largestPooled; size += 511 {
		m := newMessage(size)
		if len(m.Buf) < size {
			t.Fatalf("newMessage(%d) has %d bytes", size, len(m.Buf))
		}
		if m.Start != routing.Headroom {
			t.Fatalf("newMessage(%d) starts at %d", size, m.Start)
		}
	}
}

// A large buffer is used again, by what nearly fills it, and is not kept from
// the garbage collector.
func TestLargeBuffersAreUsedAgain(t *testing.T) {
	var s spares
	first := &routing.Message{Buf: make([]byte, 1<<20)}
	s.put(first)
	if m := s.take(1<<20 + 1); m != nil {
		t.Errorf("a spare of %d bytes for more than that", cap(m.Buf))
	}
	if m := s.take(3 << 18); m != nil {
		t.Errorf("a spare of %d bytes for three quarters of it", cap(m.Buf))
	}
	if m := s.take(7 << 17); m != first {
		t.Error("the spare was not used again")
	}
	if m := s.take(1 << 20); m != nil {
		t.Error("a spare was given out twice")
	}
	s.put(first)
	runtime.KeepAlive(first)
	runtime.GC()
	if m := s.take(1 << 20); m != nil {
		t.Error("a spare outlived a collection")
	}
}
