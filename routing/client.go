package routing

import (
	"slices"
	"time"

	cdptarget "github.com/chromedp/cdproto/target"
)

// client is one agent as the operator knows it: the owner of targets and
// contexts, present while any of its connections is.
type client struct {
	id        string
	conns     []*conn
	contexts  []string                   // browser contexts that it created
	windows   []string                   // ids of windows that it was told of
	perms     perms                      // what it granted in the shared context
	grace     time.Duration              // its tabs outlive its last root connection by this
	until     time.Time                  // when they go; zero while it is connected
	rooted    bool                       // had a root connection: it leaves with its last one
	downloads map[string]downloadSetting // what it asked of downloads, by context; "" is the shared one
	fetched   map[string]bool            // guids of its downloads that have ended
	lost      map[string]string          // tabs that a gap took, and their types
	found     []*target                  // and those that came of its tabs during one
	gone      bool                       // left: what it still owns is being closed
	last      lastMethod                 // that it called, on any tab or none
}

// conn is one downstream connection. Its life is connOpening, connOpen,
// connEnded, in this order; only openRoot, opened and end change it.
type conn struct {
	id     ConnID
	client *client
	page   string // a page socket's target id; "" for a root connection

	state connState
	held  []held // what it sent while opening, in order

	// root is the sub-root in Chrome that is parent to all its sessions. base
	// is what the connection itself speaks to (messages without sessionId):
	// root, or the page session of a page socket.
	root *session
	base *session

	// through a gap: what was asked of the last root, and until when commands
	// wait for the next
	intent  *intent
	gapEnds time.Time

	sessions    []*session // all of them
	discovering []*session // those that hear of targets
}

type connState uint8

const (
	connOpening connState = iota // its root is not there yet
	connOpen
	connEnded
)

// held is a command that waits for its connection's root.
type held struct {
	msg *Message
	env Envelope
	at  time.Time // when it came
}

// Connect registers a root connection of a client, whose tabs outlive it by
// grace. A live one of the same id is replaced: newest wins, and the old one
// hears and removes nothing afterwards. What it sends is held until the browser
// is up.
func (r *Router) Connect(now time.Time, id string, grace time.Duration, out []Action) (ConnID, []Action) {
	r.begin(now, out)
	cl := r.client(id)
	cl.grace, cl.until = grace, time.Time{}
	var old *conn
	for _, c := range cl.conns {
		if c.page == "" {
			old = c
		}
	}
	cl.rooted = true
	c := r.connect(cl, "")
	if old != nil {
		r.end(old, ReasonTakenOver)
	}
	return c.id, r.out
}

// ConnectPage registers a page socket: a connection of the client that speaks
// to one of its pages. "" is the HTTP owner.
func (r *Router) ConnectPage(now time.Time, id, page string, out []Action) (ConnID, []Action) {
	r.begin(now, out)
	cl := r.client(id)
	cl.until = time.Time{}
	c := r.connect(cl, page)
	return c.id, r.out
}

func (r *Router) connect(cl *client, page string) *conn {
	r.lastConn++
	c := &conn{id: r.lastConn, client: cl, page: page}
	r.conns[c.id] = c
	cl.conns = append(cl.conns, c)
	if r.up && !r.ending {
		r.openRoot(c)
	}
	return c
}

// client returns the client of that id, made when it is new.
func (r *Router) client(id string) *client {
	cl := r.clients[id]
	if cl == nil {
		cl = &client{id: id}
		r.clients[id] = cl
	}
	return cl
}

// HasClient reports whether a root connection of that id is live.
func (r *Router) HasClient(id string) bool {
	cl := r.clients[id]
	return cl != nil && slices.ContainsFunc(cl.conns, func(c *conn) bool { return c.page == "" })
}

// Knows reports whether the id is a client's that is connected, or whose tabs
// wait for it.
func (r *Router) Knows(id string) bool { return r.clients[id] != nil }

// LiveClients counts the ids with a live root connection.
func (r *Router) LiveClients() int {
	n := 0
	for id := range r.clients {
		if r.HasClient(id) {
			n++
		}
	}
	return n
}

// openRoot asks Chrome for the connection's sub-root.
func (r *Router) openRoot(c *conn) {
	q := r.ask(nil, cdptarget.CommandAttachToBrowserTarget, nil, (*Router).rootAttached)
	q.opens = c
	r.awaited(q)
}

func (r *Router) rootAttached(q *request, m *Message, env *Envelope) {
	c := q.opens
	s := r.sessions[resultIDs(m, env).SessionID]
	switch {
	case !r.up: // the next browser is asked again
	case s == nil: // Chrome is shutting down
		r.end(c, ReasonBrowserLost)
	case c.state == connEnded: // it left meanwhile
		r.removeSession(s)
		r.detach(nil, s.id, nil)
	default:
		r.give(s, c)
		c.root = s
		if s.target != nil {
			r.own(s.target, c.client)
		}
		if c.page == "" {
			r.opened(c, s)
			return
		}
		t := r.targets[c.page]
		if !r.visible(c.client, t) {
			r.end(c, ReasonNoTarget)
			return
		}
		q := r.attach(s, t.id, (*Router).pageAttached)
		q.opens = c
		r.awaited(q)
	}
}

func (r *Router) pageAttached(q *request, m *Message, env *Envelope) {
	c := q.opens
	if c.state == connEnded || !r.up {
		return
	}
	s := r.sessions[resultIDs(m, env).SessionID]
	if s == nil {
		r.end(c, ReasonNoTarget)
		return
	}
	r.opened(c, s)
}

// opened lets the connection's commands through, those held first.
func (r *Router) opened(c *conn, base *session) {
	c.base, c.state = base, connOpen
	base.carrier = base
	r.out = append(r.out, Action{Kind: Opened, Conn: c.id})
	r.resume(c)
	hs := c.held
	c.held = nil
	for i := range hs {
		if c.state == connOpen { // one of them may end it
			r.came = hs[i].at
			r.command(c, c.base, hs[i].msg, &hs[i].env)
		}
	}
	r.came = r.now
}

// Disconnect says that the socket is gone, in whatever way. The connection's
// sessions end in Chrome at once; the client's tabs and contexts stay for its
// grace after the last connection. Ids that are gone already are ignored.
func (r *Router) Disconnect(now time.Time, id ConnID, out []Action) []Action {
	r.begin(now, out)
	if c := r.conns[id]; c != nil {
		r.end(c, 0)
	}
	return r.out
}

// end forgets a connection: its requests die with it, its root is detached in
// Chrome, and the client may leave with its last one. A reason other than 0 also
// closes the socket.
func (r *Router) end(c *conn, reason Reason) {
	if c.state == connEnded {
		return
	}
	if reason != 0 {
		r.refuseHeld(c, textClosed)
	}
	left := r.leftBy(c)
	c.state, c.held, c.discovering = connEnded, nil, nil
	delete(r.conns, c.id)
	cl := c.client
	cl.conns = slices.DeleteFunc(cl.conns, func(o *conn) bool { return o == c })
	if reason != 0 {
		r.out = append(r.out, Action{Kind: Close, Conn: c.id, Reason: reason})
	}
	for _, q := range r.requests {
		if q.conn == c {
			q.conn = nil
		}
	}
	if c.root != nil && r.up {
		r.removeSession(c.root)
		r.detach(nil, c.root.id, nil)
	}
	for _, t := range r.owned(cl) {
		t.left = r.now
		if !t.attachedTo(cl) {
			r.dismiss(t)
		}
	}
	for _, t := range left {
		r.linger(t)
	}
	r.updateHub()
	r.vacate(cl)
}

// refuseHeld answers what a connection sent before it was open.
func (r *Router) refuseHeld(c *conn, why string) {
	for _, h := range c.held {
		r.refuse(c, h.env.ID, codeServer, why)
	}
	c.held = nil
}

// vacate ends or forgets a client that has no connection. One that had a root
// leaves after its grace. One that only HTTP and page sockets know stays as
// long as it has a tab.
func (r *Router) vacate(cl *client) {
	if cl.gone || cl.id == "" || len(cl.conns) > 0 || !cl.until.IsZero() {
		return
	}
	has := len(r.owned(cl)) > 0 || slices.ContainsFunc(r.creating, func(q *request) bool { return q.client == cl })
	switch {
	case !has && (!cl.rooted || len(cl.contexts) == 0), cl.rooted && cl.grace == 0:
		r.leave(cl)
	case cl.rooted:
		r.stay(cl, cl.grace)
	}
}

// stay keeps what a client has, who may come back, for d.
func (r *Router) stay(cl *client, d time.Duration) {
	until := r.now.Add(d)
	cl.until = until
	r.after(d, func() {
		if cl.until.Equal(until) && !cl.gone {
			r.leave(cl)
		}
	})
}

// leave forgets a client and closes all that is its own.
func (r *Router) leave(cl *client) {
	cl.gone = true
	delete(r.clients, cl.id)
	r.regrant(&cl.perms)
	for _, t := range r.targets {
		t.viewers = slices.DeleteFunc(t.viewers, func(v *client) bool { return v == cl })
	}
	for _, t := range r.owned(cl) {
		r.closeTarget(t)
	}
	for _, id := range cl.contexts {
		r.ask(nil, cdptarget.CommandDisposeBrowserContext, cdptarget.DisposeBrowserContextParams{BrowserContextID: contextID(id)}, ignore)
	}
	cl.contexts = nil
}
