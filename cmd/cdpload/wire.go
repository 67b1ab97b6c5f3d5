package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// wire is the load generator's end of one WebSocket. gorilla shakes hands; the
// frames are made and read here, because a generator must cost less than what
// it measures: many commands leave in one write, and of a large message only
// its two ends are kept.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	skip int    // bytes of the last message that are still in the reader
	out  []byte // frames that flush sends
}

// message is one text; head and tail are valid until the next call of next.
type message struct {
	head []byte // its beginning, at least ends bytes or all of it
	tail []byte // its end, likewise
	size int    // bytes
}

const (
	readBuffer = 64 << 10
	ends       = 1 << 10
)

const (
	opContinuation = 0
	opText         = 1
	opClose        = 8
	opPing         = 9
	opPong         = 10
)

func dial(ctx context.Context, url string) (*wire, error) {
	ws, resp, err := websocket.DefaultDialer.DialContext(ctx, url, nil)
	if err != nil {
		if resp != nil {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
			err = fmt.Errorf("HTTP %s: %s", resp.Status, body)
		}
		return nil, fmt.Errorf("dial %s: %w", url, err)
	}
	conn := ws.NetConn()
	// gorilla's buffer is empty: a browser says nothing before it is asked.
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, readBuffer)}, nil
}

// put adds one frame to what flush sends. Its mask is zero, which is legal and
// leaves the text as it is.
func (w *wire) put(op byte, text []byte) {
	w.out = append(w.out, 0x80|op)
	switch n := len(text); {
	case n < 126:
		w.out = append(w.out, 0x80|byte(n))
	case n < 1<<16:
		w.out = binary.BigEndian.AppendUint16(append(w.out, 0x80|126), uint16(n))
	default:
		w.out = binary.BigEndian.AppendUint64(append(w.out, 0x80|127), uint64(n))
	}
	w.out = append(append(w.out, 0, 0, 0, 0), text...)
}

func (w *wire) flush() error {
	if len(w.out) == 0 {
		return nil
	}
	_, err := w.conn.Write(w.out)
	w.out = w.out[:0]
	return err
}

// idle reports whether next would have to wait for the peer.
func (w *wire) idle() bool { return w.in.Buffered() <= w.skip }

// next reads one text message, answering pings on the way.
func (w *wire) next() (m message, err error) {
	for {
		op, final, size, err := w.header()
		if err != nil {
			return m, err
		}
		if op >= opClose {
			payload, err := w.take(size)
			if err != nil {
				return m, err
			}
			if op == opClose {
				return m, closed(payload)
			}
			if op == opPing {
				w.put(opPong, payload)
				if err := w.flush(); err != nil {
					return m, err
				}
			}
			continue
		}
		if op != opText && op != opContinuation {
			return m, fmt.Errorf("frame of type %d", op)
		}
		head, tail, err := w.body(size)
		if err != nil {
			return m, err
		}
		if final && m.size == 0 {
			return message{head, tail, size}, nil
		}
		if m.size == 0 { // fragments: the reader's buffer will move
			head = append([]byte(nil), head...)
			m.head = head
		}
		m.tail, m.size = tail, m.size+size
		if final {
			return m, nil
		}
	}
}

func (w *wire) header() (op byte, final bool, size int, err error) {
	if err := w.drop(); err != nil {
		return 0, false, 0, err
	}
	h, err := w.in.Peek(2)
	if err != nil {
		return 0, false, 0, err
	}
	op, final, size = h[0]&0xf, h[0]&0x80 != 0, int(h[1]&0x7f)
	n := 2
	switch size {
	case 126:
		n = 4
	case 127:
		n = 10
	}
	if h, err = w.in.Peek(n); err != nil {
		return 0, false, 0, err
	}
	switch n {
	case 4:
		size = int(binary.BigEndian.Uint16(h[2:]))
	case 10:
		size = int(binary.BigEndian.Uint64(h[2:]))
	}
	_, err = w.in.Discard(n)
	return op, final, size, err
}

// body reads size bytes and keeps their ends.
func (w *wire) body(size int) (head, tail []byte, err error) {
	if size <= readBuffer {
		all, err := w.take(size)
		return all, all, err
	}
	first, err := w.in.Peek(ends)
	if err != nil {
		return nil, nil, err
	}
	head = append([]byte(nil), first...)
	if _, err := w.in.Discard(size - ends); err != nil {
		return nil, nil, err
	}
	tail, err = w.take(ends)
	return head, tail, err
}

// take returns the next n bytes, which stay in the reader until drop.
func (w *wire) take(n int) ([]byte, error) {
	if err := w.drop(); err != nil {
		return nil, err
	}
	b, err := w.in.Peek(n)
	w.skip = len(b)
	return b, err
}

func (w *wire) drop() error {
	_, err := w.in.Discard(w.skip)
	w.skip = 0
	return err
}

// closed is the peer's close frame as an error.
func closed(payload []byte) error {
	if len(payload) < 2 {
		return errors.New("closed by the peer")
	}
	return fmt.Errorf("closed by the peer: %d %s", binary.BigEndian.Uint16(payload), payload[2:])
}

// close says goodbye and hangs up.
func (w *wire) close() {
	w.put(opClose, binary.BigEndian.AppendUint16(nil, websocket.CloseNormalClosure))
	_ = w.conn.SetDeadline(time.Now().Add(time.Second))
	if w.flush() == nil {
		_, _ = io.Copy(io.Discard, w.conn) // until the peer has closed: a reset could overtake what we sent
	}
	w.conn.Close()
}
