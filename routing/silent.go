package routing

import (
	"slices"
	"time"

	"github.com/chromedp/cdproto/browser"
)

// Probe asks the browser something that it answers from memory.
func (r *Router) Probe(now time.Time, out []Action) []Action {
	r.begin(now, out)
	if r.up {
		r.ask(nil, browser.CommandGetVersion, nil, ignore)
	}
	return r.out
}

// Silent says that the browser is connected and says nothing, not even to
// probes: what clients wait for is answered with an error. Whether it was
// carried out is not known; what comes of it later is undone.
func (r *Router) Silent(now time.Time, why string, out []Action) []Action {
	r.begin(now, out)
	var ids []int32
	for _, q := range r.inOrder() {
		ids = append(ids, q.id)
	}
	for _, id := range ids {
		if q := r.requests[id]; q != nil && (q.conn != nil || q.token != 0 || q.batch != nil) {
			r.giveUp(q, why)
		}
	}
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

// DetachAll is the end of a proxy that another one follows, on the same
// browser: what clients wait for is answered with an error and their
// connections are closed, but their tabs stay. [Router.Settled] says when the
// browser has taken that in.
func (r *Router) DetachAll(now time.Time, why string, out []Action) []Action {
	r.begin(now, out)
	r.closeConns(why)
	return r.out
}

// closeConns answers what clients wait for and closes their connections.
func (r *Router) closeConns(why string) {
	for _, q := range r.inOrder() {
		if q.conn != nil {
			r.reply(q.session, q.clientID, errorBody(codeServer, why))
			q.conn = nil // a tab that is being made still has to be closed
		}
	}
	for _, c := range r.connsInOrder() {
		r.refuseHeld(c, why)
		r.end(c, ReasonShutdown)
	}
}

// Settled reports whether the browser owes no answer.
func (r *Router) Settled() bool { return len(r.requests) == 0 }

// giveUp answers a request of which it is not known whether it was carried out.
func (r *Router) giveUp(q *request, text string) {
	r.deadlines.drop(q)
	switch {
	case q.opens != nil: // its root is detached when it comes
		r.refuseHeld(q.opens, text)
		r.end(q.opens, ReasonBrowserLost)
	case q.makes || slices.Contains(r.creating, q):
		if q.conn != nil {
			r.reply(q.session, q.clientID, errorBody(codeServer, text))
		}
		q.conn, q.late = nil, true
	case q.conn == nil && q.batch != nil:
		b := q.batch
		q.batch = nil
		r.settle(b)
	default:
		r.fail(q, codeServer, text)
	}
}
