package proxy

import "time"

// silence is for how long the browser has said nothing although something is
// open. A page that is slow is no such thing: the browser itself still answers
// a probe. Guarded by Server.mu.
type silence struct {
	since  time.Time
	probes int // sent since
}

// look is called every limits.probe for the browser's connection.
func (s *Server) look(up *upstream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up != up {
		return
	}
	up.watch.Reset(s.limits.probe)
	now := time.Now()
	q := &up.silence
	if s.router.Settled() {
		*q = silence{since: now}
		return
	}
	if last := up.Heard(); last.After(q.since) {
		*q = silence{since: last}
	}
	quiet := now.Sub(q.since)
	switch {
	case quiet < s.limits.probe:
	case q.probes < 2:
		q.probes++
		s.apply(s.router.Probe(now, s.actions))
	case quiet >= s.limits.dead:
		s.log.Error().Dur("ms", quiet).Msg("browser says nothing: dropping its connection")
		up.Close() // its reader does the rest
	case quiet >= s.limits.silent:
		s.log.Warn().Dur("ms", quiet).Msg("browser says nothing: giving up what is open")
		s.apply(s.router.Silent(now, errSilent.Error(), s.actions))
	}
}
