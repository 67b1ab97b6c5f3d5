package routing

// sendMessageToTarget unwraps a command for a non-flat session: it is then
// decided like any other, at whatever depth it came.
func (r *Router) sendMessageToTarget(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	v, ok := Member(params, "message")
	text, isString := Unquote(v.Of(params))
	if !ok || !isString {
		r.forward(c, s, m, env) // Chrome refuses it, in its own words
		return
	}
	ch, code, why := r.legacyChild(s, env)
	if ch == nil {
		r.reply(s, env.ID, errorBody(code, why))
		return
	}
	if len(text) > maxLegacy {
		r.reply(s, env.ID, errorBody(codeServer, "Message of more than 4 MiB: attach with flatten:true"))
		return
	}
	r.reply(s, env.ID, `"result":{}`)
	inner := NewMessage(text)
	var innerEnv Envelope
	if ref := ScanCommand(inner.Text(), &innerEnv); ref != nil {
		r.ascend(ch, NewMessage(refusalText(ref)))
		return
	}
	r.command(c, ch, inner, &innerEnv)
}

// maxLegacy bounds what is unwrapped and scanned while all others wait.
const maxLegacy = 4 << 20

// legacyChild finds the session that sendMessageToTarget names, or Chrome's
// words for why there is none.
func (r *Router) legacyChild(s *session, env *Envelope) (ch *session, code int, why string) {
	switch {
	case env.ChildID != nil:
		ch = r.sessions[string(env.ChildID)]
		if ch == nil || ch.parent != s {
			return nil, codeParams, textNoChild
		}
	case env.TargetID != nil:
		n := 0
		for _, o := range s.children {
			if o.targetID == string(env.TargetID) {
				ch = o
				n++
			}
		}
		switch {
		case n == 0:
			return nil, codeParams, "No session for given target id"
		case n > 1:
			return nil, codeServer, "Multiple sessions attached, specify id."
		}
	default:
		return nil, codeParams, "Session id must be specified"
	}
	if !ch.legacy {
		return nil, codeServer, "When using flat protocol, messages are routed to the target via the sessionId attribute."
	}
	return ch, 0, ""
}

// attachToTarget attaches flat whatever was asked: a non-flat session exists
// between the client and the proxy only.
func (r *Router) attachToTarget(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	flatten, given, ok := boolParam(params, "flatten")
	q := r.open(s, c, s, env.ID)
	q.subject, q.legacy = string(env.TargetID), ok && !flatten
	r.hideForeign(q, m, env)
	if params != nil && q.legacy {
		setParam(m, env, "flatten", "true", given)
	}
	r.send(q, m, env)
}
