package routing

import (
	"slices"
	"time"
)

// due is what is to be done with a target at a time, if it is still there.
type due struct {
	at     time.Time
	target *target
	do     func(*Router, *target)
}

// remind has something done with a target after d.
func (r *Router) remind(d time.Duration, t *target, do func(*Router, *target)) {
	at := r.now.Add(d)
	i := len(r.dues)
	for i > 0 && r.dues[i-1].at.After(at) {
		i--
	}
	r.dues = slices.Insert(r.dues, i, due{at, t, do})
}

// Next is when Tick is to be called; zero when nothing is due.
func (r *Router) Next() time.Time {
	if len(r.dues) == 0 {
		return time.Time{}
	}
	return r.dues[0].at
}

// Tick does what is due by now.
func (r *Router) Tick(now time.Time, out []Action) []Action {
	r.begin(now, out)
	for len(r.dues) > 0 && !r.dues[0].at.After(now) {
		d := r.dues[0]
		r.dues = slices.Delete(r.dues, 0, 1)
		if r.targets[d.target.id] == d.target {
			d.do(r, d.target)
		}
	}
	return r.out
}
