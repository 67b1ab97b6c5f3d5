package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorder is a net.Conn that keeps what is written to it.
type recorder struct {
	net.Conn // nil: crash on any unexpected use
	writes   []string
}

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, string(p))
	return len(p), nil
}
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

func TestCorkHoldsSmallWrites(t *testing.T) {
	inner := &recorder{}
	c := &corkConn{Conn: inner}
	c.Write([]byte("handshake"))
	c.cork(time.Second, nil)
	c.Write([]byte("a"))
	c.Write([]byte("b"))
	if want := []string{"handshake"}; !slices.Equal(inner.writes, want) {
		t.Fatalf("before the flush %q, want %q", inner.writes, want)
	}
	c.Flush()
	c.Flush()
	c.Write([]byte("c"))
	large := strings.Repeat("x", largeWrite+1)
	c.Write([]byte(large))
	c.Write([]byte("d"))
	c.Flush()
	if want := []string{"handshake", "ab", "c", large, "d"}; !slices.Equal(inner.writes, want) {
		t.Errorf("written %.20q, want %.20q", inner.writes, want)
	}
}

// A reader of gorilla's writes control frames; it must not wait for a peer
// that takes nothing.
func TestCorkTakesSmallWritesDuringABlockedFlush(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := &corkConn{Conn: near}
	blocked := make(chan struct{})
	var once bool
	c.cork(10*time.Millisecond, func(time.Duration) error {
		if !once {
			once = true
			close(blocked)
		}
		return nil
	})
	done := make(chan error)
	go func() {
		c.Write([]byte("first "))
		err := c.Flush()
		if err == nil {
			err = c.Flush()
		}
		done <- err
	}()
	<-blocked
	c.Write([]byte("second")) // would hang
	got := make([]byte, len("first second"))
	if _, err := io.ReadFull(far, got); err != nil || string(got) != "first second" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCorkMeasuresIdleTimeFromTheLastByte(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := &corkConn{Conn: near}
	stall := errors.New("stalled")
	idles, verdicts := make(chan time.Duration), make(chan error)
	c.cork(10*time.Millisecond, func(idle time.Duration) error {
		idles <- idle
		return <-verdicts
	})
	done := make(chan error, 1)
	go func() {
		_, err := c.Write(bytes.Repeat([]byte("x"), largeWrite+1))
		done <- err
	}()
	const long = 300 * time.Millisecond
	idle := <-idles
	for ; idle < long; idle = <-idles {
		verdicts <- nil
	}
	verdicts <- nil
	if _, err := far.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	for after := range idles { // one question may have been on its way
		if after < long {
			break
		}
		if after > idle+time.Second {
			t.Fatalf("idle for %s though bytes were taken meanwhile", after)
		}
		verdicts <- nil
	}
	verdicts <- stall
	if err := <-done; err != stall {
		t.Errorf("write ended with %v, want the verdict", err)
	}
}
