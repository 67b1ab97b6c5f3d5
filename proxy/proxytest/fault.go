package proxytest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

// Fault is how the fake browser misbehaves with the commands of one method.
type Fault struct {
	Delay     time.Duration // performed and answered so much later
	Ignore    bool          // neither performed nor answered
	LoseReply bool          // performed, but the reply is lost
	Answer    func(Command) Reply
}

// Reply is a scripted answer; the zero Reply answers {}.
type Reply struct {
	Result json.RawMessage
	Error  *Error
	Pass   bool // the browser answers as usual
}

// Fault sets what happens to all further commands of a method; the zero Fault
// sets nothing at all.
func (b *Browser) Fault(method string, f Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.Delay == 0 && !f.Ignore && !f.LoseReply && f.Answer == nil {
		delete(b.faults, method)
		return
	}
	b.faults[method] = f
}

// Handle scripts the answers to a method. The function must not call the
// Browser.
func (b *Browser) Handle(method string, answer func(Command) Reply) {
	b.Fault(method, Fault{Answer: answer})
}

// faulty performs a command for whose method a fault is set.
func (b *Browser) faulty(s *session, cmd Command, f Fault) {
	if f.Ignore {
		return
	}
	cmd.loseReply = f.LoseReply
	perform := func() {
		if s.gone {
			return
		}
		reply := Reply{Pass: true}
		if f.Answer != nil {
			reply = f.Answer(cmd)
		}
		switch {
		case reply.Pass:
			b.perform(s, cmd)
		case reply.Error != nil:
			s.failWith(cmd, reply.Error)
		case reply.Result != nil:
			s.result(cmd, reply.Result)
		default:
			s.ok(cmd)
		}
	}
	if f.Delay == 0 {
		perform()
		return
	}
	cmd.Params = slices.Clone(cmd.Params)
	b.after(f.Delay, perform)
}

// RefuseHandshakes refuses the next n WebSocket handshakes with 503.
func (b *Browser) RefuseHandshakes(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusals = n
}

// Inject sends a raw text on every connection.
func (b *Browser) Inject(raw string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		c.out.frame(opText, []byte(raw))
	}
}

// Emit sends an event on every session of a target.
func (b *Browser) Emit(targetID, method, params string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.targets[targetID]; t != nil {
		t.tell(everySession, method, params)
	}
}

// Drop resets the TCP connection of every WebSocket.
func (b *Browser) Drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		c.gate.drop()
	}
}

// CloseWith ends every WebSocket with a close frame.
func (b *Browser) CloseWith(code int, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		c.out.frame(opClose, websocket.FormatCloseMessage(code, text))
	}
}

// Pause makes a browser that hangs: it takes no byte from any socket, old or
// new, WebSocket or HTTP.
func (b *Browser) Pause() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hanging = true
	for g := range b.gates {
		g.stop()
	}
}

// Resume undoes Pause.
func (b *Browser) Resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hanging = false
	for g := range b.gates {
		g.resume()
	}
}

// OpenPopup opens a popup as window.open of a page does, and returns its id.
func (b *Browser) OpenPopup(openerTargetID, url string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	opener := b.mustFind(openerTargetID)
	page := b.openTab(newTab{context: opener.context, opener: opener, canAccess: true})
	b.load(page, url)
	return page.id
}

// OpenHuman opens a page that nobody is the opener of, as a person does with
// the keyboard or with a Ctrl-click, and returns its id.
func (b *Browser) OpenHuman(url string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	page := b.openTab(newTab{url: url, context: b.defaultContext})
	b.load(page, url)
	return page.id
}

// AddFrame adds a cross-site iframe to a page or frame and returns its id.
func (b *Browser) AddFrame(parentTargetID, url string) string {
	return b.addChild("iframe", parentTargetID, url)
}

// AddWorker adds a dedicated worker to a page or frame and returns its id.
func (b *Browser) AddWorker(parentTargetID, url string) string {
	return b.addChild("worker", parentTargetID, url)
}

func (b *Browser) addChild(kind, parentTargetID, url string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	parent := b.mustFind(parentTargetID)
	child := &target{id: newID(), kind: kind, parent: parent, context: parent.context}
	b.announce(child)
	b.load(child, url)
	return child.id
}

// CloseTarget closes a target as a person or window.close() does.
func (b *Browser) CloseTarget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.mustFind(id)
	if t.parent != nil {
		b.closeChild(t)
		return
	}
	b.closeTab(t)
}

// Crash ends the renderer of a page.
func (b *Browser) Crash(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.crash(b.mustFind(id))
}

// mustFind panics for an unknown id: the test is wrong then.
func (b *Browser) mustFind(id string) *target {
	t := b.targets[id]
	if t == nil {
		panic("proxytest: no target " + id)
	}
	return t
}
