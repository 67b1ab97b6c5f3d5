package wire

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"cdpmux/routing"
)

// go-rod compares with this very value, and panics on control frames.
func TestRodClient(t *testing.T) {
	addr, links := serveLink(t, usual())
	conn, r, resp := handshake(t, addr, "/", "nil")
	if got := resp.Header.Get("Sec-Websocket-Accept"); resp.StatusCode != http.StatusSwitchingProtocols || got != "Q67D9eATKx531lK8F7u2rqQNnNI=" {
		t.Errorf("%s, accept value %q", resp.Status, got)
	}
	l := <-links
	conn.Write(append([]byte{0x89, 0x85, 0, 0, 0, 0}, "hello"...)) // a ping
	l.Push(routing.NewMessage("answer"))
	text := make([]byte, 8)
	if _, err := io.ReadFull(r, text); err != nil || !bytes.Equal(text, append([]byte{0x81, 6}, "answer"...)) {
		t.Fatalf("read %q, %v; want one text frame", text, err)
	}
	l.Finish(Ending{Reason: TakenOver})
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("at the end came %q, %v; want nothing", rest, err)
	}
}

func TestOtherInvalidKeysAreRefused(t *testing.T) {
	addr, _ := serveLink(t, usual())
	_, _, resp := handshake(t, addr, "/", "null")
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%s, want 400", resp.Status)
	}
}
