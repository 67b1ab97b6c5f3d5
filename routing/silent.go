package routing

import (
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
