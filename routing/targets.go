package routing

import (
	"slices"
	"strings"
)

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

func (r *Router) closeTargetCommand(c *conn, s *session, m *Message, env *Envelope) {
	if t := r.targets[string(env.TargetID)]; r.visible(c.client, t) {
		r.leaving(t)
	}
	r.forward(c, s, m, env)
}
