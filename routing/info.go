package routing

import (
	"slices"
	"strings"
)

// infoFor is the TargetInfo as the client sees it: attached means by itself.
func (t *target) infoFor(cl *client) string {
	attached := t.info.Type == typeBrowser || t.attachedTo(cl)
	return string(withAttached(nil, t.raw, attached))
}

// withAttached appends a TargetInfo with another value of attached.
func withAttached(dst, raw []byte, attached bool) []byte {
	v, ok := Member(raw, "attached")
	if !ok {
		return append(dst, raw...)
	}
	dst = append(dst, raw[:v.Start]...)
	if attached {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	return append(dst, raw[v.End:]...)
}

// getTargets asks Chrome, since discovery does not tell titles, and keeps what
// is the client's, most recently used first.
func (r *Router) getTargets(c *conn, s *session, m *Message, env *Envelope) {
	r.forward(c, s, m, env).answer = (*Router).targetsKnown
}

func (r *Router) targetsKnown(q *request, m *Message, env *Envelope) {
	if failed(env) || q.conn == nil {
		r.pass(q, m, env)
		return
	}
	var own []*target
	for _, t := range r.refresh(m, env) {
		if r.visible(q.conn.client, t) {
			own = append(own, t)
		}
	}
	slices.SortStableFunc(own, func(a, b *target) int { return byUse(b, a) })
	var infos []string
	for _, t := range own {
		infos = append(infos, t.infoFor(q.conn.client))
	}
	r.reply(q.session, q.clientID, `"result":{"targetInfos":[`+strings.Join(infos, ",")+`]}`)
}

func (r *Router) getTargetInfo(c *conn, s *session, m *Message, env *Envelope) {
	r.forward(c, s, m, env).answer = (*Router).targetInfoKnown
}

func (r *Router) targetInfoKnown(q *request, m *Message, env *Envelope) {
	if failed(env) || q.conn == nil {
		r.pass(q, m, env)
		return
	}
	result := env.Result.Of(m.Text())
	v, _ := Member(result, "targetInfo")
	raw := v.Of(result)
	info, _ := readTarget(raw)
	if t := r.targets[info.TargetID]; t != nil {
		attached := info.Type == typeBrowser || t.attachedTo(q.conn.client)
		r.reply(q.session, q.clientID, `"result":{"targetInfo":`+string(withAttached(nil, raw, attached))+`}`)
		return
	}
	r.pass(q, m, env)
}

// audience is who sees a target: its owner, or the viewers of a worker.
func (r *Router) audience(t *target) []*client {
	if t.owner != nil {
		return []*client{t.owner}
	}
	return t.viewers
}

// tell sends an event about a target to each session of a client that
// discovers such targets.
func (r *Router) tell(t *target, cl *client, body ...string) {
	for _, c := range cl.conns {
		for _, s := range c.discovering {
			if s.discover.allows(t.info.Type) {
				r.emit(s, body...)
			}
		}
	}
}

func (r *Router) tellAll(t *target, body ...string) {
	for _, cl := range r.audience(t) {
		r.tell(t, cl, body...)
	}
}

func (r *Router) tellCreated(t *target, cl *client) {
	if cl.hears() {
		r.tell(t, cl, createdEvent(t, cl)...)
	}
}

func (r *Router) tellChanged(t *target, cl *client) {
	r.tellInfo(t, cl, t.info.Type == typeBrowser || t.attachedTo(cl))
}

// tellInfo is tellChanged with attached given.
func (r *Router) tellInfo(t *target, cl *client, attached bool) {
	if cl.hears() {
		r.tell(t, cl, `"method":"`+eventTargetInfoChanged+`","params":{"targetInfo":`, string(withAttached(nil, t.raw, attached)), `}`)
	}
}

// hears saves the work of an event that nobody will get.
func (cl *client) hears() bool {
	return slices.ContainsFunc(cl.conns, func(c *conn) bool { return len(c.discovering) > 0 })
}

func createdEvent(t *target, cl *client) []string {
	return []string{`"method":"` + eventTargetCreated + `","params":{"targetInfo":`, t.infoFor(cl), `}`}
}
