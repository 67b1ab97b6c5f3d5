package routing

import (
	"bytes"
	"slices"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/systeminfo"
	cdptarget "github.com/chromedp/cdproto/target"
)

// limit is how long a request may stay unanswered. Requests of one limit stand
// in one queue, so that the first is always the next to expire.
type limit uint8

const (
	limitLong    limit = iota // whatever a page does: Config.RequestTimeout
	limitTarget               // Target.* and the proxy's own
	limitRead                 // what Chrome answers from memory
	limitCrashed              // what a renderer that is gone will not answer
	limitPicture              // what a hidden tab will not answer
	limits
)

// times are the durations of the limits that are not configured.
var times = [limits]time.Duration{limitTarget: 5 * time.Second, limitRead: 2500 * time.Millisecond, limitCrashed: 500 * time.Millisecond, limitPicture: 5 * time.Second}

// deadlines are the open requests by limit, soonest first; a limit of 0 has none.
type deadlines struct {
	times  [limits]time.Duration
	queues [limits]struct{ first, last *request }
}

// put enters a request.
func (d *deadlines) put(q *request, l limit, now time.Time) {
	if d.times[l] == 0 || !q.due.IsZero() {
		return
	}
	q.limit, q.due = l, now.Add(d.times[l])
	queue := &d.queues[l]
	if q.earlier = queue.last; q.earlier != nil {
		q.earlier.later = q
	} else {
		queue.first = q
	}
	queue.last = q
}

// drop takes a request out, if it is in.
func (d *deadlines) drop(q *request) {
	if q.due.IsZero() {
		return
	}
	queue := &d.queues[q.limit]
	if q.earlier != nil {
		q.earlier.later = q.later
	} else {
		queue.first = q.later
	}
	if q.later != nil {
		q.later.earlier = q.earlier
	} else {
		queue.last = q.earlier
	}
	q.earlier, q.later, q.due = nil, nil, time.Time{}
}

func (d *deadlines) next() (next time.Time) {
	for i := range d.queues {
		if q := d.queues[i].first; q != nil && (next.IsZero() || q.due.Before(next)) {
			next = q.due
		}
	}
	return next
}

// reads are what a root answers at once.
var reads = map[string]bool{
	browser.CommandGetVersion: true, browser.CommandGetBrowserCommandLine: true,
	browser.CommandGetWindowForTarget: true, browser.CommandGetWindowBounds: true,
	cdptarget.CommandGetTargets: true, cdptarget.CommandGetTargetInfo: true, cdptarget.CommandGetBrowserContexts: true,
	storage.CommandGetCookies: true, systeminfo.CommandGetInfo: true,
}

// limitOf is how long a client's command may take.
func limitOf(s *session, method []byte) limit {
	switch {
	case s.root && reads[string(method)]:
		return limitRead
	case bytes.HasPrefix(method, targetDomain):
		return limitTarget
	case s.target != nil && s.target.crashed:
		return limitCrashed
	}
	return limitLong
}

// awaited gives a request of the proxy's own a limit: a client waits for what
// comes of it.
func (r *Router) awaited(q *request) *request {
	r.deadlines.put(q, limitTarget, r.now)
	return q
}

// expire answers what is overdue. Whether Chrome carried it out is not known:
// a client must not take it for a no. What Chrome makes of it later is undone.
func (r *Router) expire() {
	for l := range limits {
		for q := r.deadlines.queues[l].first; q != nil && !q.due.After(r.now); q = r.deadlines.queues[l].first {
			text := "No answer from the browser within " + r.deadlines.times[l].String() + "; whether it was carried out is unknown"
			switch l {
			case limitCrashed:
				text = textCrashed
			case limitPicture:
				text = textNoPicture
			}
			r.giveUp(q, text)
		}
	}
}

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
		if q.token != 0 {
			r.out = append(r.out, Action{Kind: Answer, Token: q.token, Result: Result{Err: text}})
		}
		q.conn, q.token, q.late = nil, 0, true
	case q.conn == nil && q.batch != nil:
		b := q.batch
		q.batch = nil
		r.settle(b)
	default:
		r.fail(q, codeServer, text)
	}
}
