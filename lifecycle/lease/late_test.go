package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"cdpmux/lifecycle"
)

// late begins a session whose start passes its time.
func late(t *testing.T) (*kit, *gate) {
	t.Helper()
	w := newWorld()
	k := open(t, w, func(c *Config) { c.StartTimeout = 10 * time.Millisecond })
	start := newGate()
	w.start = start.pass
	_, _, err := k.create(request(1))
	wantKind(t, "a late start", err, lifecycle.LaunchTimeout)
	var f failure
	if !errors.As(err, &f) || f.Status() != 504 {
		t.Errorf("a late start is told with %v", err)
	}
	_, _, err = k.create(request(1))
	wantKind(t, "again before that is released", err, lifecycle.SessionReleaseFailed)
	if c := k.Counts(); c.Sessions.LateReleasePending != 1 || c.Sessions.Creating != 0 || !c.Degraded {
		t.Errorf("counts: %+v", c)
	}
	w.set(func() { w.start = nil })
	return k, start
}

func TestLateLaunchIsReleasedAndTheIdIsFreeAgain(t *testing.T) {
	k, start := late(t)
	close(start.leave)
	k.flights.Wait()
	if starts, releases := k.world.numbers(); starts != 1 || releases != 1 {
		t.Errorf("%d starts, %d releases", starts, releases)
	}
	k.must(request(1))
}

func TestLateLaunchWhoseReleaseFailsIsNoSuccessfulClose(t *testing.T) {
	k, start := late(t)
	k.world.set(func() { k.world.release = func(context.Context) error { return errStuck } })
	closed := make(chan error, 1)
	go func() { _, err := k.stop(closing(1)); closed <- err }()
	eventually(t, "close that waits", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.records[request(1).ID].unwanted })
	close(start.leave)
	wantKind(t, "close", <-closed, lifecycle.SessionReleaseFailed)
	if c := k.Counts(); c.Sessions.CleanupPending != 1 || c.Sessions.LateReleasePending != 1 {
		t.Errorf("counts: %+v", c)
	}
	k.world.set(func() { k.world.release = nil })
	if _, err := k.stop(closing(1)); err != nil {
		t.Error(err)
	}
}

func TestBoundedShutdownKeepsOwnershipOfAnUnfinishedCreate(t *testing.T) {
	w := newWorld()
	k := open(t, w, nil)
	k.must(request(1))
	start := newGate()
	w.set(func() { w.start = start.pass })
	made := make(chan error, 1)
	go func() { _, _, err := k.create(request(2)); made <- err }()
	await(t, "start", start.entered)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if n := k.Shutdown(ctx); n != 1 {
		t.Errorf("%d pending, want the one that is being made", n)
	}
	if k.records[request(2).ID].client.Name != "client-2" || w.places["client-2"] == "" {
		t.Error("the unfinished one is not owned any more")
	}
	_, _, err := k.create(request(3))
	wantKind(t, "a newcomer", err, lifecycle.Draining)
	close(start.leave)
	wantKind(t, "its caller", <-made, lifecycle.SessionClosed)
	if n := k.Shutdown(context.Background()); n != 0 {
		t.Errorf("%d pending in the end", n)
	}
	if starts, releases := w.numbers(); starts != 2 || releases != 2 {
		t.Errorf("%d starts, %d releases", starts, releases)
	}
}

func TestReaperAttemptsAreBoundedAndAnExplicitCloseRecovers(t *testing.T) {
	w := newWorld()
	k := open(t, w, nil)
	k.must(request(1))
	w.set(func() { w.release = func(context.Context) error { return errStuck } })
	_, err := k.stop(closing(1))
	wantKind(t, "close", err, lifecycle.SessionReleaseFailed)
	for range 10 {
		k.advance(k.cfg.Retry)
		k.Reap(k.cfg.Now())
		k.flights.Wait()
	}
	if _, releases := w.numbers(); releases != 1+MaxAttempts {
		t.Errorf("%d releases, want the one asked for and %d", releases, MaxAttempts)
	}
	w.set(func() { w.release = nil })
	k.Reap(k.cfg.Now())
	k.flights.Wait()
	if c := k.Counts(); c.Sessions.CleanupPending != 1 {
		t.Errorf("before the explicit close: %+v", c)
	}
	if _, err := k.stop(closing(1)); err != nil {
		t.Error(err)
	}
}
