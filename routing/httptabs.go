package routing

import "slices"

// linger closes a tab of a client that only HTTP and page sockets know, or of
// the HTTP owner, once it was without a page socket for as long as
// Config.SocketGrace. It is called when the tab appears and when a socket on
// it ends.
func (r *Router) linger(t *target) {
	if t.owner == nil || t.owner.rooted || !t.isTab() {
		return
	}
	t.lingers++
	n := t.lingers
	r.remind(r.socketGrace, t, func(r *Router, t *target) {
		if t.lingers == n && !t.owner.rooted && !r.hasSocket(t) {
			r.closeTarget(t)
		}
	})
}

// hasSocket reports whether a connection speaks to a tab, or will.
func (r *Router) hasSocket(t *target) bool {
	return t.attachedTo(t.owner) || slices.ContainsFunc(t.owner.conns, func(c *conn) bool { return c.page == t.id })
}

// leftBy lists the tabs that a connection spoke to.
func (r *Router) leftBy(c *conn) []*target {
	var ts []*target
	if t := r.targets[c.page]; t != nil {
		ts = append(ts, t)
	}
	for _, s := range c.sessions {
		if s.target != nil && !slices.Contains(ts, s.target) {
			ts = append(ts, s.target)
		}
	}
	return ts
}
