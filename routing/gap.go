package routing

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// A gap is the time between the end of one upstream connection and the next.
// Clients stay connected through it: they hear that each of their sessions
// ended, and what they asked of their root holds for the next. Tabs are known
// again by target id; a tab that is not there any more is destroyed.

// gapWait is how long a command may wait for the browser to come back.
const gapWait = time.Second

// intent is what a client asked of its root.
type intent struct {
	discover filter
	auto     *auto
	base     *session // what it spoke to then
}

// kept is what is known of a tab while the browser is away.
type kept struct {
	client  *client
	tab     string // its tab target
	kind    string
	used    uint64
	visited bool
	place   place
}

// BrowserGone says that the upstream connection ended and that the browser is
// being sought again. What is open is answered with an error.
func (r *Router) BrowserGone(now time.Time, why string, out []Action) []Action {
	r.begin(now, out)
	r.lose(why)
	for _, c := range r.connsInOrder() {
		switch {
		case c.state == connOpening:
			c.root = nil
		case c.page != "":
			r.end(c, ReasonBrowserLost)
		default:
			r.suspend(c)
		}
	}
	r.forget()
	return r.out
}

// StillGone says that an attempt to get the browser back was in vain and that
// others follow. Clients that came since the browser went are closed: nobody
// can say for how long their commands would be held.
func (r *Router) StillGone(now time.Time, why string, out []Action) []Action {
	r.begin(now, out)
	r.why = why
	for _, c := range r.connsInOrder() {
		if c.state == connOpening && c.intent == nil {
			r.refuseHeld(c, why)
			r.end(c, ReasonStartFailed)
		}
	}
	return r.out
}

// lose answers what is open and remembers whose the tabs are.
func (r *Router) lose(why string) {
	r.up, r.why = false, why
	r.abandonDownloads()
	for _, q := range r.inOrder() {
		r.fail(q, codeServer, why)
	}
	for _, t := range r.targets { // replies that wait for the hub
		if t.hubBatch != nil {
			t.hubBatch.body = errorBody(codeServer, why)
			r.hubIsDone(t)
		}
	}
	for _, t := range r.byUse() {
		if b := t.hubBatch; b != nil { // the hub will not reach it any more
			t.hubBatch = nil
			r.settle(b)
		}
		if t.owner != nil && t.isTab() {
			m := kept{client: t.owner, kind: t.info.Type, used: t.used, visited: t.visited, place: r.placeOf(t)}
			if t.tab != nil {
				m.tab = t.tab.id
			}
			r.remembered[t.id] = m
		}
	}
}

// suspend tells a connection that its sessions ended, and lets it wait for the
// next root.
func (r *Router) suspend(c *conn) {
	r.tellDetached(c.base)
	c.intent = &intent{discover: c.base.discover, auto: c.base.auto, base: c.base}
	c.base, c.root, c.sessions, c.discovering = nil, nil, nil, nil
	c.state = connOpening
	until := r.now.Add(gapWait)
	c.gapEnds = until
	r.after(gapWait, func() {
		if c.state == connOpening && c.gapEnds.Equal(until) {
			r.refuseHeld(c, r.why)
		}
	})
}

// tellDetached says of each session below s that it ended, the lowest first.
func (r *Router) tellDetached(s *session) {
	for _, ch := range s.children {
		r.tellDetached(ch)
		r.emit(s, `"method":"`+eventDetached+`","params":{"sessionId":"`, ch.id, `","targetId":"`, ch.targetID, `"}`)
	}
}

// holdOrRefuse takes a command of a connection without a root.
func (r *Router) holdOrRefuse(c *conn, m *Message, env *Envelope) {
	switch {
	case c.intent == nil:
		c.held = append(c.held, held{m, *env, r.now})
	case env.Session != nil: // of before the gap
		r.refuse(c, env.ID, codeSession, textNoSession)
	case r.now.Before(c.gapEnds):
		c.held = append(c.held, held{m, *env, r.now})
	default:
		r.refuse(c, env.ID, codeServer, r.why)
	}
}

// resume gives a connection's next root what it asked of the last one.
func (r *Router) resume(c *conn) {
	in := c.intent
	if in == nil {
		if c.page == "" { // it knows of nothing that went or came
			c.client.lost, c.client.found = nil, nil
		}
		return
	}
	c.intent = nil
	s := c.base
	s.downloadsOn = in.base.downloadsOn
	for context, set := range c.client.downloads {
		if set.by == in.base {
			set.by = s
			c.client.downloads[context] = set
		}
	}
	if s.discover = in.discover; s.discover != nil {
		c.discovering = append(c.discovering, s)
		for _, id := range slices.Sorted(maps.Keys(c.client.lost)) {
			if s.discover.allows(c.client.lost[id]) {
				r.emit(s, `"method":"`+eventTargetDestroyed+`","params":{"targetId":"`, id, `"}`)
			}
		}
		for _, t := range c.client.found {
			if s.discover.allows(t.info.Type) {
				r.emit(s, createdEvent(t, c.client)...)
			}
		}
	}
	c.client.lost, c.client.found = nil, nil
	if s.auto = in.auto; s.auto != nil {
		r.updateHub()
		for _, t := range r.byUse() {
			if slices.Contains(r.audience(t), c.client) {
				r.autoAttachOn(s, t, nil)
			}
		}
	}
}

// recognise gives the targets that were there before the gap to their owners.
func (r *Router) recognise() {
	for id, m := range r.remembered {
		t := r.targets[id]
		switch {
		case t == nil && !m.client.gone:
			if m.client.lost == nil {
				m.client.lost = map[string]string{}
			}
			m.client.lost[id] = m.kind
		case t == nil:
		default:
			t.owner, t.used, t.visited = m.client, m.used, m.visited
			if tab := r.targets[m.tab]; tab != nil {
				tab.owner, tab.page, t.tab = m.client, t, tab
			}
			if m.client.gone {
				r.closeTarget(t)
			} else {
				r.watch(t)
				r.linger(t)
			}
		}
	}
	r.expectOrphans()
	r.remembered = map[string]kept{}
	for again := true; again; { // what came of them
		again = false
		for _, t := range r.targets {
			from := r.targets[cmp.Or(t.info.OpenerID, t.info.ParentID)]
			if t.owner == nil && from != nil && from.owner != nil && !t.info.isWorker() {
				r.own(t, from.owner)
				from.owner.found = append(from.owner.found, t)
				again = true
			}
		}
	}
	for _, cl := range r.clients {
		if len(cl.conns) == 0 {
			cl.lost, cl.found = nil, nil
		}
		r.vacate(cl)
	}
	r.grantAll()
}

// connsInOrder lists the connections as they came.
func (r *Router) connsInOrder() []*conn {
	return slices.SortedFunc(maps.Values(r.conns), func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
}

// byUse lists the targets, oldest use first.
func (r *Router) byUse() []*target { return slices.SortedFunc(maps.Values(r.targets), byUse) }

// TabState is what is worth keeping of a tab beyond the proxy's own life.
type TabState struct {
	ID     string    `json:"id"`
	Client string    `json:"client"`
	Tab    string    `json:"tab,omitempty"`
	URL    string    `json:"url"`
	Nth    int       `json:"nth,omitempty"`  // that many older pages showed the same
	Used   uint64    `json:"used"`           // larger is later
	Until  time.Time `json:"until,omitzero"` // end of the client's grace
	// Anonymous: nobody can come back for it.
	Anonymous bool `json:"anonymous,omitempty"`
}

// Tabs lists whose the tabs are, most recently used last.
func (r *Router) Tabs() []TabState {
	var states []TabState
	add := func(id string, m kept) {
		if !m.client.gone {
			states = append(states, TabState{
				ID: id, Client: m.client.id, Tab: m.tab, URL: m.place.url, Nth: m.place.nth, Used: m.used,
				Until: m.client.until, Anonymous: m.client.rooted && m.client.grace == 0,
			})
		}
	}
	for id, m := range r.remembered {
		add(id, m)
	}
	for id, t := range r.targets {
		if t.owner != nil && t.isTab() && !t.closing {
			m := kept{client: t.owner, used: t.used, place: r.placeOf(t)}
			if t.tab != nil {
				m.tab = t.tab.id
			}
			add(id, m)
		}
	}
	slices.SortFunc(states, func(a, b TabState) int { return cmp.Compare(a.Used, b.Used) })
	return states
}

// Restore takes in what [Router.Tabs] said before the proxy began anew; the
// clients have grace, or what was left of it, to come back.
func (r *Router) Restore(now time.Time, states []TabState, grace time.Duration) {
	r.begin(now, nil)
	for _, s := range states {
		cl := r.client(s.Client)
		if s.Client != "" && cl.until.IsZero() {
			cl.rooted, cl.grace = true, grace
			left := grace
			switch {
			case s.Anonymous:
				left = 0
			case !s.Until.IsZero():
				left = min(grace, s.Until.Sub(now))
			}
			r.stay(cl, max(left, 0))
		}
		r.lastUse = max(r.lastUse, s.Used)
		r.remembered[s.ID] = kept{client: cl, tab: s.Tab, kind: typePage, used: s.Used, visited: true, place: place{s.URL, s.Nth}}
	}
}
