package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"cdpmux/routing"
)

// TestHotPathAllocates holds a message's way from socket to socket to what
// gorilla itself allocates: one reader for each message, and one writer for
// each towards the browser. The Router between them has a test of its own.
func TestHotPathAllocates(t *testing.T) {
	// the client's side
	links, end := make(chan *Link), make(chan struct{})
	clients := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		links <- Accept(w, r, usual().Limits, usual().slow, nil)
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
	up, _, err := Dial(context.Background(), "ws"+strings.TrimPrefix(browsers.URL, "http"), usual().Limits)
	if err != nil {
		t.Fatal(err)
	}
	browser := <-accepted
	if browser == nil {
		t.FailNow()
	}
	defer browser.Close()

	var env routing.Envelope
	batch := make([]*routing.Message, 1)
	buffer := make([]byte, 1024)
	pass := func(from io.Writer, frame []byte, source, sink *Link, scan func(text []byte), to io.Reader, size int) func() {
		return func() {
			if _, err := from.Write(frame); err != nil {
				t.Fatal(err)
			}
			m, _, err := source.Read()
			if err != nil {
				t.Fatal(err)
			}
			scan(m.Text())
			batch[0] = m
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
		{"client to browser", 2, pass(client, frame, down, up, func(text []byte) {
			if refusal := routing.ScanCommand(text, &env); refusal != nil {
				t.Fatal(refusal)
			}
		}, browser, len(frame))},
		{"browser to client", 1, pass(browser, plain, up, down, func(text []byte) {
			if !routing.Scan(text, &env) {
				t.Fatal("event does not scan")
			}
		}, client, len(plain))},
	} {
		if n := testing.AllocsPerRun(1000, way.run); n > way.most {
			t.Errorf("%s: %v allocations for a message, want at most %v", way.name, n, way.most)
		}
	}
}
