package proxytest

import (
	"slices"
	"strconv"
)

// session is one DevTools session: the connection itself (id "", on a browser
// target of its own) or one that was attached below it. All of it is guarded
// by Browser.mu.
type session struct {
	conn   *conn
	id     string
	parent *session // nil for the connection itself
	target *target
	flat   bool // otherwise its messages travel inside the parent's
	gone   bool

	children []*session
	discover filter // nil: off
	auto     filter // of setAutoAttach; nil: off
	autoWait bool
	byAuto   bool // attached by the parent's auto-attach
	waiting  bool // for Runtime.runIfWaitingForDebugger
	page     bool // Page.enable
	runtime  bool // Runtime.enable
}

// filter is a Target.TargetFilter: the first entry that fits decides.
type filter []struct {
	Type    string `json:"type"`
	Exclude bool   `json:"exclude"`
}

// defaultFilter is what Chrome takes when a command has no filter.
var defaultFilter = filter{{"browser", true}, {"tab", true}, {}}

func (f filter) lets(kind string) bool {
	for _, entry := range f {
		if entry.Type == "" || entry.Type == kind {
			return !entry.Exclude
		}
	}
	return false
}

// event sends one event on the session; params is JSON.
func (s *session) event(method, params string) {
	s.send([]byte(`{"method":"` + method + `","params":` + params))
}

func (s *session) result(cmd Command, result ...[]byte) {
	if cmd.loseReply {
		return
	}
	start := strconv.AppendInt(append(make([]byte, 0, 128), `{"id":`...), int64(cmd.ID), 10)
	start = append(start, `,"result":`...)
	if len(result) == 1 && len(result[0]) < copyBelow {
		s.send(append(start, result[0]...))
		return
	}
	s.send(append([][]byte{start}, result...)...)
}

func (s *session) ok(cmd Command) { s.result(cmd, []byte(`{}`)) }

func (s *session) fail(cmd Command, code int, text string) {
	s.failWith(cmd, &Error{Code: code, Message: text})
}

func (s *session) failWith(cmd Command, e *Error) {
	if cmd.loseReply {
		return
	}
	text := strconv.AppendInt([]byte(`{"id":`), int64(cmd.ID), 10)
	text = appendError(append(text, `,"error":`...), e.Code, e.Message)
	if e.Data != "" {
		text = append(appendQuoted(append(text[:len(text)-1], `,"data":`...), e.Data), '}')
	}
	s.send(text)
}

// send completes a message that lacks its sessionId and its last brace.
func (s *session) send(parts ...[]byte) {
	if !s.flat {
		s.sendInside(parts)
		return
	}
	end := "}"
	if s.id != "" {
		end = `,"sessionId":"` + s.id + `"}`
	}
	if len(parts) == 1 && len(parts[0]) < copyBelow {
		s.conn.out.frame(opText, append(parts[0], end...))
		return
	}
	s.conn.out.frame(opText, append(parts, []byte(end))...)
}

func (s *session) sendInside(parts [][]byte) {
	text := append(slices.Concat(parts...), '}')
	s.parent.event("Target.receivedMessageFromTarget",
		`{"sessionId":"`+s.id+`","message":`+quote(string(text))+`,"targetId":"`+s.target.id+`"}`)
}

// attach makes a session on a target, below parent.
func (b *Browser) attach(parent *session, t *target, flat, waiting bool) *session {
	s := &session{conn: parent.conn, id: newID(), parent: parent, target: t, flat: flat, waiting: waiting}
	parent.children = append(parent.children, s)
	if flat {
		parent.conn.sessions[s.id] = s
	}
	t.sessions = append(t.sessions, s)
	if len(t.sessions) == 1 {
		b.changed(t)
	}
	parent.event("Target.attachedToTarget", `{"sessionId":"`+s.id+`","targetInfo":`+t.info()+
		`,"waitingForDebugger":`+strconv.FormatBool(waiting)+`}`)
	return s
}

// detach ends a session as its parent asked to.
func (b *Browser) detach(s *session) {
	s.parent.event("Target.detachedFromTarget", `{"sessionId":"`+s.id+`","targetId":"`+s.target.id+`"}`)
	b.end(s)
}

// end takes a session and all below it out of the tables. Nobody is told but
// the discoverers, of targets that have no session any more.
func (b *Browser) end(s *session) {
	if s.gone {
		return
	}
	s.gone = true
	s.discover, s.auto = nil, nil
	delete(s.conn.sessions, s.id)
	b.discoverers = remove(b.discoverers, s)
	if s.parent != nil {
		s.parent.children = remove(s.parent.children, s)
	}
	for len(s.children) > 0 {
		b.end(s.children[0])
	}
	for _, ctx := range slices.Clone(b.contexts) {
		if ctx.owner == s {
			b.dispose(ctx)
		}
	}
	t := s.target
	t.sessions = remove(t.sessions, s)
	t.pending = slices.DeleteFunc(t.pending, func(p *pending) bool { return p.session == s })
	if len(t.sessions) == 0 {
		b.changed(t)
		if t.kind == "browser" {
			b.destroy(t)
		}
	}
	b.released(t)
}

// autoAttachTo attaches s to a target if its auto-attach lets it.
func (b *Browser) autoAttachTo(s *session, t *target, isNew bool) {
	if s.auto == nil || !s.reaches(t) || !s.auto.lets(t.kind) {
		return
	}
	for _, child := range s.children {
		if child.byAuto && child.target == t {
			return
		}
	}
	b.attach(s, t, true, isNew && s.autoWait).byAuto = true
}

// reaches says which targets a session's auto-attach is about: all top-level
// ones at a browser session, the page at a tab, frames and workers elsewhere.
func (s *session) reaches(t *target) bool {
	switch s.target.kind {
	case "browser":
		return t.kind != "browser" && t.parent == nil
	case "tab":
		return t.tab == s.target
	}
	return t.parent == s.target
}

// discovers is Target.setDiscoverTargets{discover:true}.
func (b *Browser) discovers(s *session, f filter) {
	if s.discover != nil {
		return // Chrome keeps the first filter and announces nothing again
	}
	s.discover = f
	b.discoverers = append(b.discoverers, s)
	for _, t := range b.sorted() {
		if f.lets(t.kind) {
			s.event("Target.targetCreated", `{"targetInfo":`+t.info()+`}`)
		}
	}
}

func remove[T comparable](list []T, gone T) []T {
	return slices.DeleteFunc(list, func(one T) bool { return one == gone })
}
