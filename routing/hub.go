package routing

import (
	"slices"
	"time"

	"github.com/chromedp/cdproto/runtime"
	cdptarget "github.com/chromedp/cdproto/target"
)

// hub is the one auto-attach at browser level, the proxy's own. Any such
// auto-attach blocks every window.open until somebody runs the popup, so it is
// off, or on with wait and each of its sessions is seen to: handed to the owner
// of the target when that client auto-attaches, else run and detached.
type hub struct {
	session *session // its sub-root; nil until it is attached
	on      bool     // what Chrome was told last
}

// hubFilter lets through what a client's root may auto-attach to.
var hubFilter = cdptarget.Filter{
	{Type: typeBrowserUI, Exclude: true}, {Type: typeBrowser, Exclude: true}, {Type: typeTab, Exclude: true}, {},
}

// patience is how long a new target waits for the hub, and one kept in tab mode
// for its client. Neither was ever seen to run out.
const patience = 5 * time.Second

// hubAttached begins the hub's life: on once, so that whatever a proxy before
// this one left paused is run, then as the clients want it.
func (r *Router) hubAttached(q *request, m *Message, env *Envelope) {
	s := r.sessions[resultIDs(m, env).SessionID]
	if s == nil {
		return // Chrome is shutting down
	}
	r.hub.session = s
	r.switchHub(true)
	r.updateHub()
}

// updateHub switches the hub on while any root auto-attaches.
func (r *Router) updateHub() *request {
	want := false
	for _, c := range r.conns {
		want = want || slices.ContainsFunc(c.sessions, func(s *session) bool { return s.auto != nil })
	}
	if r.hub.session == nil || want == r.hub.on {
		return nil
	}
	return r.switchHub(want)
}

func (r *Router) switchHub(on bool) *request {
	r.hub.on = on
	flat := true
	p := cdptarget.SetAutoAttachParams{AutoAttach: on, WaitForDebuggerOnStart: on, Flatten: &flat}
	if on {
		p.Filter = hubFilter
	}
	for _, t := range r.targets {
		if on {
			break
		}
		r.letGo(t) // paused: the hub's end would leave it so for ever
		if t.held != nil {
			r.release(t.held, owed{}, nil)
			t.held = nil
		}
		r.hubIsDone(t)
	}
	return r.ask(r.hub.session, cdptarget.CommandSetAutoAttach, p, ignore)
}

// hubReached takes a session that the hub made. Targets of before the hub was
// on have their sessions from elsewhere.
func (r *Router) hubReached(s *session, raw []byte) {
	s.hub, s.paused, s.info = true, true, slices.Clone(raw) // whatever Chrome says: it may wait
	switch t := s.target; {
	case !r.hub.on: // Chrome has ended this session by now, and it may have paused its target
		if t != nil {
			r.hubIsDone(t)
		}
		r.free(s.targetID)
	case t == nil || !t.fresh:
		r.release(s, owed{}, nil)
	default:
		t.held = s
		r.decideHub(t)
	}
}

// free runs a target from a session of its own, which ends with that.
func (r *Router) free(targetID string) { r.attach(nil, targetID, ignore) }

// decideHub hands the hub's session on a new target over, keeps it, or lets
// it go; while the owner is not known yet it stays as it is.
func (r *Router) decideHub(t *target) {
	s := t.held
	if s == nil || t.pending {
		return
	}
	t.held = nil
	alone := len(r.audience(t)) == 1
	for _, root := range r.rootsFor(t) {
		switch {
		case s == nil || !alone:
		case root.auto.filter.allows(t.info.Type):
			r.handOver(s, root)
			s = nil
			continue
		case root.auto.wait:
			r.keep(t, s)
			s = nil
		}
		r.autoAttachOn(root, t, t.hubBatch)
	}
	if s != nil {
		r.release(s, owed{}, nil)
	}
	r.hubIsDone(t)
}

// hubIsDone ends a target's waiting for the hub, and a reply's that waited for it.
func (r *Router) hubIsDone(t *target) {
	t.fresh = false
	if b := t.hubBatch; b != nil {
		t.hubBatch = nil
		r.settle(b)
	}
}

// rootsFor lists the roots whose auto-attach is to reach the target.
func (r *Router) rootsFor(t *target) (roots []*session) {
	for _, cl := range r.audience(t) {
		for _, c := range cl.conns {
			for _, s := range c.sessions {
				if s.auto.wants(t) {
					roots = append(roots, s)
				}
			}
		}
	}
	return roots
}

// handOver makes the hub's session the client's: paused if it asked for that,
// so that its init scripts come first. An attach of its own would come too
// late for a noopener popup, and release an opener popup for everybody.
func (r *Router) handOver(s, root *session) {
	t := s.target
	s.parent.children = slices.DeleteFunc(s.parent.children, func(o *session) bool { return o == s })
	s.parent = root
	root.children = append(root.children, s)
	s.carrier, s.autoMade = root.carrier, true
	if !root.auto.wait {
		r.run(s)
	}
	first := !t.attachedTo(root.conn.client)
	r.give(s, root.conn)
	if first {
		r.tellChanged(t, root.conn.client)
	}
	waiting := "false"
	if root.auto.wait {
		waiting = "true"
	}
	s.paused = root.auto.wait
	r.emit(root, `"method":"`+eventAttachedToTarget+`","params":{"sessionId":"`, s.id, `","targetInfo":`, string(withAttached(nil, s.info, true)), `,"waitingForDebugger":`, waiting, `}`)
	s.info = nil
}

// run lets a paused target go on.
func (r *Router) run(s *session) *request {
	s.paused = false
	return r.ask(s, runtime.CommandRunIfWaitingForDebugger, nil, ignore)
}

// release ends a session that Chrome has below the hub or the proxy's root,
// and never leaves its target paused: to detach alone would leave a popup so
// for ever. A page's run and detach go back to back, and the run's reply is
// usually lost. A worker that others are attached to loses the run itself so
// (measured): its detach waits for the reply. The client in o, if any, gets
// the detach's reply; b waits for it.
func (r *Router) release(s *session, o owed, b *batch) {
	if b != nil {
		b.open++
	}
	if !s.paused {
		r.releaseRun(s, o, b)
		return
	}
	q := r.run(s)
	if s.target == nil || !s.target.info.isWorker() {
		r.releaseRun(s, o, b)
		return
	}
	q.answer, q.owed, q.batch = (*Router).workerRuns, o, b
	if b != nil {
		b.open++
	}
}

func (r *Router) workerRuns(q *request, m *Message, env *Envelope) {
	if failed(env) { // its session is gone
		if q.owed.conn != nil && q.owed.conn.state == connOpen {
			r.reply(q.owed.session, q.owed.id, errorBody(codeParams, textNoChild))
		}
		if q.batch != nil {
			r.settle(q.batch)
		}
		return
	}
	r.releaseRun(q.via, q.owed, q.batch)
}

// releaseRun detaches a session whose target runs.
func (r *Router) releaseRun(s *session, o owed, b *batch) {
	parent := s.parent
	if s.hub {
		parent = r.hub.session
	}
	q := r.detach(parent, s.id, nil)
	q.batch = b
	if o.conn != nil {
		q.conn, q.session, q.clientID, q.answer = o.conn, o.session, o.id, nil
	}
}

// takeBack makes a session that was handed over the hub's again, and ends it.
func (r *Router) takeBack(s *session) {
	for len(s.children) > 0 {
		r.removeSession(s.children[len(s.children)-1])
	}
	for s.first != nil {
		r.fail(s.first, codeServer, textClosed)
	}
	for _, q := range r.requests { // sent elsewhere, to be answered here
		if q.session == s && q.conn != nil {
			r.reply(s, q.clientID, errorBody(codeServer, textClosed))
			q.conn = nil
		}
	}
	r.disconnect(s)
	s.conn, s.carrier, s.autoMade = nil, nil, false
	s.parent = r.hub.session
	s.parent.children = append(s.parent.children, s)
	r.release(s, owed{}, nil)
}

// keep holds the hub's session on a page whose client attaches to its tab: an
// opener popup stays paused until the client runs the page.
func (r *Router) keep(t *target, s *session) {
	t.kept = s
	r.remind(patience, t, (*Router).letGo)
}

// letGo ends the keeping of a page.
func (r *Router) letGo(t *target) {
	if s := t.kept; s != nil {
		t.kept = nil
		r.release(s, owed{}, nil)
	}
}

// hubOverdue does without the hub's session on a new target.
func (r *Router) hubOverdue(t *target) {
	if !t.fresh {
		return
	}
	for _, root := range r.rootsFor(t) {
		r.autoAttachOn(root, t, t.hubBatch)
	}
	r.hubIsDone(t)
}

// runCommand is a client's Runtime.runIfWaitingForDebugger.
func (r *Router) runCommand(c *conn, s *session, m *Message, env *Envelope) {
	s.paused = false
	r.forward(c, s, m, env)
	switch t := s.target; {
	case t == nil:
	case t.page != nil: // the tab's run frees a noopener popup, unless its page is to be run
		if !s.autoOn {
			r.letGo(t.page)
		}
	case s.parent != nil && s.parent.target != nil && s.parent.target == t.tab:
		r.letGo(t)
	}
}

// detachCommand is a client's Target.detachFromTarget. A session that the hub
// made is ended at the hub, and never while it holds its target.
func (r *Router) detachCommand(c *conn, s *session, m *Message, env *Envelope) {
	id := string(env.ChildID)
	if env.ChildID == nil {
		id = string(env.TargetID)
	}
	named := func(ch *session) bool { return id != "" && (ch.id == id || env.ChildID == nil && ch.targetID == id) }
	if i := slices.IndexFunc(s.children, named); i >= 0 && s.children[i].hub {
		r.release(s.children[i], owed{c, s, env.ID}, nil)
		return
	}
	r.forward(c, s, m, env).detaches = id
}
