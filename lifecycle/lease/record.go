package lease

import (
	"crypto/sha256"
	"crypto/subtle"
	"time"
)

// State is where a lease is in its life.
type State string

// The states of a lease.
const (
	Creating      State = "creating"
	Ready         State = "ready"
	Closing       State = "closing"
	ReleaseFailed State = "release_failed" // something is left of it: it keeps its place
	Closed        State = "closed"         // a tombstone: the id is never given again while it stands
)

// record is one lease. The registry's mu guards it.
type record struct {
	id          string
	digest      []byte // of the close token
	fingerprint string // of the request; empty for a tombstone
	client      Client

	state    State
	granted  bool   // it holds what has to be released
	late     bool   // its start passed its time: what comes of it is released
	tomb     bool   // it was never more than a close
	unwanted bool   // a close came: it ends as a tombstone
	reason   string // of the first close

	created  time.Time
	touched  time.Time // last heartbeat or request
	closedAt time.Time
	failed   time.Time // the first failure of its release; of one of before, when it was read
	tried    time.Time // the last

	attempts  int // of its release, all of them
	automatic int // those that nobody asked for
	survivors int // processes that were left after the last

	receipt  Receipt // of its start
	creation *flight // under way; nil otherwise
	release  *flight // under way; nil otherwise
}

// flight is one start or release, shared by all who wait for it.
type flight struct {
	done chan struct{}

	// set before done is closed
	err     error
	receipt any // of a release
}

func newFlight() *flight { return &flight{done: make(chan struct{})} }

// Digest is how a close token is kept.
func Digest(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// opens reports whether token is the record's, in constant time.
func (rec *record) opens(token string) bool {
	return subtle.ConstantTimeCompare(rec.digest, Digest(token)) == 1
}

// bury makes a tombstone of it: digest, times and reason are kept.
func (rec *record) bury(now time.Time) {
	*rec = record{
		id: rec.id, digest: rec.digest, state: Closed,
		created: rec.created, closedAt: now, reason: rec.reason, unwanted: true,
	}
}
