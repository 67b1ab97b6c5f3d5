package proxytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// Client is one raw CDP connection: it sends exactly what it is told to, and
// keeps every received text in order. What it calls fatal ends the test (and
// panics in a client that [DialErr] made). All methods may be called from any
// goroutine.
type Client struct {
	// Timeout bounds every wait; set it before the first call.
	Timeout time.Duration

	tb      testing.TB // nil for DialErr
	ws      *websocket.Conn
	gate    *gate
	writeMu sync.Mutex

	// guarded by mu
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every message and at the end
	nextID   int
	messages []Msg
	taken    []bool           // messages[i] was returned by Await
	replies  map[string][]int // indexes of the replies, by id token
	pongs    map[string]bool
	ended    bool
	code     int
	text     string
}

// An Option changes the dialling of a client.
type Option func(*http.Header, *Client)

// WithHeader sets a header of the handshake; Host and Origin work as well.
func WithHeader(key, value string) Option {
	return func(h *http.Header, _ *Client) { h.Set(key, value) }
}

// WithTimeout sets [Client.Timeout], which is 10 s otherwise.
func WithTimeout(d time.Duration) Option {
	return func(_ *http.Header, c *Client) { c.Timeout = d }
}

// Dial connects to a WebSocket address; the connection is dropped at the end
// of the test. Any error is fatal.
func Dial(tb testing.TB, url string, opts ...Option) *Client {
	tb.Helper()
	header := http.Header{}
	c := newClient()
	c.tb = tb
	for _, opt := range opts {
		opt(&header, c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	if _, err := c.dial(ctx, url, header); err != nil {
		tb.Fatalf("dial %s: %v", url, err)
	}
	tb.Cleanup(c.Drop)
	return c
}

// DialErr connects; the caller ends the client with Close or Drop. When the
// handshake was refused, the response is the refusal (its body can be read).
func DialErr(ctx context.Context, url string, header http.Header) (*Client, *http.Response, error) {
	c := newClient()
	resp, err := c.dial(ctx, url, header)
	if err != nil {
		return nil, resp, err
	}
	return c, resp, nil
}

func newClient() *Client {
	return &Client{
		Timeout: 10 * time.Second,
		changed: make(chan struct{}),
		replies: map[string][]int{},
		pongs:   map[string]bool{},
	}
}

func (c *Client) dial(ctx context.Context, url string, header http.Header) (*http.Response, error) {
	dialer := websocket.Dialer{
		ReadBufferSize:  64 << 10,
		WriteBufferSize: 64 << 10,
		NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			c.gate = newGate(conn)
			return c.gate, nil
		},
	}
	ws, resp, err := dialer.DialContext(ctx, url, header)
	if err != nil {
		return resp, err
	}
	c.ws = ws
	ws.SetPongHandler(func(data string) error {
		c.update(func() { c.pongs[data] = true })
		return nil
	})
	go c.readLoop()
	return resp, nil
}

func (c *Client) readLoop() {
	for {
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			_ = c.ws.Close()
			c.end(err)
			return
		}
		m, err := ParseMsg(raw)
		if err != nil {
			_ = c.ws.Close()
			c.end(err)
			return
		}
		c.update(func() {
			if m.ID != "" {
				c.replies[m.ID] = append(c.replies[m.ID], len(c.messages))
			}
			c.messages = append(c.messages, m)
			c.taken = append(c.taken, false)
		})
	}
}

func (c *Client) end(err error) {
	code, text := websocket.CloseAbnormalClosure, err.Error()
	if closed := (*websocket.CloseError)(nil); errors.As(err, &closed) {
		code, text = closed.Code, closed.Text
	}
	c.update(func() { c.ended, c.code, c.text = true, code, text })
}

// update changes what mu guards and wakes everybody who waits.
func (c *Client) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// until waits for ready, which is called with mu held, and returns false when
// the time is over or the connection has ended without it.
func (c *Client) until(ready func() bool) bool {
	deadline := time.NewTimer(c.Timeout)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		ok, ended, changed := ready(), c.ended, c.changed
		c.mu.Unlock()
		if ok || ended {
			return ok
		}
		select {
		case <-changed:
		case <-deadline.C:
			return false
		}
	}
}

func (c *Client) fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n" + c.describe()
	if c.tb == nil {
		panic(text)
	}
	c.tb.Helper()
	c.tb.Fatal(text)
}

// describe is the state of the connection and its last messages.
func (c *Client) describe() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	if c.ended {
		fmt.Fprintf(&b, "connection ended: %d %s\n", c.code, c.text)
	}
	fmt.Fprintf(&b, "received %d messages", len(c.messages))
	for _, m := range c.messages[max(0, len(c.messages)-12):] {
		fmt.Fprintf(&b, "\n  %s", m)
	}
	return b.String()
}

// Send sends exactly this text.
func (c *Client) Send(raw string) { c.write(websocket.TextMessage, []byte(raw)) }

// SendBinary sends one binary message.
func (c *Client) SendBinary(raw []byte) { c.write(websocket.BinaryMessage, raw) }

// SendBytes writes to the TCP connection, below the WebSocket: frames of the
// test's own making.
func (c *Client) SendBytes(raw []byte) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_, _ = c.gate.Write(raw)
}

// write ignores errors: the end of the connection is seen by the reader, and
// whoever waits for a reply is told of it there.
func (c *Client) write(kind int, raw []byte) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	_ = c.ws.WriteMessage(kind, raw)
}

// Go sends a command with the next free id (1, 2, …) and does not wait.
// params may be nil, a json.RawMessage, or anything that json.Marshal takes.
func (c *Client) Go(session, method string, params any) *Pending {
	c.mu.Lock()
	c.nextID++
	id := c.nextID
	p := &Pending{ID: strconv.Itoa(id), Method: method, c: c}
	p.before = len(c.replies[p.ID])
	c.mu.Unlock()
	command := struct {
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
		Session string `json:"sessionId,omitempty"`
	}{id, method, params, session}
	raw, err := json.Marshal(command)
	if err != nil {
		c.fatalf("params of %s: %v", method, err)
	}
	c.write(websocket.TextMessage, raw)
	return p
}

// CallErr sends a command and waits for its reply. No reply is fatal.
func (c *Client) CallErr(session, method string, params any) (json.RawMessage, *Error) {
	c.helper()
	return c.Go(session, method, params).Wait()
}

// Call sends a command and returns its result. A CDP error is fatal.
func (c *Client) Call(session, method string, params any) json.RawMessage {
	c.helper()
	result, err := c.CallErr(session, method, params)
	if err != nil {
		c.fatalf("%s: %v", method, err)
	}
	return result
}

func (c *Client) helper() {
	if c.tb != nil {
		c.tb.Helper()
	}
}

// Transcript is every message received until now, in order.
func (c *Client) Transcript() []Msg {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages[:len(c.messages):len(c.messages)]
}

// Replies are the replies received until now that carry this id token.
func (c *Client) Replies(id string) []Msg {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Msg
	for _, i := range c.replies[id] {
		out = append(out, c.messages[i])
	}
	return out
}

// Await returns the oldest message, already here or still to come, that match
// accepts and that no Await returned before. None in time is fatal.
func (c *Client) Await(match func(Msg) bool) Msg {
	c.helper()
	m, ok := c.take(match)
	if !ok {
		c.fatalf("awaited message did not come")
	}
	return m
}

// AwaitEvent is Await for the named event of a session.
func (c *Client) AwaitEvent(session, method string) Msg {
	c.helper()
	m, ok := c.take(func(m Msg) bool { return m.Is(session, method) })
	if !ok {
		c.fatalf("awaited event %s of session %q did not come", method, session)
	}
	return m
}

func (c *Client) take(match func(Msg) bool) (found Msg, ok bool) {
	seen := 0
	ok = c.until(func() bool {
		for ; seen < len(c.messages); seen++ {
			if !c.taken[seen] && match(c.messages[seen]) {
				c.taken[seen] = true
				found = c.messages[seen]
				return true
			}
		}
		return false
	})
	return found, ok
}

// Ping sends a ping and waits for its pong.
func (c *Client) Ping(data string) {
	c.helper()
	_ = c.ws.WriteControl(websocket.PingMessage, []byte(data), time.Now().Add(c.Timeout))
	if !c.until(func() bool { return c.pongs[data] }) {
		c.fatalf("pong %q did not come", data)
	}
}

// CloseStatus waits for the end of the connection and returns the peer's close
// code and text; 1006 and the error when there was no close frame.
func (c *Client) CloseStatus() (code int, text string) {
	c.helper()
	if !c.until(func() bool { return c.ended }) {
		c.fatalf("connection did not end")
	}
	return c.code, c.text
}

// Ended reports whether the connection has ended.
func (c *Client) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// StopReading makes this a client that takes no byte from its socket.
func (c *Client) StopReading() { c.gate.stop() }

// ResumeReading undoes StopReading.
func (c *Client) ResumeReading() { c.gate.resume() }

// Close says goodbye with 1000 and waits for the peer to end the connection.
func (c *Client) Close() {
	c.helper()
	c.gate.resume()
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.ws.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(c.Timeout))
	c.CloseStatus()
}

// Drop resets the TCP connection, without a close frame.
func (c *Client) Drop() {
	c.gate.drop()
	c.until(func() bool { return c.ended })
}

// Pending is a command whose reply is still to come.
type Pending struct {
	ID     string // as sent
	Method string
	c      *Client
	before int // replies to that id before it was sent, by [Client.Send]
}

// Wait returns the first reply. None in time is fatal.
func (p *Pending) Wait() (json.RawMessage, *Error) {
	p.c.helper()
	m := p.Reply()
	return m.Result, m.Err()
}

// Reply waits for the first reply and returns it as received.
func (p *Pending) Reply() Msg {
	p.c.helper()
	if !p.c.until(p.answered) {
		p.c.fatalf("no reply to %s with id %s", p.Method, p.ID)
	}
	return p.c.Replies(p.ID)[p.before]
}

// Answered reports whether a reply is here.
func (p *Pending) Answered() bool {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	return p.answered()
}

func (p *Pending) answered() bool { return len(p.c.replies[p.ID]) > p.before }
