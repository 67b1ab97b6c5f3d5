package routing

import (
	"slices"

	cdptarget "github.com/chromedp/cdproto/target"
)

// session is one attached session. In Chrome all of them are flat; a legacy
// one is reached by its client through Target.sendMessageToTarget.
type session struct {
	id       string
	conn     *conn    // whose it is; nil: the proxy's own, or not given yet
	parent   *session // whose events announced it; nil: the proxy's root
	children []*session
	target   *target // nil when discovery has not told of it
	targetID string

	// carrier is the session whose messages carry this one's: itself for a
	// connection's base and for a legacy session, else that of its parent;
	// nil when its connection does not hear it at all.
	carrier *session
	legacy  bool
	// legacyChildren: its own setAutoAttach asked for non-flat sessions.
	legacyChildren bool

	// The hub's and the eye's. A session that the hub made and handed over has
	// its client's root for a parent here, and the hub in Chrome.
	hub    bool
	eye    bool
	paused bool   // its target waits for a run on it
	info   []byte // the TargetInfo of a hub's session, until it is handed over
	autoOn bool   // its own setAutoAttach, which passes, is on
	pageOn bool   // its client enabled Page on it

	downloadsOn bool // its client asked for Browser.download* on it

	root     bool     // a browser session: a connection's sub-root or one nested in it
	discover filter   // what it hears of targets; nil: nothing
	auto     *auto    // a root's virtual auto-attach; nil: off
	autoMade bool     // made by its parent's virtual auto-attach
	first    *request // open requests on it, oldest first
	last     *request
}

// auto is what a root's setAutoAttach asked for.
type auto struct {
	wait   bool
	filter filter
}

// addSession enters a session that Chrome announced on parent.
func (r *Router) addSession(id, targetID string, parent *session) *session {
	s := &session{id: id, targetID: targetID, target: r.targets[targetID], parent: parent}
	r.sessions[id] = s
	if s.target != nil {
		s.target.sessions = append(s.target.sessions, s)
	}
	if parent != nil {
		parent.children = append(parent.children, s)
		if parent.conn != nil {
			r.give(s, parent.conn)
			s.carrier = parent.carrier
		}
	}
	return s
}

// give makes a session a connection's.
func (r *Router) give(s *session, c *conn) {
	s.conn = c
	c.sessions = append(c.sessions, s)
}

// removeSession forgets a session and all below it. What was open on them is
// answered with an error: Chrome never will.
func (r *Router) removeSession(s *session) {
	if r.sessions[s.id] != s {
		return
	}
	for len(s.children) > 0 {
		ch := s.children[len(s.children)-1]
		if ch.hub && ch.conn != nil { // not below s in Chrome
			r.takeBack(ch)
		} else {
			r.removeSession(ch)
		}
	}
	for s.first != nil {
		r.fail(s.first, codeServer, textClosed)
	}
	delete(r.sessions, s.id)
	r.unhold(s)
	r.disconnect(s)
	if s.target != nil {
		s.target.sessions = without(s.target.sessions, s)
	}
}

// disconnect takes a session from its parent and its connection.
func (r *Router) disconnect(s *session) {
	if s.parent != nil {
		s.parent.children = without(s.parent.children, s)
	}
	if c := s.conn; c != nil {
		c.sessions = without(c.sessions, s)
		c.discovering = without(c.discovering, s)
	}
}

// without takes a session out of a list, at no cost from its end: that is
// where many go at once.
func without(list []*session, s *session) []*session {
	i := len(list) - 1
	for i >= 0 && list[i] != s {
		i--
	}
	if i < 0 {
		return list
	}
	return slices.Delete(list, i, i+1)
}

// unhold lets go what a session that is removed held, or was held for.
func (r *Router) unhold(s *session) {
	t := s.target
	if t == nil {
		return
	}
	if t.held == s {
		t.held = nil
	}
	if t.kept == s {
		t.kept = nil
	}
	if t.dialog == s {
		t.dialog = nil
	}
	if s.conn != nil && s.paused && !s.hub && t.info.isWorker() {
		r.free(t.id)
	}
	if s.conn != nil {
		r.letGo(t)
		if t.page != nil {
			r.letGo(t.page)
		}
	}
}

// attach asks Chrome for a session on a target, under parent.
func (r *Router) attach(parent *session, targetID string, a answer) *request {
	flat := true
	q := r.ask(parent, cdptarget.CommandAttachToTarget, cdptarget.AttachToTargetParams{TargetID: cdptarget.ID(targetID), Flatten: &flat}, a)
	q.subject = targetID
	return q
}

// detach ends a session in Chrome; parent nil is the proxy's root.
func (r *Router) detach(parent *session, id string, a answer) *request {
	if a == nil {
		a = ignore
	}
	q := r.ask(parent, cdptarget.CommandDetachFromTarget, cdptarget.DetachFromTargetParams{SessionID: cdptarget.SessionID(id)}, a)
	q.detaches = id
	return q
}

// resolve finds the session that a command speaks to. via is what carried the
// command: the connection's base, or a legacy session. nil: to this client
// there is no such session.
func (r *Router) resolve(via *session, id []byte) *session {
	if id == nil {
		return via
	}
	s := r.sessions[string(id)]
	if s == nil || s.carrier != via || s == via || s.legacy {
		return nil
	}
	return s
}

// deliver passes a message of Chrome on to the session's client.
func (r *Router) deliver(s *session, m *Message, env *Envelope) {
	if s.carrier == nil {
		return
	}
	if s.carrier == s {
		m.SetSession(env, "")
	}
	r.ascend(s.carrier, m)
}

// emit sends an event of ours on a session; body is all but the braces and
// the sessionId.
func (r *Router) emit(s *session, body ...string) {
	if s.carrier == nil {
		return
	}
	n := 80
	for _, b := range body {
		n += len(b)
	}
	buf := make([]byte, Headroom, Headroom+n)
	buf = append(buf, '{')
	for _, b := range body {
		buf = append(buf, b...)
	}
	buf = appendSession(buf, s)
	r.ascend(s.carrier, &Message{Buf: append(buf, '}'), Start: Headroom})
}

// appendSession appends the sessionId member that a message of s has.
func appendSession(buf []byte, s *session) []byte {
	if s == nil || s.carrier == s {
		return buf
	}
	buf = append(buf, `,"sessionId":"`...)
	buf = append(buf, s.id...)
	return append(buf, '"')
}

// ascend wraps a message of a legacy session for its parent, as often as it
// takes to reach the connection.
func (r *Router) ascend(s *session, m *Message) {
	for s != s.conn.base {
		text := m.Text()
		buf := make([]byte, Headroom, Headroom+len(text)+len(text)/4+256)
		buf = append(buf, `{"method":"`+eventReceivedMessage+`","params":{"sessionId":"`...)
		buf = append(buf, s.id...)
		buf = append(buf, `","message":`...)
		buf = AppendQuoted(buf, text)
		buf = append(buf, `,"targetId":"`...)
		buf = append(buf, s.targetID...)
		buf = append(buf, `"}`...)
		s = s.parent
		buf = appendSession(buf, s)
		m = &Message{Buf: append(buf, '}'), Start: Headroom}
		s = s.carrier
		if s == nil {
			return
		}
	}
	r.out = append(r.out, Action{Kind: ToClient, Conn: s.conn.id, Msg: m})
}
