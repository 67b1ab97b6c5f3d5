package routing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chromedp/cdproto/browser"
	cdptarget "github.com/chromedp/cdproto/target"
)

// Router holds every table: who is connected, which targets and sessions
// there are and whose they are, and what is still to be answered.
//
// It is not safe for concurrent use. Each entry point appends Actions to out
// and returns it; the caller carries them out in order. A Message given to the
// Router is the Router's.
type Router struct {
	// static after New
	windows     WindowPolicy
	clearing    bool
	tabCap      int
	rejectTabs  bool
	socketGrace time.Duration
	keepLast    bool
	staging     string
	openSchemes []string
	rules       *Rules
	audit       bool

	// the browser
	up             bool            // between BrowserReady and BrowserLost
	ending         bool            // it is being ended: who comes waits for the next one
	started        bool            // it was started for this connection: what is in it was restored
	settling       bool            // its targets of before are still being announced
	why            string          // there is no browser
	remembered     map[string]kept // tabs of before the gap, by target id
	orphans        orphans
	version        Version // as Browser.getVersion answered
	defaultContext string  // id of the context that everybody shares

	// the tables
	conns    map[ConnID]*conn
	clients  map[string]*client  // by client id; "" is the HTTP owner
	sessions map[string]*session // by session id, our own too
	targets  map[string]*target  // by target id, everybody's
	requests map[int32]*request  // by upstream id
	creating []*request          // the createTargets among them, as sent

	caps map[string]int // tabs that a client id may have, where it is not tabCap

	hub       hub
	deadlines deadlines
	dues      []due                // what waits for a time, soonest first
	downloads map[string]*download // under way, by guid
	origins   map[string]*target   // where the eye saw a download begin, by guid
	clicks    []click              // not yet seen to open a tab, oldest first

	front *window // the normal window that was created last in the foreground

	active   time.Time // when the browser was used last
	lastConn ConnID
	lastID   int32
	lastUse  uint64
	lastTab  *target  // the tab target announced last, until its page comes
	spare    *request // request structs to use again
	totals   Totals

	// of the entry point at work
	now    time.Time
	came   time.Time // the command at work: before now if it was held
	limit  limit     // of the command at work
	denied string    // why it was refused, for the audit
	out    []Action
}

// begin opens an entry point.
func (r *Router) begin(now time.Time, out []Action) { r.now, r.came, r.out = now, now, out }

// Config is what a Router is told once.
type Config struct {
	Windows        WindowPolicy
	AllowClearing  bool          // let a client wipe cookies that all share
	RequestTimeout time.Duration // a request that Chrome does not answer fails after this; 0: never
	TabCap         int           // tabs a client may have; 0: any number
	RejectTabs     bool          // refuse a tab too many, instead of closing the one used least recently
	KeepLastPage   bool          // the browser ends with its last page, so an empty one takes its place
	Staging        string        // where Chrome puts downloads; "": they are left to Chrome
	AllowSchemes   []string      // of Schemes, those whose addresses clients may load
	Rules          *Rules        // the operator's; nil: none
	Audit          bool          // say of each command what became of it
	SocketGrace    time.Duration // tabs that HTTP made stay so long after their last page socket, or without any
	FirstID        int32         // that the browser hears, at least 1e9: one that outlives this Router and still answers it must not meet the same id in the next
}

// New returns a Router whose browser is down.
func New(cfg Config) *Router {
	r := &Router{windows: cfg.Windows, clearing: cfg.AllowClearing, conns: map[ConnID]*conn{}, clients: map[string]*client{"": {}}, remembered: map[string]kept{}, caps: map[string]int{}, lastID: max(firstID, cfg.FirstID) - 1, tabCap: cfg.TabCap, rejectTabs: cfg.RejectTabs, socketGrace: cfg.SocketGrace, staging: cfg.Staging, keepLast: cfg.KeepLastPage, openSchemes: cfg.AllowSchemes, rules: cfg.Rules, audit: cfg.Audit}
	r.deadlines.times = times
	r.deadlines.times[limitLong] = cfg.RequestTimeout
	r.forget()
	return r
}

// forget empties what belongs to one upstream connection.
func (r *Router) forget() {
	r.sessions = map[string]*session{}
	r.targets = map[string]*target{}
	r.requests = map[int32]*request{}
	r.hub, r.clicks = hub{}, nil
	r.downloads, r.origins = map[string]*download{}, map[string]*target{}
	r.creating, r.front, r.lastTab = nil, nil, nil
	r.version, r.defaultContext, r.ending = Version{}, "", false
}

// BrowserReady says that the upstream WebSocket is up. The proxy's own root
// discovers every target from here on, and each waiting connection gets a
// root of its own. started: the browser was started for this, so that tabs of
// before are in it only where Chrome restored them.
func (r *Router) BrowserReady(now time.Time, started bool, out []Action) []Action {
	r.begin(now, out)
	r.up, r.settling, r.started = true, true, started
	r.ask(nil, cdptarget.CommandSetDiscoverTargets, cdptarget.SetDiscoverTargetsParams{
		Discover: true, Filter: cdptarget.Filter{{}},
	}, (*Router).settled)
	r.pin("")
	r.ask(nil, cdptarget.CommandGetBrowserContexts, nil, (*Router).contextsKnown)
	r.ask(nil, browser.CommandGetVersion, nil, (*Router).versionKnown)
	r.ask(nil, cdptarget.CommandAttachToBrowserTarget, nil, (*Router).hubAttached)
	for _, c := range r.connsInOrder() {
		r.openRoot(c)
	}
	return r.out
}

func (r *Router) settled(*request, *Message, *Envelope) {
	r.settling = false
	if r.up {
		r.recognise()
	}
}

// BrowserLost says that there is no browser to be had (ReasonStartFailed) or
// none any more (ReasonBrowserLost), and why. Whatever is open is answered with
// an error and every connection is closed.
func (r *Router) BrowserLost(now time.Time, reason Reason, why string, out []Action) []Action {
	r.begin(now, out)
	r.lose(why)
	for _, c := range r.connsInOrder() {
		r.refuseHeld(c, why)
		r.end(c, reason)
	}
	r.forget()
	return r.out
}

// CloseAll is the beginning of the browser's end, or of the proxy's own: what
// clients wait for is answered with an error, their connections are closed, and
// all that is theirs is closed in Chrome. [Router.Idle] says when that is done.
func (r *Router) CloseAll(now time.Time, why string, reason Reason, out []Action) []Action {
	r.begin(now, out)
	r.ending = true
	r.closeConns(why, reason)
	for _, id := range slices.Sorted(maps.Keys(r.clients)) {
		r.leave(r.clients[id])
	}
	r.clients[""] = &client{} // whoever uses HTTP without a name comes back
	return r.out
}

// DetachAll is the end of a proxy that another one follows, on the same
// browser: what clients wait for is answered with an error and their
// connections are closed, but their tabs stay. [Router.Settled] says when the
// browser has taken that in.
func (r *Router) DetachAll(now time.Time, why string, out []Action) []Action {
	r.begin(now, out)
	r.closeConns(why, ReasonShutdown)
	return r.out
}

// closeConns answers what clients wait for and closes their connections.
func (r *Router) closeConns(why string, reason Reason) {
	for _, q := range r.inOrder() {
		if q.conn != nil {
			r.reply(q.session, q.clientID, errorBody(codeServer, why))
			q.conn = nil // a tab that is being made still has to be closed
		}
	}
	for _, c := range r.connsInOrder() {
		r.refuseHeld(c, why)
		r.end(c, reason)
	}
}

// Idle reports whether nothing is owned and nothing is open.
func (r *Router) Idle() bool {
	for _, t := range r.targets {
		if t.owner != nil {
			return false
		}
	}
	return len(r.requests) == 0
}

// Settled reports whether the browser owes no answer.
func (r *Router) Settled() bool { return len(r.requests) == 0 }

// inOrder lists the open requests as they were sent.
func (r *Router) inOrder() []*request {
	return slices.SortedFunc(maps.Values(r.requests), func(a, b *request) int { return cmp.Compare(a.seq, b.seq) })
}

// Stats counts the tables.
type Stats struct {
	Conns, Clients, Targets, Sessions, Requests, Held, Downloads int
}

// Stats counts what there is now. Targets are everybody's, nobody's too.
func (r *Router) Stats() Stats {
	s := Stats{
		Conns: len(r.conns), Clients: r.LiveClients(), Targets: len(r.targets),
		Sessions: len(r.sessions), Requests: len(r.requests), Downloads: len(r.downloads),
	}
	for _, c := range r.conns {
		s.Held += len(c.held)
	}
	return s
}

// Check verifies that the tables agree with one another.
func (r *Router) Check() error {
	for id, c := range r.conns {
		if c.id != id || c.state == connEnded {
			return fmt.Errorf("conn %d: in the table as %d, state %d", c.id, id, c.state)
		}
		if r.clients[c.client.id] != c.client || !slices.Contains(c.client.conns, c) {
			return fmt.Errorf("conn %d: not a connection of its client %q", id, c.client.id)
		}
	}
	for id, s := range r.sessions {
		switch {
		case s.id != id:
			return fmt.Errorf("session %s: in the table as %s", s.id, id)
		case s.conn != nil && r.conns[s.conn.id] != s.conn:
			return fmt.Errorf("session %s: of connection %d, which is gone", id, s.conn.id)
		case s.parent != nil && (r.sessions[s.parent.id] != s.parent || !slices.Contains(s.parent.children, s)):
			return fmt.Errorf("session %s: not a child of its parent %s", id, s.parent.id)
		case s.target != nil && !slices.Contains(s.target.sessions, s):
			return fmt.Errorf("session %s: not a session of its target %s", id, s.target.id)
		}
		for _, ch := range s.children {
			if ch.parent != s || r.sessions[ch.id] != ch {
				return fmt.Errorf("session %s: child %s is gone", id, ch.id)
			}
		}
	}
	for id, t := range r.targets {
		switch {
		case t.id != id:
			return fmt.Errorf("target %s: in the table as %s", t.id, id)
		case t.owner != nil && !t.owner.gone && r.clients[t.owner.id] != t.owner:
			return fmt.Errorf("target %s: of client %q, which is gone", id, t.owner.id)
		case t.tab != nil && (t.tab.page != t || t.tab.owner != t.owner):
			return fmt.Errorf("target %s: its tab %s is not of one mind", id, t.tab.id)
		}
		for _, s := range t.sessions {
			if s.target != t || r.sessions[s.id] != s {
				return fmt.Errorf("target %s: session %s is gone", id, s.id)
			}
		}
	}
	for id, q := range r.requests {
		if q.id != id {
			return fmt.Errorf("request %d: in the table as %d", q.id, id)
		}
		if q.conn != nil && r.conns[q.conn.id] != q.conn {
			return fmt.Errorf("request %d: of connection %d, which is gone", id, q.conn.id)
		}
		if q.via != nil && r.sessions[q.via.id] != q.via {
			return fmt.Errorf("request %d: on session %s, which is gone", id, q.via.id)
		}
	}
	return nil
}
