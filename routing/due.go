package routing

import (
	"slices"
	"time"
)

// due is what is to be done at a time.
type due struct {
	at time.Time
	do func()
}

// after has something done once d has passed.
func (r *Router) after(d time.Duration, do func()) {
	at := r.now.Add(d)
	i := len(r.dues)
	for i > 0 && r.dues[i-1].at.After(at) {
		i--
	}
	r.dues = slices.Insert(r.dues, i, due{at, do})
}

// remind has something done with a target after d, if it is still there.
func (r *Router) remind(d time.Duration, t *target, do func(*Router, *target)) {
	r.after(d, func() {
		if r.targets[t.id] == t {
			do(r, t)
		}
	})
}

// Next is when Tick is to be called; zero when nothing is due.
func (r *Router) Next() time.Time {
	next := r.deadlines.next()
	if len(r.dues) > 0 && (next.IsZero() || r.dues[0].at.Before(next)) {
		next = r.dues[0].at
	}
	return next
}

// Tick does what is due by now.
func (r *Router) Tick(now time.Time, out []Action) []Action {
	r.begin(now, out)
	for len(r.dues) > 0 && !r.dues[0].at.After(now) {
		do := r.dues[0].do
		r.dues = slices.Delete(r.dues, 0, 1)
		do()
	}
	r.expire()
	return r.out
}
