package lifecycle

import "time"

// Picture is what the idle sweep looks at: what could need the browser.
type Picture struct {
	Clients   int  // connected
	InGrace   int  // gone, and their tabs wait for them
	Requests  int  // in flight
	Downloads int  // running, or not moved to their place yet
	Starting  bool // a start is under way
	Holds     Holds
	Active    time.Time // the last activity: a client's message, or a human's doing
}

// Idle reports whether the browser is to be stopped, limit after its last use;
// a limit of 0 is never. If not, busy is the reason, in the words of status.
func (p Picture) Idle(now time.Time, limit time.Duration) (idle bool, busy string) {
	switch {
	case limit <= 0:
		return false, "kept for ever"
	case p.Starting:
		return false, "starting"
	case p.Clients > 0:
		return false, "clients are connected"
	case p.InGrace > 0:
		return false, "tabs wait for their client"
	case p.Requests > 0:
		return false, "requests are in flight"
	case p.Downloads > 0:
		return false, "downloads are running"
	case p.Holds.Any(now):
		return false, "held"
	case now.Sub(p.Active) < limit:
		return false, "used lately"
	}
	return true, ""
}

// Holds keep a browser up while their time lasts, by the name of who asked.
type Holds map[string]time.Time // name → when it ends

// Hold sets or renews the hold of name; a ttl of 0 or less ends it.
func (h Holds) Hold(name string, now time.Time, ttl time.Duration) {
	if ttl <= 0 {
		delete(h, name)
		return
	}
	h[name] = now.Add(ttl)
}

// Any drops the holds that have ended and reports whether one is left.
func (h Holds) Any(now time.Time) bool {
	for name, end := range h {
		if !now.Before(end) {
			delete(h, name)
		}
	}
	return len(h) > 0
}
