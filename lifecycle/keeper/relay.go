package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
)

// The proxy reaches Chrome's pipe as it reaches Chrome's port: by a WebSocket,
// on a Unix socket that only our user can open. One proxy is connected at a
// time. For Chrome they are all one client, whose sessions and discovery
// outlive each of them, so what one has left is taken back before the next.

// upstreamURL is the address of a pipe that is relayed on a socket.
func upstreamURL(socket string) string { return (&url.URL{Scheme: unixScheme, Path: socket}).String() }

const unixScheme = "ws+unix"

var upgrader = websocket.Upgrader{ReadBufferSize: pipeSize, WriteBufferSize: pipeSize}

// ServeHTTP serves a proxy; without an upgrade it says whether Chrome answers.
func (p *pipe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		if err := p.ask(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
		return
	}
	late := time.NewTimer(p.patience)
	defer late.Stop()
	select {
	case p.turn <- struct{}{}:
	case <-late.C:
		http.Error(w, "another proxy is connected to this browser", http.StatusServiceUnavailable)
		return
	case <-r.Context().Done():
		return
	case <-p.gone:
		http.Error(w, errGone.Error(), http.StatusBadGateway)
		return
	}
	defer func() { <-p.turn }()
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // it was told
	}
	if p.take(conn) {
		p.relay(conn)
	}
	p.cut()
	p.reset()
}

// take makes conn the proxy, unless Chrome is ending.
func (p *pipe) take(conn io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proxy = conn
	return !p.quits
}

// relay passes the proxy's messages on, until it is gone. It hears nothing
// before its first one, as from a port.
func (p *pipe) relay(conn *websocket.Conn) {
	begin := func() io.WriteCloser {
		w, err := conn.NextWriter(websocket.TextMessage)
		if err != nil {
			return nowhere{}
		}
		return w
	}
	for {
		_, r, err := conn.NextReader()
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.proxy == conn {
			p.hears = begin
		}
		p.mu.Unlock()
		if err := p.pass(r); err != nil {
			return
		}
	}
}

// pass passes one message on. Of one that breaks off or is too long Chrome
// gets the beginning, which is no JSON.
func (p *pipe) pass(r io.Reader) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := io.Copy(p.to, io.LimitReader(r, p.most))
	if e := p.end(); err == nil {
		err = e
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return err
}

// listener begins a message to the proxy, if there is one that listens.
func (p *pipe) listener() io.WriteCloser {
	p.mu.Lock()
	begin := p.hears
	p.mu.Unlock()
	if begin == nil {
		return nowhere{}
	}
	return begin()
}

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) Close() error                { return nil }

// cut ends the proxy's connection.
func (p *pipe) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proxy != nil {
		_ = p.proxy.Close()
	}
	p.proxy, p.hears = nil, nil
}

var (
	attached = []byte(`{"method":"Target.attachedToTarget",`)
	detached = []byte(`{"method":"Target.detachedFromTarget",`)
)

// note keeps the sessions at the root, which is the parent of those whose
// events have no sessionId.
func (p *pipe) note(text []byte) {
	comes := bytes.HasPrefix(text, attached)
	if !comes && !bytes.HasPrefix(text, detached) {
		return
	}
	var m struct {
		SessionID string
		Params    struct{ SessionID string }
	}
	if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) != nil || m.SessionID != "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if comes {
		p.roots[m.Params.SessionID] = struct{}{}
	} else {
		delete(p.roots, m.Params.SessionID)
	}
}

// reset takes back what a proxy has left in Chrome: with the sessions at the
// root go those below them and their contexts. Chrome's answer to the last
// command comes behind all that those before it bring about.
func (p *pipe) reset() {
	p.mu.Lock()
	quits := p.quits
	p.mu.Unlock()
	if quits {
		return
	}
	_, _ = p.command("Target.setDiscoverTargets", `"discover":false`, nil)
	_, _ = p.command("Target.setAutoAttach", `"autoAttach":false,"waitForDebuggerOnStart":false,"flatten":true`, nil)
	_, _ = p.command("Browser.setDownloadBehavior", `"behavior":"default","eventsEnabled":false`, nil)
	for {
		for _, id := range p.takeRoots() {
			_, _ = p.command("Target.detachFromTarget", `"sessionId":"`+id+`"`, nil)
		}
		if err := p.ask(context.Background()); err != nil {
			return // it is gone
		}
		p.mu.Lock()
		clean := len(p.roots) == 0
		p.mu.Unlock()
		if clean {
			return
		}
	}
}

func (p *pipe) takeRoots() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.roots {
		ids = append(ids, id)
	}
	clear(p.roots)
	return ids
}
