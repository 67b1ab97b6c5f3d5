package lease

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
)

// Registry holds the leases of one store.
type Registry struct {
	// static after Open
	cfg     Config
	world   World
	log     zerolog.Logger
	journal *journal
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	flights sync.WaitGroup // starts and releases under way

	mu      sync.Mutex // guards the rest; nothing is waited for under it, and World is not called
	records map[string]*record
	ending  bool // Shutdown was called
	counts  Leases
}

// Config is what a Registry is told once. What is zero is as it says.
type Config struct {
	Store   string // what a request may name: the store's slug
	ID      string // or its id
	Journal string // path of the journal
	Prefix  string // what stands before Path where callers come by another proxy: "/shop"

	Capacity       int           // places that sessions share with all clients, as status shows it; 0: no limit
	Bound          int           // leases and tombstones together; 10 000
	TTL            time.Duration // of a tombstone; 1 h
	Idle           time.Duration // without a client, a message and a heartbeat a lease expires after this, or after its grace if that is longer; 1 h
	StartTimeout   time.Duration // who waits for a start is told after this that it is late; 0: never
	ReleaseTimeout time.Duration // of one attempt; 10 s
	Retry          time.Duration // from a failed release to the next automatic attempt; 10 s

	World World
	Log   zerolog.Logger
	Now   func() time.Time // time.Now
}

// World is what the registry asks of the rest. Errors may have the methods of
// [lifecycle.Failure]; callers are told what these say.
type World struct {
	// Refused says why nobody is let in at all now; nil: come in.
	Refused func() error

	// Reserve gives a place to a client id, which from then on admits only
	// who has the capability of this digest. The id of a lease that is
	// Creating must not be in use. One of before is Ready, or ReleaseFailed,
	// and then lets nobody in.
	Reserve func(c Client, digest []byte, s State) error

	// Start has the browser up, and says how that went.
	Start func(ctx context.Context) (Receipt, error)

	// Release ends a client and all that is its own, and lets nobody in under
	// its id. Without an error nothing of it is left. It may be called again.
	Release func(ctx context.Context, client string) (Receipt, error)

	// Free gives the place back.
	Free func(client string)

	// Activity says how much a client is there.
	Activity func(client string) Activity

	// URLs are where the client connects, as who sent the request sees it.
	URLs func(r *http.Request, client string, digest []byte) (ws, http string)
}

// Activity is how much a client is there.
type Activity struct {
	Connected int
	Tabs      int
	Last      time.Time // of its messages; zero: none
}

// MaxAttempts is how often a release that fails is tried again without having
// been asked for.
const MaxAttempts = 3

// Open reads the journal, and has places given to the leases in it.
func Open(cfg Config) (*Registry, error) {
	cfg.Bound = cmp.Or(cfg.Bound, 10_000)
	cfg.TTL = cmp.Or(cfg.TTL, time.Hour)
	cfg.Idle = cmp.Or(cfg.Idle, time.Hour)
	cfg.ReleaseTimeout = cmp.Or(cfg.ReleaseTimeout, 10*time.Second)
	cfg.Retry = cmp.Or(cfg.Retry, 10*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	j, err := openJournal(cfg.Journal, cfg.Now().Add(-cfg.TTL), cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("journal of sessions: %w", err)
	}
	r := &Registry{cfg: cfg, world: cfg.World, log: cfg.Log, journal: j, records: map[string]*record{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	for _, e := range j.entries() {
		rec := e.record()
		r.records[rec.id] = rec
		if rec.state == Closed {
			continue
		}
		r.counts.Acquired++
		rec.touched = cfg.Now()
		if rec.state == ReleaseFailed {
			rec.failed = rec.touched
		}
		if err := r.world.Reserve(rec.client, rec.digest, rec.state); err != nil {
			r.log.Error().Err(err).Str("session", rec.id).Msg("a session of before got no place")
		}
	}
	return r, nil
}

// Close waits for what is under way and closes the journal. What waits for
// the world is told to end.
func (r *Registry) Close() error {
	r.cancel()
	r.flights.Wait()
	return r.journal.close()
}

// Counts are the numbers that status shows.
type Counts struct {
	Sessions Sessions
	Leases   Leases
	Degraded bool // something is left of a session, and stays
}

// Sessions counts the records by what they are.
type Sessions struct {
	Creating           int `json:"creating"`
	Ready              int `json:"ready"`
	Closing            int `json:"closing"`
	CleanupPending     int `json:"cleanup_pending"`      // their release failed
	LateReleasePending int `json:"late_release_pending"` // their start passed its time, and what comes of it is released
	Tombstones         int `json:"tombstones"`
	Capacity           int `json:"capacity"`
}

// Leases counts what was had and given back; those of an earlier proxy that
// are still held count as acquired.
type Leases struct {
	Acquired        int64 `json:"acquired"`
	Released        int64 `json:"released"`
	ReleaseFailures int64 `json:"release_failures"`
	Active          int64 `json:"active"`
}

// pendingLimit is for how long a failed release is no reason for alarm.
const pendingLimit = time.Minute

// Counts says how many there are now.
func (r *Registry) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := Counts{Leases: r.counts}
	c.Sessions.Capacity = r.cfg.Capacity
	for _, rec := range r.records {
		if rec.late {
			c.Sessions.LateReleasePending++
			c.Degraded = true
		}
		switch {
		case rec.state == Closed:
			c.Sessions.Tombstones++
		case rec.state == ReleaseFailed:
			c.Sessions.CleanupPending++
			c.Degraded = c.Degraded || r.cfg.Now().Sub(rec.failed) > pendingLimit
		case rec.late:
		case rec.state == Creating:
			c.Sessions.Creating++
		case rec.state == Ready:
			c.Sessions.Ready++
		case rec.state == Closing && !rec.tomb:
			c.Sessions.Closing++
		}
		if rec.granted {
			c.Leases.Active++
		}
	}
	return c
}

// Check verifies that the numbers agree with one another.
func (r *Registry) Check() error {
	c := r.Counts()
	if c.Leases.Active != c.Leases.Acquired-c.Leases.Released {
		return fmt.Errorf("leases: %d active, %d acquired, %d released", c.Leases.Active, c.Leases.Acquired, c.Leases.Released)
	}
	return nil
}

// insert adds a record, if the table has room. mu is held.
func (r *Registry) insert(rec *record) error {
	if len(r.records) >= r.cfg.Bound {
		r.prune(r.cfg.Now())
	}
	if len(r.records) >= r.cfg.Bound {
		return &lifecycle.Failure{Kind: lifecycle.IdentityCapacity, Text: fmt.Sprintf("%d sessions are known, which is the limit", len(r.records))}
	}
	r.records[rec.id] = rec
	return nil
}

// prune forgets the tombstones that are old enough. mu is held.
func (r *Registry) prune(now time.Time) {
	for id, rec := range r.records {
		if rec.state == Closed && now.Sub(rec.closedAt) >= r.cfg.TTL {
			delete(r.records, id)
		}
	}
}
