package routing

import (
	"strings"
	"time"
)

// Totals count what has happened since New.
type Totals struct {
	Evictions uint64 // tabs closed because their client had too many
	Latency   Latency
}

// Totals returns the counts as they are now.
func (r *Router) Totals() Totals { return r.totals }

// LatencyBounds are the upper bounds of the buckets of a [Latency].
var LatencyBounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute, 30 * time.Minute,
}

// Latency is how long clients waited for the replies to their commands, but
// for those that the proxy answered by itself. A wait is counted in the first
// bucket whose bound it does not exceed, in the last one if it exceeds all.
type Latency struct {
	Buckets [len(LatencyBounds) + 1]uint64
	Sum     time.Duration
}

func (l *Latency) count(wait time.Duration) {
	i := 0
	for i < len(LatencyBounds) && wait > LatencyBounds[i] {
		i++
	}
	l.Buckets[i]++
	l.Sum += wait
}

// lastMethod is the method of the last command, cut where there is no room: a
// copy that costs no allocation.
type lastMethod struct {
	size uint8
	text [47]byte
}

func (l *lastMethod) set(method []byte) { l.size = uint8(copy(l.text[:], method)) }

func (l *lastMethod) String() string { return strings.ToValidUTF8(string(l.text[:l.size]), "") }
