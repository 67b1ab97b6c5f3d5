package routing

import (
	"bytes"
	"slices"
	"time"

	"github.com/mailru/easyjson"
)

// FromBrowser takes one message of the browser: a reply goes to whoever waits
// for it, an event to the client of its session.
func (r *Router) FromBrowser(now time.Time, m *Message, env *Envelope, out []Action) []Action {
	r.begin(now, out)
	switch {
	case env.IDSpan.Present():
		// A reply that nobody waits for is late: its request was answered
		// when its session went.
		if q := r.requests[env.ID]; q != nil {
			r.finish(q, m, env)
		}
	case env.Session == nil:
		r.rootEvent(m, env)
	default:
		if s := r.sessions[string(env.Session)]; s != nil {
			r.sessionEvent(s, m, env)
		}
	}
	return r.out
}

// rootEvent takes an event of the proxy's own root: nobody else hears those.
func (r *Router) rootEvent(m *Message, env *Envelope) {
	params := env.Params.Of(m.Text())
	info, _ := Member(params, "targetInfo")
	switch string(env.Method) {
	case eventTargetCreated:
		r.created(info.Of(params))
	case eventTargetInfoChanged:
		r.changed(info.Of(params))
	case eventTargetDestroyed:
		r.destroyed(eventIDs(params).TargetID)
	case eventTargetCrashed:
		r.crashed(eventIDs(params).TargetID, m, env)
	case eventAttachedToTarget: // of our own making
		r.ownAttached(info.Of(params), eventIDs(params).SessionID)
	case eventDownloadBegins:
		r.downloadBegins(params)
	case eventDownloadMoves:
		r.downloadMoves(params)
	case eventDetached:
		if s := r.sessions[eventIDs(params).SessionID]; s != nil {
			if s.conn != nil { // its root: only Chrome's end does that
				r.end(s.conn, ReasonBrowserLost)
			}
			r.removeSession(s)
		}
	}
}

var targetDomain = []byte("Target.")

// sessionEvent takes an event of a client's session. Only the few that change
// the tables are looked into.
func (r *Router) sessionEvent(s *session, m *Message, env *Envelope) {
	switch {
	case bytes.HasPrefix(env.Method, targetDomain):
		r.targetEvent(s, m, env)
		return
	case s.eye:
		r.eyeEvent(s, m, env)
		return
	case string(env.Method) == eventInspectorCrashed:
		if s.target != nil {
			s.target.crashed = true
		}
		r.failOpen(s)
	case string(env.Method) == eventInspectorReloaded:
		if s.target != nil {
			s.target.crashed = false
		}
	}
	if string(env.Method) == eventPageDownloadMoves && r.park(s, m, env) {
		return
	}
	r.deliver(s, m, env)
}

// targetEvent takes an event about a session's children.
func (r *Router) targetEvent(s *session, m *Message, env *Envelope) {
	params := env.Params.Of(m.Text())
	switch string(env.Method) {
	case eventAttachedToTarget:
		r.attached(s, params, m, env)
	case eventDetached:
		ch := r.sessions[eventIDs(params).SessionID]
		if ch == nil || ch.parent != s && !(ch.hub && s == r.hub.session) {
			return
		}
		if ch.conn == nil {
			r.removeSession(ch)
			return
		}
		r.detached(ch, m, env)
	case eventTargetInfoChanged:
		// A tab session hears of its pages.
		info, _ := Member(params, "targetInfo")
		if ti, ok := readTarget(info.Of(params)); ok && s.conn != nil && r.visible(s.conn.client, r.targets[ti.TargetID]) {
			r.deliver(s, m, env)
		}
	}
}

// attached enters a session that Chrome announced on a client's session.
func (r *Router) attached(s *session, params []byte, m *Message, env *Envelope) {
	raw, _ := Member(params, "targetInfo")
	info, ok := readTarget(raw.Of(params))
	if !ok {
		return
	}
	waiting, _, _ := boolParam(params, "waitingForDebugger")
	if s.conn == nil {
		ch := r.addSession(eventIDs(params).SessionID, info.TargetID, s)
		if s == r.hub.session {
			r.hubReached(ch, raw.Of(params))
		} else {
			r.eyeOpened(ch, &info)
		}
		return
	}
	cl := s.conn.client
	t := r.targets[info.TargetID]
	first := t != nil && !t.attachedTo(cl)
	ch := r.addSession(eventIDs(params).SessionID, info.TargetID, s)
	ch.root = info.Type == typeBrowser
	ch.legacy = s.legacyChildren
	for q := s.first; q != nil; q = q.next {
		if q.subject == info.TargetID {
			ch.legacy, ch.autoMade = q.legacy, q.auto
			q.subject = "" // this session answers it
			break
		}
	}
	if ch.legacy {
		ch.carrier = ch
	}
	switch {
	case t == nil:
	case t.owner == nil && (ch.root || info.ParentID != "" || info.Subtype != ""):
		r.own(t, cl) // a root nested in its own, or what a session of its own brought
	}
	if first && r.visible(cl, t) && ch.carrier != nil {
		r.tellChanged(t, cl)
	}
	if t != nil && waiting && info.isWorker() {
		ch.paused = true
		r.freeWorker(t)
	}
	if t != nil && t.page != nil && t.page.kept != nil && ch.autoMade {
		// To the client its new tab waits, as the page does at the hub.
		v, _ := Member(params, "waitingForDebugger")
		m.Replace(env, Span{env.Params.Start + v.Start, env.Params.Start + v.End}, []byte("true"))
	}
	r.deliver(s, m, env)
}

// detached ends a client's session as Chrome announced it. The event goes
// before the errors of what was open: clients settle that themselves when they
// hear it, as Chrome answers nothing there.
func (r *Router) detached(ch *session, m *Message, env *Envelope) {
	t, c, parent := ch.target, ch.conn, ch.parent
	if c.base == ch { // the page of a page socket
		r.removeSession(ch)
		r.end(c, ReasonTargetClosed)
		return
	}
	last := r.visible(c.client, t) && !slices.ContainsFunc(t.sessions, func(s *session) bool { return s != ch && s.heardBy(c.client) })
	closes := t != nil && t.info.Type == typePage && !r.detaching(ch)
	if last && closes { // Chrome's order differs: measured
		r.tellInfo(t, c.client, false)
	}
	m.SetSession(env, parent.id)
	r.deliver(parent, m, env)
	r.removeSession(ch)
	if last && !closes {
		r.tellInfo(t, c.client, false)
	}
}

// detaching reports whether somebody asked for the end of a session, which
// then is not its target's.
func (r *Router) detaching(s *session) bool {
	from := s.parent
	if s.hub {
		from = r.hub.session
	}
	for q := from.first; q != nil; q = q.next {
		if q.detaches != "" && (q.detaches == s.id || q.detaches == s.targetID) {
			return true
		}
	}
	return false
}

// ownAttached enters a session that the proxy's own root made: a root, the eye
// on a tab, or one that frees its target.
func (r *Router) ownAttached(raw []byte, id string) {
	info, ok := readTarget(raw)
	if !ok {
		return
	}
	s := r.addSession(id, info.TargetID, nil)
	switch info.Type {
	case typeBrowser:
		s.root = true
	case typeTab, typeIframe:
		r.eyeOpened(s, &info)
	default:
		s.paused = true
		r.release(s, owed{}, nil)
	}
}

func eventIDs(params []byte) (v ids) {
	// What does not decode names nothing.
	_ = easyjson.Unmarshal(params, &v)
	return v
}

// contextsKnown learns which context everybody shares.
func (r *Router) contextsKnown(_ *request, m *Message, env *Envelope) {
	if failed(env) {
		return
	}
	known := readContexts(m, env)
	r.defaultContext = known.DefaultBrowserContextID
	for _, cl := range r.clients {
		cl.contexts = slices.DeleteFunc(cl.contexts, func(id string) bool { return !slices.Contains(known.BrowserContextIDs, id) })
		for _, id := range cl.contexts {
			r.pin(id)
		}
	}
}

func (r *Router) versionKnown(_ *request, m *Message, env *Envelope) {
	if env.Result.Present() && easyjson.Unmarshal(env.Result.Of(m.Text()), &r.version) == nil {
		r.out = append(r.out, Action{Kind: Answer})
	}
}

func readContexts(m *Message, env *Envelope) (v contexts) {
	if env.Result.Present() {
		_ = easyjson.Unmarshal(env.Result.Of(m.Text()), &v)
	}
	return v
}

func errorOf(m *Message, env *Envelope) string {
	var e cdpError
	if env.Error.Present() {
		_ = easyjson.Unmarshal(env.Error.Of(m.Text()), &e)
	}
	return e.Message
}
