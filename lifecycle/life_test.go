package lifecycle

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// fakeBackend has a browser that ends as it is told.
type fakeBackend struct {
	gate     Gate
	up       bool
	hangs    bool
	after    End
	fail     error // of the next launches
	launches int
	receipt  Receipt
}

func (b *fakeBackend) Start(ctx context.Context) (Endpoint, error) {
	if b.up && b.hangs {
		return Endpoint{}, &Failure{Kind: BrowserUnreachable, Text: "it runs and says nothing"}
	}
	if b.up {
		return Endpoint{WS: "ws://same"}, nil
	}
	started, err := b.gate(ctx, b.after, "it said so")
	if err != nil {
		return Endpoint{}, err
	}
	b.launches++
	started(b.fail)
	b.up, b.after = b.fail == nil, EndNone
	return Endpoint{WS: "ws://new"}, b.fail
}

func (b *fakeBackend) Stop(context.Context) Receipt { b.up = false; return b.receipt }

func (b *fakeBackend) Probe(context.Context) error { return nil }

func (b *fakeBackend) crash() { b.up, b.after = false, EndCrash }

func newLife(t *testing.T, file string) (*Life, *fakeBackend) {
	t.Helper()
	l, err := NewLife(LifeConfig{
		Store: "shop", Policy: BreakerPolicy{3, 10 * time.Minute}, BreakerFile: file,
		Lock: testLock(t, time.Second), Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBackend{gate: l.Gate, receipt: Receipt{Method: MethodGraceful, Verified: true}}
	l.Use(b)
	return l, b
}

func TestLifeRefusesTheStorm(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.json")
	l, b := newLife(t, file)
	var err error
	for range 10 {
		if _, err = l.Start(t.Context()); err == nil {
			l.Connected()
			l.Lost()
			b.crash()
		}
	}
	f := wantFailure(t, err, BreakerOpen)
	if b.launches != 4 || f.RetryAfter() < 9*time.Minute || !f.Retryable() || f.Status() != 503 || !strings.Contains(f.Text, "it said so") {
		t.Errorf("%d launches, %s, retry %s", b.launches, f, f.RetryAfter())
	}
	if l.Refused() == nil || l.View().State != StateRefused || l.View().NextTrial.IsZero() || !l.View().BreakerOpen {
		t.Errorf("view %+v", l.View())
	}
	// A stop does not help, and neither does another proxy.
	l.Stop(t.Context())
	next, b2 := newLife(t, file)
	for _, l := range []*Life{l, next} {
		_, err := l.Start(t.Context())
		wantFailure(t, err, BreakerOpen)
	}
	if b2.launches != 0 {
		t.Error("the next proxy launched")
	}
}

// A browser that runs is sought before another one is launched: whether one may
// be does not matter yet.
func TestLifeAwaitsATrialThatHangs(t *testing.T) {
	l, b := newLife(t, "")
	for range 4 {
		_, _ = l.Start(t.Context())
		b.crash()
	}
	_, _ = l.Start(t.Context())
	if l.Refused() == nil {
		t.Fatal("not refused after 4 crashes")
	}
	long := time.Now().Add(-l.cfg.Policy.Window)
	for i := range l.breaker.Relaunches {
		l.breaker.Relaunches[i] = long
	}
	if _, err := l.Start(t.Context()); err != nil { // the trial
		t.Fatal(err)
	}
	l.Connected()
	l.Lost()
	b.hangs = true
	_, err := l.Start(t.Context())
	wantFailure(t, err, BrowserUnreachable)
	if f, v := l.Refused(), l.View(); f != nil || v.State != StateDegraded || !v.BreakerOpen {
		t.Errorf("refused: %v; view %+v", f, v)
	}
	l.Replace(t.Context())
	if l.Refused() == nil {
		t.Error("the trial was replaced, and the next one is not refused")
	}
}

func TestLifeCountsFailedLaunches(t *testing.T) {
	l, b := newLife(t, "")
	b.fail = &Failure{Kind: LaunchSandbox, Text: "no sandbox"}
	for range 10 {
		_, _ = l.Start(t.Context())
	}
	if f := l.Refused(); b.launches != 4 || f == nil || !strings.Contains(f.Text, "no sandbox") {
		t.Errorf("%d launches, %v", b.launches, f)
	}
}

// Who gives up, or is not let in by others, has launched nothing.
func TestLifeCountsLaunchesOnly(t *testing.T) {
	l, b := newLife(t, "")
	release := acquire(t, l.cfg.Lock, "other")
	l.cfg.Lock.Wait = time.Millisecond
	b.crash()
	for range 10 {
		_, err := l.Start(t.Context())
		wantFailure(t, err, LaunchBusy)
	}
	release()
	b.fail = context.Canceled
	if _, err := l.Start(t.Context()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.fail = nil
	if _, err := l.Start(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLifeStops(t *testing.T) {
	l, _ := newLife(t, "")
	for range 10 { // wanted stops never count
		if _, err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := l.Stop(t.Context()); !r.Verified || l.View().State != StateStopped {
			t.Errorf("%+v, %s", r, l.View().State)
		}
	}
	for range 4 { // of a browser that hangs, they do
		_, _ = l.Start(t.Context())
		l.Replace(t.Context())
	}
	if l.Refused() == nil {
		t.Error("replaced 4 times, and not refused")
	}
	l, b := newLife(t, "")
	_, _ = l.Start(t.Context())
	for range 4 { // what is left of one is tried again
		l.Replace(t.Context())
	}
	if _, err := l.Start(t.Context()); err != nil || l.View().Relaunches != 1 {
		t.Errorf("one browser replaced, at the fourth try: %v, %+v", err, l.View())
	}
	b.receipt = Receipt{Survivors: 1}
	l.Stop(t.Context())
	if v := l.View(); v.State != StatePending {
		t.Errorf("state %s", v.State)
	}
}

func TestLifeIdle(t *testing.T) {
	l, _ := newLife(t, "")
	p := Picture{Active: time.Now().Add(-time.Hour)}
	if idle, busy := l.Idle(p, time.Minute); !idle {
		t.Errorf("busy: %s", busy)
	}
	l.Hold("task", time.Hour)
	if idle, _ := l.Idle(p, time.Minute); idle {
		t.Error("held, and swept")
	}
	if len(l.View().Holds) != 1 {
		t.Errorf("%+v", l.View())
	}
}
