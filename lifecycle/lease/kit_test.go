package lease

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"cdpmux/lifecycle"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const patience = 20 * time.Second

// world is a proxy with so many places and a browser that starts and releases
// as it is told.
type world struct {
	mu       sync.Mutex
	capacity int
	places   map[string]State // as they were reserved
	inUse    map[string]bool
	active   map[string]Activity
	refused  error
	starts   int
	releases int
	browsers int                         // that were begun and are not released
	start    func(context.Context) error // nil: at once
	release  func(context.Context) error // nil: at once
}

func newWorld() *world {
	return &world{capacity: 2, places: map[string]State{}, inUse: map[string]bool{}, active: map[string]Activity{}}
}

func (w *world) world() World {
	return World{
		Refused: func() error { w.mu.Lock(); defer w.mu.Unlock(); return w.refused },
		Reserve: func(c Client, _ []byte, s State) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case s == Creating && (w.inUse[c.Name] || w.places[c.Name] != ""):
				return &lifecycle.Failure{Kind: lifecycle.ClientInUse, Text: "in use"}
			case s == Creating && len(w.places) >= w.capacity:
				return &lifecycle.Failure{Kind: lifecycle.CapacityUnavailable, Text: "full"}
			}
			w.places[c.Name] = s
			return nil
		},
		Start: func(ctx context.Context) (Receipt, error) {
			w.mu.Lock()
			w.starts++
			start := w.start
			w.mu.Unlock()
			if start != nil {
				if err := start(ctx); err != nil {
					return Receipt{}, err
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.browsers++
			return Receipt{Action: ActionStart, Incarnation: "1a2b", Ownership: Retained, ColdStart: true}, nil
		},
		Release: func(ctx context.Context, _ string) (Receipt, error) {
			w.mu.Lock()
			w.releases++
			release := w.release
			w.mu.Unlock()
			if release != nil {
				if err := release(ctx); err != nil {
					return Receipt{Cleanup: &Cleanup{Survivors: 1}}, err
				}
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.browsers--
			return Receipt{Action: ActionStop, Ownership: Retained, Cleanup: &Cleanup{Method: "graceful", Verified: true}}, nil
		},
		Free:     func(client string) { w.mu.Lock(); defer w.mu.Unlock(); delete(w.places, client) },
		Activity: func(client string) Activity { w.mu.Lock(); defer w.mu.Unlock(); return w.active[client] },
		URLs: func(r *http.Request, client string, digest []byte) (string, string) {
			path := fmt.Sprintf("%s/t/%x/client-%s", r.Host, digest[:4], client)
			return "ws://" + path, "http://" + path
		},
	}
}

func (w *world) set(f func()) { w.mu.Lock(); defer w.mu.Unlock(); f() }

// numbers are how often the browser was started and released.
func (w *world) numbers() (starts, releases int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts, w.releases
}

var errStuck = errors.New("it does not end")

// kit is a registry over a world, with a clock of its own.
type kit struct {
	*Registry
	t     *testing.T
	world *world
	cfg   Config
	log   *bytes.Buffer

	clock sync.Mutex
	now   time.Time
}

// open makes a registry, closed at the test's end, when its invariant holds
// and nothing is left of what it began.
func open(t *testing.T, w *world, change func(*Config)) *kit {
	t.Helper()
	k := &kit{t: t, world: w, now: time.Date(2026, 11, 30, 22, 51, 17, 0, time.UTC), log: new(bytes.Buffer)}
	k.cfg = Config{
		Store: "us-1", ID: "0123abcd", Journal: filepath.Join(t.TempDir(), "us-1.sessions"), Capacity: w.capacity,
		Retry: time.Second, World: w.world(), Log: zerolog.New(zerolog.SyncWriter(k.log)),
		Now: func() time.Time { k.clock.Lock(); defer k.clock.Unlock(); return k.now },
	}
	if change != nil {
		change(&k.cfg)
	}
	var err error
	if k.Registry, err = Open(k.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.settled()
		if err := k.Registry.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return k
}

// settled checks what has to hold after every test, once nothing is under way.
func (k *kit) settled() {
	k.t.Helper()
	k.flights.Wait()
	if err := k.Check(); err != nil {
		k.t.Error(err)
	}
	c := k.Counts()
	if s := c.Sessions; s.Creating+s.Closing+s.CleanupPending+s.LateReleasePending != 0 || c.Degraded {
		k.t.Errorf("something is left at the end: %+v", c)
	}
	k.world.mu.Lock()
	defer k.world.mu.Unlock()
	if k.world.browsers != int(c.Leases.Active) || len(k.world.places) != int(c.Leases.Active) {
		k.t.Errorf("%d leases are active, and %d are held, with %d places", c.Leases.Active, k.world.browsers, len(k.world.places))
	}
}

func (k *kit) advance(d time.Duration) { k.clock.Lock(); defer k.clock.Unlock(); k.now = k.now.Add(d) }

const testToken = "0123456789abcdef0123456789abcdef-secret"

func request(n int) Request {
	return Request{ID: fmt.Sprintf("session-%08d", n), Token: Token{testToken}, Client: Client{Name: fmt.Sprintf("client-%d", n)}}
}

func closing(n int) CloseRequest {
	return CloseRequest{ID: request(n).ID, Token: Token{testToken}, Reason: "completed"}
}

func (k *kit) create(q Request) (Session, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return k.Create(ctx, q)
}

func (k *kit) stop(q CloseRequest) (Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return k.Stop(ctx, q, false)
}

// must is a create that has to succeed.
func (k *kit) must(q Request) Session {
	k.t.Helper()
	s, _, err := k.create(q)
	if err != nil {
		k.t.Fatalf("create %s: %v", q.ID, err)
	}
	return s
}

// wantKind checks that an error is of that kind; "" is none.
func wantKind(t *testing.T, what string, err error, kind string) {
	t.Helper()
	got := ""
	var f failure
	if errors.As(err, &f) {
		got = f.FailureKind()
	} else if err != nil {
		got = err.Error()
	}
	if got != kind {
		t.Errorf("%s: got %q (%v), want %q", what, got, err, kind)
	}
}

// gate is a step that waits until it is opened.
type gate struct{ entered, leave chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 64), make(chan struct{})} }

func (g *gate) pass(ctx context.Context) error {
	g.entered <- struct{}{}
	select {
	case <-g.leave:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s: did not come", what)
	}
}

// eventually waits for what no event announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not seen", what)
		}
	}
}

var (
	draining        = &lifecycle.Failure{Kind: lifecycle.Draining, Text: "nobody is let in"}
	unauthenticated = &lifecycle.Failure{Kind: lifecycle.Unauthenticated, Text: "wrong"}
)

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
