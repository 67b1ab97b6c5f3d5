package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/routing"
)

func message(size int) *routing.Message { return routing.NewMessage(strings.Repeat("x", size)) }

// pushMiB pushes messages of 1 MiB.
func pushMiB(l *Link, n int) {
	for range n {
		l.Push(message(1 << 20))
	}
}

// readMessages reads n messages of size bytes.
func readMessages(t *testing.T, ws *websocket.Conn, n, size int) {
	t.Helper()
	for i := range n {
		kind, text, err := ws.ReadMessage()
		if err != nil {
			t.Fatalf("message %d of %d: %v", i+1, n, err)
		}
		if kind != websocket.TextMessage || len(text) != size {
			t.Fatalf("message %d: kind %d, %d bytes, want a text of %d", i+1, kind, len(text), size)
		}
	}
}

func TestEachMessageIsOneFrame(t *testing.T) {
	l, ws := dialLink(t, usual())
	sizes := []int{1, 125, 126, 4000, 5000, largeWrite, 65535, 65536, 3 << 20, 2}
	for _, size := range sizes {
		l.Push(message(size))
	}
	conn := ws.NetConn()
	for _, size := range sizes {
		const finalText = 0x81
		if first, length := skipFrame(t, conn); first != finalText || length != size {
			t.Fatalf("frame %#x of %d bytes; want one final text of %d", first, length, size)
		}
	}
}

func TestSlowConsumerIsClosed(t *testing.T) {
	for name, change := range map[string]func(*bounds){
		"over soft, nothing taken": func(lim *bounds) { lim.slow.Soft = 16 << 20 },
		"over hard":                func(lim *bounds) { lim.slow.Hard = 32 << 20; lim.slow.Stall = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			lim := quick()
			change(&lim)
			l, _ := dialLink(t, lim)
			pushMiB(l, 60)
			select {
			case <-l.gone:
			case <-time.After(patience):
				t.Fatal("not closed")
			}
			if got := l.Reason(); got != SlowConsumer {
				t.Errorf("closed as %q", got.Info().Label)
			}
		})
	}
}

// The close frame reaches a slow consumer that wakes up in time.
func TestSlowConsumerIsTold(t *testing.T) {
	lim := quick()
	lim.slow.Soft, lim.CloseWait = 16<<20, patience
	l, ws := dialLink(t, lim)
	pushMiB(l, 60)
	await(t, "verdict", func() bool { _, end := l.out.state(); return end != nil })
	for {
		_, _, err := ws.ReadMessage()
		if err == nil {
			continue
		}
		if !websocket.IsCloseError(err, 4008) {
			t.Errorf("ended with %v, want 4008", err)
		}
		return
	}
}

func TestSlowButReadingIsKept(t *testing.T) {
	lim := quick()
	lim.slow.Soft, lim.slow.Stall = 1<<20, 2*time.Second
	l, ws := dialLink(t, lim)
	l.Push(message(40 << 20)) // progress is inside one frame
	conn := ws.NetConn()
	_, length := readHeader(t, conn)
	began := time.Now()
	piece := make([]byte, 1<<20)
	for length > 0 {
		n, err := conn.Read(piece[:min(len(piece), length)])
		if err != nil {
			t.Fatalf("cut with %d bytes left: %v", length, err)
		}
		length -= n
		if time.Since(began) < 3*time.Second { // longer than the stall
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func TestStalledBelowTheMarkIsKept(t *testing.T) {
	lim := quick()
	l, ws := dialLink(t, lim)
	pushMiB(l, 30)
	await(t, "stall", func() bool { waiting, _ := l.out.state(); return waiting < 30<<20 })
	time.Sleep(2 * lim.slow.Stall) // what must not happen
	readMessages(t, ws, 30, 1<<20)
}

func TestQueuedMessagesComeBeforeTheCloseFrame(t *testing.T) {
	l, ws := dialLink(t, quick())
	for range 20 {
		l.Push(message(100 << 10))
	}
	l.Finish(Ending{Reason: TakenOver})
	l.Push(message(1)) // too late
	readMessages(t, ws, 20, 100<<10)
	_, _, err := ws.ReadMessage()
	if closed, ok := err.(*websocket.CloseError); !ok || closed.Code != 4409 || closed.Text != "client id claimed by a newer connection" {
		t.Errorf("ended with %v", err)
	}
}

func TestEndingDoesNotWaitForAPeerThatTakesNothing(t *testing.T) {
	l, _ := dialLink(t, quick())
	pushMiB(l, 40)
	l.Finish(Ending{Reason: TakenOver})
	select {
	case <-l.gone:
	case <-time.After(patience):
		t.Fatal("writer still there")
	}
}

// A pong comes between two frames, however much is queued.
func TestPongOvertakesTheQueue(t *testing.T) {
	l, ws := dialLink(t, usual())
	pushMiB(l, 40)
	read := 0
	pongAfter := -1
	ws.SetPongHandler(func(payload string) error {
		if payload != "hello" {
			t.Errorf("pong %q", payload)
		}
		pongAfter = read
		return nil
	})
	if err := ws.WriteControl(websocket.PingMessage, []byte("hello"), time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	await(t, "ping", func() bool { return l.ping.Load() != nil })
	for ; read < 40; read++ {
		readMessages(t, ws, 1, 1<<20)
	}
	if pongAfter < 0 || pongAfter > 38 {
		t.Errorf("pong after %d of 40 messages", pongAfter)
	}
}
