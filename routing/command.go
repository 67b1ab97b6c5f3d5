package routing

import (
	"strings"
	"time"
)

// FromClient takes one command of a client. Exactly one reply to it will be
// sent, now or later, unless the connection ends first.
func (r *Router) FromClient(now time.Time, id ConnID, m *Message, env *Envelope, out []Action) []Action {
	r.begin(now, out)
	r.active = now
	switch c := r.conns[id]; {
	case c == nil: // ended meanwhile
	case c.state == connOpening:
		r.holdOrRefuse(c, m, env)
	default:
		r.command(c, c.base, m, env)
	}
	return r.out
}

// command decides what becomes of a command; via is what carried it, the
// connection's base or a legacy session.
func (r *Router) command(c *conn, via *session, m *Message, env *Envelope) {
	c.client.last.set(env.Method)
	s := r.resolve(via, env.Session)
	if s == nil {
		if r.audit {
			r.denied = "session"
			r.record(c.client.id, audited(env.Method), "", allow)
		}
		r.reply(via, env.ID, errorBody(codeSession, textNoSession))
		return
	}
	if s.target != nil {
		s.target.last.set(env.Method)
		r.use(s.target)
	}
	r.apply(c, s, m, env)
}

// forward sends a command to the browser, on the session that it speaks to.
func (r *Router) forward(c *conn, s *session, m *Message, env *Envelope) *request {
	q := r.open(s, c, s, env.ID)
	r.hideForeign(q, m, env)
	r.send(q, m, env)
	return q
}

// send sends a client's command as request q.
func (r *Router) send(q *request, m *Message, env *Envelope) {
	m.SetID(env, q.id)
	session := ""
	if q.via != nil {
		session = q.via.id
	}
	m.SetSession(env, session)
	r.toBrowser(m)
}

func (r *Router) toBrowser(m *Message) {
	r.out = append(r.out, Action{Kind: ToBrowser, Msg: m})
}

// hideForeign replaces each id in params that names nothing of this client's
// by one that names nothing at all, so that Chrome itself says what it says of
// an unknown one, whatever the method and the other params are.
func (r *Router) hideForeign(q *request, m *Message, env *Envelope) {
	hide := func(key string) {
		params := env.Params.Of(m.Text())
		v, ok := Member(params, key)
		if !ok {
			return
		}
		// All the text between the quotes: Chrome repeats it in some errors.
		v = Span{env.Params.Start + v.Start + 1, env.Params.Start + v.End - 1}
		foreign := string(v.Of(m.Text()))
		q.hidden, q.foreign = strings.Repeat("Z", len(foreign)), foreign
		copy(v.Of(m.Text()), q.hidden)
		r.denied = "foreign"
	}
	if env.TargetID != nil {
		if t := r.targets[string(env.TargetID)]; r.visible(q.conn.client, t) {
			r.use(t)
		} else {
			hide("targetId")
		}
	}
	if env.ChildID != nil {
		if ch := r.sessions[string(env.ChildID)]; ch == nil || ch.conn != q.conn || ch.parent != q.session {
			hide("sessionId")
		}
	}
	if env.ContextID != nil && !q.conn.client.uses(string(env.ContextID), r.defaultContext) {
		hide("browserContextId")
	}
}
