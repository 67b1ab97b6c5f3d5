package proxytest

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
)

// conn is one WebSocket connection of the fake browser: what is on the wire.
type conn struct {
	b    *Browser
	gate *gate
	out  *outbox
	done sync.WaitGroup // the writer

	// guarded by Browser.mu
	root     *session
	sessions map[string]*session // flat ones, by id
}

var upgrader = websocket.Upgrader{
	ReadBufferSize: 64 << 10,
	CheckOrigin:    func(*http.Request) bool { return true }, // checked before
}

// serveWS takes over one connection.
func (b *Browser) serveWS(w http.ResponseWriter, r *http.Request) {
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // answered by Upgrade
	}
	c := &conn{b: b, gate: ws.NetConn().(*gate), out: newOutbox(b.opts.Unread), sessions: map[string]*session{}}
	// All frames leave through the outbox. What the library would write by
	// itself is its complaint about a bad frame: Chrome makes none.
	c.gate.muted = true
	ws.SetReadLimit(maxCommand - 1)
	ws.SetPingHandler(func(data string) error {
		c.out.frame(opPong, []byte(data))
		return nil
	})
	ws.SetCloseHandler(func(code int, _ string) error {
		c.out.frame(opClose, websocket.FormatCloseMessage(code, ""))
		return nil
	})
	if !b.connect(c) {
		c.gate.drop()
		return
	}
	// On goroutines of their own: the HTTP server would hide a panic.
	c.done.Add(1)
	go c.write()
	go c.run(ws)
}

// run reads until the connection ends, and lets the writer finish.
func (c *conn) run(ws *websocket.Conn) {
	defer c.b.work.Done()
	c.read(ws)
	c.b.disconnect(c)
	c.out.end()
	c.done.Wait()
	_ = c.gate.Close()
}

// maxCommand is the payload from which on Chrome drops the connection.
const maxCommand = 100 << 20

func (c *conn) read(ws *websocket.Conn) {
	var text bytes.Buffer
	for {
		kind, r, err := ws.NextReader()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway, websocket.CloseNoStatusReceived) {
			return // answered; the writer flushes
		}
		if err != nil || kind != websocket.TextMessage {
			c.gate.drop()
			return
		}
		text.Reset()
		if _, err := text.ReadFrom(r); err != nil {
			c.gate.drop()
			return
		}
		c.b.receive(c, text.Bytes())
		if text.Cap() > keepBelow {
			text = bytes.Buffer{}
		}
	}
}

func (c *conn) write() {
	defer c.done.Done()
	if c.out.writeTo(c.gate.Conn) != nil {
		c.gate.drop()
	}
}

// refuse answers an unusable text.
func (c *conn) refuse(r *refusal) {
	text := []byte("{")
	if r.hasID {
		text = append(strconv.AppendInt(append(text, `"id":`...), int64(r.id), 10), ',')
	}
	text = append(text, `"error":`...)
	text = append(appendError(text, r.code, r.text), '}')
	c.out.frame(opText, text)
}

func appendError(dst []byte, code int, text string) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), int64(code), 10)
	return append(appendQuoted(append(dst, `,"message":`...), text), '}')
}
