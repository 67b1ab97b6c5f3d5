package proxytest

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Browser is a fake browser: HTTP discovery, one WebSocket endpoint, targets
// and sessions as Chrome has them, and faults on demand. It has no pages in
// it, only what the protocol says of them: navigations end at once, and a page
// evaluates what the file evaluate.go lists. It is cheap enough to be the far
// end of a benchmark.
//
// Unlike Chrome it has no page sockets, no /json/new, close or activate, no
// prerender and no shared or service workers; a paused page holds its
// navigations back but not window.open of its opener; and a command of 100 MiB
// is too large in fragments, too.
type Browser struct {
	// static after New
	opts Options
	tb   testing.TB // nil without Start
	addr string

	work sync.WaitGroup // goroutines of servers and connections

	mu             sync.Mutex
	news           *sync.Cond // at every command, and when a connection comes or goes
	server         *http.Server
	uuid           string
	closed         bool // by Browser.close, crash or Close
	hanging        bool
	refusals       int
	gates          map[*gate]struct{}
	conns          []*conn
	discoverers    []*session
	targets        map[string]*target
	defaultContext *browserContext
	contexts       []*browserContext
	windows        []*window
	nextWindow     int
	faults         map[string]Fault
	received       []Command
	timers         map[*time.Timer]struct{}
	filler         []byte
}

// Options are what a browser is made with.
type Options struct {
	Addr       string // to listen on; "127.0.0.1:0" when empty
	Record     bool   // keep every command for [Browser.Received]
	Screenshot int    // bytes of a screenshot's base64 text; 0: a PNG of one pixel
	Unread     int    // bytes that may wait unread before replies are lost; 0: 256 MiB, as Chrome
}

// Start starts a recording browser that is closed when the test ends.
func Start(tb testing.TB) *Browser {
	tb.Helper()
	b, err := New(Options{Record: true})
	if err != nil {
		tb.Fatal(err)
	}
	b.tb = tb
	tb.Cleanup(b.Close)
	return b
}

// New starts a browser.
func New(opts Options) (*Browser, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Unread == 0 {
		opts.Unread = 256 << 20
	}
	b := &Browser{
		opts:   opts,
		gates:  map[*gate]struct{}{},
		faults: map[string]Fault{},
		timers: map[*time.Timer]struct{}{},
	}
	b.news = sync.NewCond(&b.mu)
	b.fresh()
	listener, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, err
	}
	b.addr = listener.Addr().String()
	b.serve(listener)
	return b, nil
}

// fresh makes the state of a browser that was just started: one window with a
// page, and the popups of its address bar.
func (b *Browser) fresh() {
	b.uuid = newUUID()
	b.closed = false
	b.targets = map[string]*target{}
	b.defaultContext = &browserContext{id: newID()}
	b.contexts, b.windows, b.discoverers = nil, nil, nil
	b.load(b.openTab(newTab{context: b.defaultContext}), "chrome://new-tab-page-third-party/")
	for _, popup := range b.windows[0].popups {
		if popup.kind == "tab" {
			delete(b.targets, popup.id) // Chrome does not list those of the first window
		}
	}
}

func (b *Browser) serve(listener net.Listener) {
	server := &http.Server{Handler: http.HandlerFunc(b.serveHTTP), ReadHeaderTimeout: time.Minute}
	b.mu.Lock()
	b.server = server
	b.mu.Unlock()
	b.work.Go(func() { _ = server.Serve(&gateListener{listener, b}) })
}

// gateListener puts a gate around every accepted connection.
type gateListener struct {
	net.Listener
	b *Browser
}

func (l *gateListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := newGate(conn)
	b := l.b
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.gates, func(old *gate, _ struct{}) bool { return old.isClosed() })
	b.gates[g] = struct{}{}
	if b.hanging {
		g.stop()
	}
	return g, nil
}

// URL is the WebSocket address of the browser.
func (b *Browser) URL() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return "ws://" + b.addr + "/devtools/browser/" + b.uuid
}

// HTTP is the address of the discovery endpoints, without a path.
func (b *Browser) HTTP() string { return "http://" + b.addr }

// Closed reports whether the browser was ended, by whomever.
func (b *Browser) Closed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// Conns is how many WebSocket connections there are.
func (b *Browser) Conns() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// Received is every command received until now, when Options.Record is set.
func (b *Browser) Received() []Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

// AwaitCommand waits for a command, received already or still to come. None
// within 10 s is fatal.
func (b *Browser) AwaitCommand(match func(Command) bool) Command {
	b.tb.Helper()
	seen := 0
	var found Command
	if !b.await(func() bool {
		for ; seen < len(b.received); seen++ {
			if found = b.received[seen]; match(found) {
				return true
			}
		}
		return false
	}) {
		b.tb.Fatalf("awaited command did not come; received %d", seen)
	}
	return found
}

// AwaitConns waits until there are exactly n WebSocket connections. Another
// number after 10 s is fatal.
func (b *Browser) AwaitConns(n int) {
	b.tb.Helper()
	if !b.await(func() bool { return len(b.conns) == n }) {
		b.tb.Fatalf("%d connections, want %d", b.Conns(), n)
	}
}

// await waits for ready, which is called with mu held and not after true.
func (b *Browser) await(ready func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	late := false
	b.after(10*time.Second, func() {
		late = true
		b.news.Broadcast()
	})
	for !ready() {
		if late {
			return false
		}
		b.news.Wait()
	}
	return true
}

// Restart ends the browser and starts a new one on the same port: another
// uuid, no connections, the first page alone. Faults stay.
func (b *Browser) Restart() error {
	b.Close()
	listener, err := net.Listen("tcp", b.addr)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.fresh()
	b.mu.Unlock()
	b.serve(listener)
	return nil
}

// Close ends the browser: connections are reset, the port is free, nothing of
// it runs any more.
func (b *Browser) Close() {
	b.mu.Lock()
	b.die()
	for g := range b.gates {
		g.drop()
	}
	for timer := range b.timers {
		timer.Stop()
	}
	clear(b.timers)
	b.mu.Unlock()
	b.work.Wait()
}

// die ends the browser from inside: what was written is still sent, then the
// sockets are closed, and nobody listens any more.
func (b *Browser) die() {
	if b.closed {
		return
	}
	b.closed = true
	for _, c := range b.conns {
		c.out.end()
		c.gate.stop()
		b.work.Go(func() {
			c.done.Wait()
			_ = c.gate.Close()
		})
	}
	_ = b.server.Close()
}

// connect makes a connection part of the browser, unless it was just ended.
func (b *Browser) connect(c *conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.work.Add(1) // until run returns
	t := &target{id: newUUID(), kind: "browser"}
	b.announce(t)
	c.root = &session{conn: c, target: t, flat: true}
	t.sessions = []*session{c.root}
	b.changed(t)
	b.conns = append(b.conns, c)
	b.news.Broadcast()
	return true
}

func (b *Browser) disconnect(c *conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(c.root)
	b.conns = remove(b.conns, c)
	b.news.Broadcast()
}

// receive is one text of a connection.
func (b *Browser) receive(c *conn, text []byte) {
	cmd, refused := parseCommand(text)
	if refused != nil {
		c.refuse(refused)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opts.Record {
		kept := cmd
		kept.Params = bytes.Clone(cmd.Params)
		b.received = append(b.received, kept)
		b.news.Broadcast()
	}
	s := c.root
	if cmd.Session != "" {
		if s = c.sessions[cmd.Session]; s == nil {
			c.refuse(&refusal{code: -32001, text: "Session with given id not found.", hasID: true, id: cmd.ID})
			return
		}
	}
	if f, ok := b.faults[cmd.Method]; ok {
		b.faulty(s, cmd, f)
		return
	}
	b.perform(s, cmd)
}

// after runs do with mu held, d later, unless the browser is closed before.
func (b *Browser) after(d time.Duration, do func()) {
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ok := b.timers[timer]; ok {
			delete(b.timers, timer)
			do()
		}
	})
	b.timers[timer] = struct{}{}
}

// filling is n bytes to fill a large reply with.
func (b *Browser) filling(n int) []byte {
	if n > len(b.filler) {
		b.filler = bytes.Repeat([]byte{'x'}, n)
	}
	return b.filler[:n]
}

// browserSessions is the connections and all sub-roots, outer ones first.
func (b *Browser) browserSessions() (list []*session) {
	var walk func(*session)
	walk = func(s *session) {
		if s.target.kind != "browser" {
			return
		}
		list = append(list, s)
		for _, child := range s.children {
			walk(child)
		}
	}
	for _, c := range b.conns {
		walk(c.root)
	}
	return list
}

func (b *Browser) contextByID(id string) *browserContext {
	if id == b.defaultContext.id {
		return b.defaultContext
	}
	for _, ctx := range b.contexts {
		if ctx.id == id {
			return ctx
		}
	}
	return nil
}

// newID is a target's, session's, context's or loader's id.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	return strings.ToUpper(hex.EncodeToString(id[:]))
}

// newUUID is a browser target's id.
func newUUID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
