package routing

import (
	"slices"
	"time"
)

// CloseClient ends a client at once, as the operator wants it: its connections
// and all that is its own. It returns how many tabs were closed.
func (r *Router) CloseClient(now time.Time, id string, out []Action) (tabs int, _ []Action) {
	r.begin(now, out)
	return r.endClient(id, ReasonOperator, "the operator ended this client"), r.out
}

// ReleaseClient is CloseClient for a client whose session was closed.
func (r *Router) ReleaseClient(now time.Time, id string, out []Action) []Action {
	r.begin(now, out)
	r.endClient(id, ReasonSessionClosed, "the session of this client was closed")
	return r.out
}

func (r *Router) endClient(id string, reason Reason, text string) (tabs int) {
	cl := r.clients[id]
	if cl == nil {
		return 0
	}
	tabs = len(r.tabs(cl))
	cl.grace, cl.rooted = 0, true // nothing of it stays
	for _, c := range slices.Clone(cl.conns) {
		for _, q := range r.inOrder() {
			if q.conn == c {
				r.reply(q.session, q.clientID, errorBody(codeServer, text))
				q.conn = nil
			}
		}
		r.end(c, reason)
	}
	if !cl.gone { // it was in grace
		r.leave(cl)
	}
	return tabs
}

// CloseTabs closes a client's tabs, as the operator wants it, and returns how
// many they were.
func (r *Router) CloseTabs(now time.Time, id string, out []Action) (tabs int, _ []Action) {
	r.begin(now, out)
	if cl := r.clients[id]; cl != nil {
		for _, t := range r.tabs(cl) {
			r.closeTarget(t)
			tabs++
		}
	}
	return tabs, r.out
}

// Present reports whether a client id is in use: connected, in grace, or with
// tabs that HTTP made.
func (r *Router) Present(id string) bool { return r.clients[id] != nil }

// Presence says how many connections and tabs a client id has.
func (r *Router) Presence(id string) (conns, tabs int) {
	if cl := r.clients[id]; cl != nil {
		return len(cl.conns), len(r.tabs(cl))
	}
	return 0, 0
}

// Leaves reports whether something of a client id is left in the browser, or
// may be: tabs that are being made or closed, and those of before a gap.
func (r *Router) Leaves(id string) bool {
	for _, t := range r.targets {
		if t.owner != nil && t.owner.id == id {
			return true
		}
	}
	for _, m := range r.remembered {
		if m.client.id == id {
			return true
		}
	}
	return slices.ContainsFunc(r.creating, func(q *request) bool { return q.client != nil && q.client.id == id })
}

// InGrace counts the clients that are gone and whose tabs wait for them.
func (r *Router) InGrace() int {
	n := 0
	for _, cl := range r.clients {
		if len(cl.conns) == 0 && len(r.tabs(cl)) > 0 {
			n++
		}
	}
	return n
}

// Active is when the browser was used last: a client's message, or a tab that
// nobody of ours made, sent elsewhere or closed.
func (r *Router) Active() time.Time { return r.active }
