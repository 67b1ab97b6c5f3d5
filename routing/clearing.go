package routing

import (
	"slices"
	"strings"
)

// clear is a command that wipes the cookies of its context: in the one that
// all share it would log everybody out.
func (r *Router) clear(c *conn, s *session, m *Message, env *Envelope) {
	if r.clearing || !r.shares(s, env) {
		r.forward(c, s, m, env)
		return
	}
	r.reply(s, env.ID, errorBody(codeServer, string(env.Method)+" wipes the login that all clients share: start cdpmux with --allow-clearing to let it"))
}

// clearData is clear when cookies are among what is to be cleared.
func (r *Router) clearData(c *conn, s *session, m *Message, env *Envelope) {
	types := strings.Split(stringParam(object(m, env), "storageTypes"), ",")
	if slices.Contains(types, "cookies") || slices.Contains(types, "all") {
		r.clear(c, s, m, env)
		return
	}
	r.forward(c, s, m, env)
}
