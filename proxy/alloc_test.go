package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"cdpmux/routing"
)

// TestHotPathAllocates holds a message's way from socket to socket to what
// gorilla itself allocates: one reader for each message, and one writer for
// each towards the browser. The Router between them has a test of its own.
func TestHotPathAllocates(t *testing.T) {
	// the client's side
	s := New(Config{Logger: zerolog.Nop()})
	links, end := make(chan *link), make(chan struct{})
	clients := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		links <- s.upgrade(w, r)
		<-end
	}))
	defer clients.Close()
	defer close(end)
	opened := make(chan net.Conn, 1)
	go func() {
		ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(clients.URL, "http"), nil)
		if err != nil {
			t.Error(err)
			close(opened)
			return
		}
		opened <- ws.NetConn()
	}()
	down := <-links
	client := <-opened
	if client == nil {
		t.FailNow()
	}
	defer client.Close()

	// the browser's side
	accepted := make(chan net.Conn, 1)
	browsers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			close(accepted)
			return
		}
		accepted <- ws.NetConn()
	}))
	defer browsers.Close()
	up, err := dial(context.Background(), "ws"+strings.TrimPrefix(browsers.URL, "http"), &s.limits)
	if err != nil {
		t.Fatal(err)
	}
	browser := <-accepted
	if browser == nil {
		t.FailNow()
	}
	defer browser.Close()

	var in incoming
	batch := make([]*routing.Message, 1)
	buffer := make([]byte, 1024)
	pass := func(from io.Writer, frame []byte, source, sink *link, scan func(), to io.Reader, size int) func() {
		return func() {
			if _, err := from.Write(frame); err != nil {
				t.Fatal(err)
			}
			_, r, err := source.ws.NextReader()
			if err != nil {
				t.Fatal(err)
			}
			if in.msg, err = readMessage(r, source.frames.next()); err != nil {
				t.Fatal(err)
			}
			source.frames.taken()
			scan()
			batch[0] = in.msg
			if err := sink.writeBatch(batch); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(to, buffer[:size]); err != nil {
				t.Fatal(err)
			}
		}
	}
	command := `{"id":77,"method":"Runtime.evaluate","params":{"expression":"1"},"sessionId":"S1"}`
	frame := masked(websocket.TextMessage, command)
	event := `{"method":"Page.loadEventFired","params":{"timestamp":1},"sessionId":"S1"}`
	plain := append([]byte{0x81, byte(len(event))}, event...)
	for _, way := range []struct {
		name string
		most float64
		run  func()
	}{
		{"client to browser", 2, pass(client, frame, down, up.link, func() {
			if in.refusal = routing.ScanCommand(in.msg.Text(), &in.env); in.refusal != nil {
				t.Fatal(in.refusal)
			}
		}, browser, len(frame))},
		{"browser to client", 1, pass(browser, plain, up.link, down, func() {
			if !routing.Scan(in.msg.Text(), &in.env) {
				t.Fatal("event does not scan")
			}
		}, client, len(plain))},
	} {
		if n := testing.AllocsPerRun(1000, way.run); n > way.most {
			t.Errorf("%s: %v allocations for a message, want at most %v", way.name, n, way.most)
		}
	}
}
