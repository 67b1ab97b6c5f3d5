package routing

import (
	"maps"
	"slices"

	cdptarget "github.com/chromedp/cdproto/target"
)

// setDiscoverTargets is virtual on every session: the proxy's own root
// discovers for all. A getTargets that goes before the answer brings the
// titles, and puts the answer behind all that was sent before it.
func (r *Router) setDiscoverTargets(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	on, given, ok := boolParam(params, "discover")
	f, filtered, fok := filterParam(params)
	switch {
	case !given || !ok || !fok:
		r.forward(c, s, m, env) // Chrome refuses it, in its own words
		return
	case !on && filtered && len(f) > 0:
		r.reply(s, env.ID, errorBody(codeParams, "Filter should not be present with `discover` is off"))
		return
	case !on:
		f = nil
	}
	q := r.ask(nil, cdptarget.CommandGetTargets, cdptarget.GetTargetsParams{Filter: cdptarget.Filter{{}}}, (*Router).discover)
	q.conn, q.session, q.clientID, q.discover = c, s, env.ID, f
	r.awaited(q)
}

func (r *Router) discover(q *request, m *Message, env *Envelope) {
	if failed(env) || q.conn == nil {
		r.pass(q, m, env)
		return
	}
	s, c := q.session, q.conn
	if r.sessions[s.id] != s { // detached meanwhile
		r.reply(s, q.clientID, errorBody(codeServer, textClosed))
		return
	}
	r.refresh(m, env)
	was := s.discover != nil
	s.discover = q.discover
	c.discovering = slices.DeleteFunc(c.discovering, func(o *session) bool { return o == s })
	if s.discover != nil {
		c.discovering = append(c.discovering, s)
		if !was {
			r.announce(s)
		}
	}
	r.reply(s, q.clientID, `"result":{}`)
}

// announce sends a session that begins to discover what there is, in Chrome's
// order.
func (r *Router) announce(s *session) {
	cl := s.conn.client
	for _, id := range slices.Sorted(maps.Keys(r.targets)) {
		t := r.targets[id]
		if r.visible(cl, t) && s.discover.allows(t.info.Type) {
			r.emit(s, createdEvent(t, cl)...)
		}
	}
}

// setAutoAttach is virtual at a root, where Chrome would attach to (and hold)
// everybody's tabs: the proxy attaches to the client's own. On the client's
// page and tab sessions it passes.
func (r *Router) setAutoAttach(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	on, given, ok1 := boolParam(params, "autoAttach")
	wait, waitGiven, ok2 := boolParam(params, "waitForDebuggerOnStart")
	flatten, flattenGiven, ok3 := boolParam(params, "flatten")
	f, _, ok4 := filterParam(params)
	switch {
	case !given || !waitGiven || !ok1 || !ok2 || !ok3 || !ok4:
		r.forward(c, s, m, env) // Chrome refuses it, in its own words
		return
	case !s.root:
		q := r.open(s, c, s, env.ID)
		r.hideForeign(q, m, env)
		s.legacyChildren, s.autoOn = !flatten, on
		if !flatten {
			setParam(m, env, "flatten", "true", flattenGiven)
		}
		r.send(q, m, env)
		return
	case !flatten:
		r.reply(s, env.ID, errorBody(codeParams, "Only flatten protocol is supported with browser level auto-attach"))
		return
	case f.allows(typeTab) && f.allows(typePage):
		r.reply(s, env.ID, errorBody(codeParams, "Filter should not simultaneously allow \"tab\" and \"page\", page targets are attached via tab targets"))
		return
	}
	// An empty list comes back behind the answers to all that was sent before.
	q := r.ask(nil, cdptarget.CommandGetTargets, cdptarget.GetTargetsParams{Filter: cdptarget.Filter{{Exclude: true}}}, (*Router).autoAttachSet)
	q.conn, q.session, q.clientID = c, s, env.ID
	r.awaited(q)
	if on {
		q.autoAsk = &auto{wait: wait, filter: f}
	}
}

func (r *Router) autoAttachSet(q *request, m *Message, env *Envelope) {
	if failed(env) || q.conn == nil {
		r.pass(q, m, env)
		return
	}
	s := q.session
	if r.sessions[s.id] != s {
		r.reply(s, q.clientID, errorBody(codeServer, textClosed))
		return
	}
	was := s.auto
	s.auto = q.autoAsk
	b := &batch{open: 1, owed: owed{q.conn, s, q.clientID}, body: `"result":{}`}
	switch {
	case s.auto == nil:
		for _, ch := range slices.Clone(s.children) {
			switch {
			case ch.hub:
				r.release(ch, owed{}, b)
			case ch.autoMade:
				r.detach(s, ch.id, nil).batch = b
				b.open++
			}
		}
	case was == nil: // asked again while on, it attaches nothing
		for _, t := range r.byUse() {
			if !t.fresh && slices.Contains(r.audience(t), q.conn.client) {
				r.autoAttachOn(s, t, b)
			}
		}
	}
	if q := r.updateHub(); q != nil && s.auto != nil {
		q.batch = b
		b.open++
	}
	r.settle(b)
}

// wants reports whether an auto-attach is to reach a top-level target.
func (a *auto) wants(t *target) bool {
	if a == nil || t.info.ParentID != "" || t.info.Subtype != "" || t.info.Type == typeBrowser || t.info.Type == typeTab || t.closing {
		return false
	}
	return a.filter.allows(t.info.Type) || t.tab != nil && a.filter.allows(typeTab)
}

// autoAttachOn attaches a root once to a target that it wants, or to its tab;
// the reply of b then waits for it.
func (r *Router) autoAttachOn(s *session, t *target, b *batch) {
	if !s.auto.wants(t) {
		return
	}
	if !s.auto.filter.allows(t.info.Type) {
		t = t.tab
	}
	if slices.ContainsFunc(s.children, func(ch *session) bool { return ch.autoMade && ch.targetID == t.id }) {
		return
	}
	var q *request
	for q = s.first; q != nil && !(q.auto && q.subject == t.id); q = q.next {
	}
	if q == nil {
		q = r.attach(s, t.id, ignore) // a target that is closing meanwhile is none
		q.auto = true
	}
	if b != nil && q.batch == nil {
		q.batch = b
		b.open++
		r.awaited(q)
	}
}

// refresh takes in the infos of a getTargets reply and returns their targets,
// in its order.
func (r *Router) refresh(m *Message, env *Envelope) []*target {
	result := env.Result.Of(m.Text())
	v, ok := Member(result, "targetInfos")
	if !ok {
		return nil
	}
	var ts []*target
	for raw := range elements(v.Of(result)) {
		info, ok := readTarget(raw)
		t := r.targets[info.TargetID]
		if !ok || t == nil {
			continue
		}
		if info.OpenerID == "" {
			info.OpenerID = t.info.OpenerID
		}
		t.info, t.raw = info, slices.Clone(raw)
		ts = append(ts, t)
	}
	return ts
}
