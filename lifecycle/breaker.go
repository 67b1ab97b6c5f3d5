package lifecycle

import (
	"slices"
	"time"
)

// Breaker refuses the relaunches of a browser that does not stay up, so that
// one sick store never becomes a storm on its machine. It decides; it has no
// clock and no file. The zero value with a Policy is a breaker that is closed.
//
// A relaunch is a start that follows an end which nobody asked for. So many
// are allowed in a window; then the breaker is open, and lets one trial
// through for each window, until the browser was connected for HealthyAfter
// without a break. Nothing else closes it: not a served client, not a stop,
// and not a new proxy, because the state is kept (BreakerFile).
type Breaker struct {
	Policy BreakerPolicy `json:"-"`

	Relaunches []time.Time `json:"relaunches,omitempty"` // counted ones, the oldest first
	Open       bool        `json:"open,omitempty"`       // only trials pass
	Last       End         `json:"last,omitempty"`       // the end that the next start follows
	Why        string      `json:"why,omitempty"`        // what was said of that end

	connected time.Time // since when the browser is connected; zero: it is not
}

// BreakerPolicy is the budget. With a zero in it there is no limit.
type BreakerPolicy struct {
	Max    int           // relaunches
	Window time.Duration // within this
}

// HealthyAfter is how long a browser must have been connected without a break
// to count as well again.
const HealthyAfter = time.Minute

// End is how a browser came to its end.
type End string

// What ended a browser. Only the ends that somebody wanted, and that of proxy
// and keeper together, leave the next start uncounted.
const (
	EndNone   End = ""       // never started, or stopped as somebody wanted
	EndCrash  End = "crash"  // its main process ended by itself
	EndKeeper End = "keeper" // its keeper was lost
	EndForced End = "forced" // it ran but was never reached again, and was ended
	EndFailed End = "failed" // it did not start
)

// Verdict is what Allow says.
type Verdict struct {
	OK    bool
	Count int       // which relaunch this is; 0: none
	Trial bool      // it is the one trial of an open breaker
	Next  time.Time // when the next trial is let through, with OK false
}

// Ended notes how the browser ended. why is for the operator.
func (b *Breaker) Ended(now time.Time, end End, why string) {
	b.Lost(now)
	b.Last, b.Why = end, why
	if b.forget(now); end != EndNone && b.Policy.Max > 0 && len(b.Relaunches) >= b.Policy.Max {
		b.Open = true // the budget is used up, in vain
	}
}

// Allow decides on a start now, and counts it when it is a relaunch. One end
// makes one start a relaunch, and no later one.
func (b *Breaker) Allow(now time.Time) Verdict {
	if b.Policy.Max <= 0 || b.Policy.Window <= 0 {
		b.Relaunches, b.Open = nil, false
		return Verdict{OK: true}
	}
	b.forget(now)
	switch {
	case b.Open && len(b.Relaunches) > 0:
		return Verdict{Next: b.next()}
	case b.Open:
		b.Relaunches, b.Last = append(b.Relaunches, now), EndNone
		return Verdict{OK: true, Count: 1, Trial: true}
	case b.Last == EndNone:
		return Verdict{OK: true}
	case len(b.Relaunches) >= b.Policy.Max:
		b.Open = true
		return Verdict{Next: b.next()}
	}
	b.Relaunches, b.Last = append(b.Relaunches, now), EndNone
	return Verdict{OK: true, Count: len(b.Relaunches)}
}

// Refused reports, without counting anything, whether Allow would refuse now,
// and when it would let the next start through.
func (b *Breaker) Refused(now time.Time) (next time.Time, refused bool) {
	c := *b
	c.Relaunches = slices.Clone(b.Relaunches)
	v := c.Allow(now)
	return v.Next, !v.OK
}

// Connected notes that the browser is reached.
func (b *Breaker) Connected(now time.Time) {
	if b.connected.IsZero() {
		b.connected = now
	}
}

// Lost notes that the connection broke, whatever the reason.
func (b *Breaker) Lost(now time.Time) {
	b.Settle(now)
	b.connected = time.Time{}
}

// Settle closes the breaker when the browser has been well for long enough,
// and reports whether that changed anything.
func (b *Breaker) Settle(now time.Time) bool {
	if b.connected.IsZero() || now.Sub(b.connected) < HealthyAfter {
		return false
	}
	changed := b.Open || len(b.Relaunches) > 0 || b.Last != EndNone
	b.Relaunches, b.Open, b.Last, b.Why = nil, false, EndNone, ""
	return changed
}

// forget drops what is older than the window. Times from the future, which a
// clock that was set back leaves, count as now: else they would never end.
func (b *Breaker) forget(now time.Time) {
	for i, t := range b.Relaunches {
		if t.After(now) {
			b.Relaunches[i] = now
		}
	}
	b.Relaunches = slices.DeleteFunc(b.Relaunches, func(t time.Time) bool { return now.Sub(t) >= b.Policy.Window })
}

// next is when an open breaker lets a trial through: when the last relaunch
// is a window ago, so that no window ever holds more than its budget.
func (b *Breaker) next() time.Time {
	return b.Relaunches[len(b.Relaunches)-1].Add(b.Policy.Window)
}
