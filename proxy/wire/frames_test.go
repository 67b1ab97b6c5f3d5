package wire

import (
	"bytes"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/gorilla/websocket"
)

// readOnly is a net.Conn that only reads, from r.
type readOnly struct {
	net.Conn // nil: any other use fails loudly
	r        interface{ Read([]byte) (int, error) }
}

func (c readOnly) Read(p []byte) (int, error) { return c.r.Read(p) }

// Whatever pieces the bytes come in, each message's length is known in its turn.
func TestFrameSizes(t *testing.T) {
	var stream bytes.Buffer
	var want []int
	for _, size := range []int{0, 1, 125, 126, 65535, 65536, 300_000, 7} {
		stream.Write(frameOf(websocket.TextMessage, size))
		stream.Write(frameOf(websocket.PongMessage, size%126))
		want = append(want, size)
	}
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		c := &frameConn{Conn: readOnly{r: bytes.NewReader(stream.Bytes())}, on: true}
		for {
			if _, err := c.Read(make([]byte, 1+rng.IntN(1<<rng.IntN(17)))); err != nil {
				break
			}
		}
		for i, size := range want {
			if got := c.next(); got != size {
				t.Fatalf("seed %d: message %d has %d bytes, want %d", seed, i, got, size)
			}
		}
		if got := c.next(); got != 0 {
			t.Fatalf("seed %d: a message too many, of %d bytes", seed, got)
		}
	}
}

// What came together in one read, in whatever pieces, is known to be whole.
func TestWholeMessagesAreKnown(t *testing.T) {
	c := &frameConn{on: true}
	fragment := masked(websocket.TextMessage, "ab")
	fragment[0] &^= 0x80
	c.follow(masked(websocket.TextMessage, "ab"))
	c.follow(masked(websocket.PingMessage, "ab"))
	c.follow(fragment)
	if c.taken(); c.more() {
		t.Error("a message that has only begun is whole")
	}
	rest := append(masked(0, "cd"), masked(websocket.TextMessage, "")...)
	for _, b := range rest {
		c.follow([]byte{b})
	}
	if c.taken(); !c.more() {
		t.Error("the last one is not whole")
	}
	if c.taken(); c.more() {
		t.Error("there is one more")
	}
	for i, want := range []int{2, 2, 0} {
		if got := c.next(); got != want {
			t.Errorf("message %d begins with %d bytes, want %d", i, got, want)
		}
	}
}

// masked is one frame of a client, with a mask of zeros.
func masked(opcode byte, text string) []byte {
	return append([]byte{0x80 | opcode, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// frameOf is one unmasked frame of a server.
func frameOf(opcode byte, size int) []byte {
	head := []byte{0x80 | opcode}
	switch {
	case size < 126:
		head = append(head, byte(size))
	case size < 1<<16:
		head = append(head, 126, byte(size>>8), byte(size))
	default:
		head = append(head, 127, 0, 0, 0, 0, byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
	}
	return append(head, bytes.Repeat([]byte("x"), size)...)
}
