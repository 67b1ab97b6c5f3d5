package routing

// createTarget goes through the proxy's own root, where the reply comes even
// when the client leaves: the tab must not be left without an owner.
func (r *Router) createTarget(c *conn, s *session, m *Message, env *Envelope) {
	if r.closes(s, m, env) {
		return
	}
	if r.full(c.client) {
		r.deny(s, env, "cap", r.fullText(c.client))
		return
	}
	params := object(m, env)
	newWindow, given, ok := boolParam(params, "newWindow")
	background, _, _ := boolParam(params, "background")
	hidden, _, _ := boolParam(params, "hidden")
	var via *session
	if hidden {
		via = s // a hidden target lives and dies with the session that made it
	}
	q := r.open(via, c, s, env.ID)
	q.answer, q.client, q.maker = (*Router).targetMade, c.client, c.id
	shared := env.ContextID == nil || string(env.ContextID) == r.defaultContext
	r.hideForeign(q, m, env)
	if params != nil && ok && !hidden && shared {
		w, want := r.place(c.client, newWindow, background)
		q.window = w
		if want && !newWindow {
			setParam(m, env, "newWindow", "true", given)
		}
	}
	r.creating = append(r.creating, q)
	r.send(q, m, env)
}

// targetMade gives the new target to its client, and only then the reply: the
// events about it come first, as in Chrome.
func (r *Router) targetMade(q *request, m *Message, env *Envelope) {
	r.dropCreating(q)
	t := r.targets[resultIDs(m, env).TargetID]
	if t != nil && t.page != nil {
		t = t.page // forTab
	}
	if t == nil {
		if q.window != nil {
			q.window.tabs--
		}
		r.notMadeBy(q)
		r.made(q, m, env)
		r.vacate(q.client)
		return
	}
	t.window, t.maker = q.window, q.maker
	b := &batch{open: 1}
	r.use(t)
	r.own(t, q.client)
	if t.fresh {
		t.hubBatch = b
		b.open++
	}
	for _, root := range r.rootsFor(t) {
		if !t.fresh {
			r.autoAttachOn(root, t, b)
		}
	}
	r.notMadeBy(q)
	if q.conn != nil {
		r.closeBlanks(t)
	}
	if q.late {
		r.closeTarget(t)
	}
	if q.conn == nil || b.open == 1 {
		r.made(q, m, env)
		return
	}
	result := env.Result.Of(m.Text())
	b.owed, b.body = owed{q.conn, q.session, q.clientID}, `"result":`+string(result)
	r.settle(b)
}

// made answers a createTarget, to a client or over HTTP.
func (r *Router) made(q *request, m *Message, env *Envelope) {
	if q.token == 0 {
		r.pass(q, m, env)
		return
	}
	r.out = append(r.out, Action{Kind: Answer, Token: q.token, Result: Result{TargetID: resultIDs(m, env).TargetID, Err: errorOf(m, env)}})
}

// closeBlanks closes what an earlier connection of the client made and never
// used: browser-harness makes itself a new about:blank at each start.
func (r *Router) closeBlanks(made *target) {
	for _, t := range r.tabs(made.owner) {
		if t.maker != 0 && t.maker != made.maker && r.conns[t.maker] == nil && !t.visited && !t.attachedTo(t.owner) {
			r.closeTarget(t)
		}
	}
}
