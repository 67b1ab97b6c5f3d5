package proxy

import "time"

// redial is the search for a browser that was lost: one attempt at once, the
// further ones after pauses that grow. Whoever needs a browser in a pause does
// not wait for its end but makes an attempt of its own, which is not counted.
// Guarded by Server.mu.
type redial struct {
	on    bool
	count int         // attempts that were in vain
	timer *time.Timer // the end of the pause
	armed bool
}

func (r *redial) begin() {
	r.end()
	r.on = true
}

func (r *redial) end() {
	r.on, r.count, r.armed = false, 0, false
	r.timer.Stop()
}

// failed notes an attempt in vain and returns for how long to pause; more is
// false when it was the last one.
func (r *redial) failed(l *limits) (wait time.Duration, more bool) {
	if r.armed { // somebody else's: the pause goes on
		return 0, true
	}
	if r.count++; r.count >= l.redials {
		r.end()
		return 0, false
	}
	wait = min(l.redialWait<<(r.count-1), l.redialMax)
	r.armed = true
	r.timer.Reset(wait)
	return wait, true
}

// redialNow is the end of a pause.
func (s *Server) redialNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redial.armed && !s.closing {
		s.redial.armed = false
		s.wake()
	}
}
