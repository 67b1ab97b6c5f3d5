package access

import (
	"sync"
	"time"
)

// Guesses counts wrong credentials, of all senders together: whoever guesses
// may have any number of addresses, and a right credential is never held up.
// The zero Guesses is ready. All methods may be called at the same time.
type Guesses struct {
	mu   sync.Mutex
	full time.Time // when the whole burst is allowed again
}

// A burst of wrong credentials may be looked at, then one in each interval.
const (
	guessBurst    = 20
	guessInterval = time.Second
)

// Wrong counts a wrong credential. wait is 0 while it may be told that it is
// wrong, else how long to wait before the next try; at least a second.
func (g *Guesses) Wrong(now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full.Before(now) {
		g.full = now
	}
	full := g.full.Add(guessInterval)
	if over := full.Sub(now) - guessBurst*guessInterval; over > 0 {
		return max(over, time.Second)
	}
	g.full = full
	return 0
}
