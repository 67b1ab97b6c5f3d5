package lease

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cdpmux/lifecycle"
)

func TestLostReplyAndTenClosesReleaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		k := open(t, w, nil)
		start, release := newGate(), newGate()
		w.start, w.release = start.pass, release.pass
		ctx, cancel := context.WithCancel(context.Background())
		lost := make(chan error, 1)
		go func() { _, _, err := k.Create(ctx, request(1)); lost <- err }()
		await(t, "start", start.entered)
		cancel()
		if err := <-lost; err != ErrPending {
			t.Fatalf("a caller that left: %v", err)
		}
		close(start.leave)
		if s := k.must(request(1)); s.State != Ready {
			t.Fatalf("the same request again: %+v", s)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				out, err := k.stop(closing(1))
				if r, ok := out.Receipt.(Receipt); err != nil || out.Already || !ok || !r.Cleanup.Verified {
					t.Errorf("close: %+v, %v", out, err)
				}
			})
		}
		await(t, "release", release.entered)
		synctest.Wait() // all ten wait
		close(release.leave)
		wg.Wait()
		if starts, releases := w.numbers(); starts != 1 || releases != 1 {
			t.Errorf("%d starts, %d releases", starts, releases)
		}
	})
}

func TestReplayConflictWrongTokenCloseBeforeCreate(t *testing.T) {
	w := newWorld()
	k := open(t, w, nil)
	first := k.must(request(1))
	again, replayed, err := k.create(request(1))
	if err != nil || !replayed || again.Created != first.Created {
		t.Errorf("replay: %+v, %v, %v", again, replayed, err)
	}
	other := request(1)
	tabs := 3
	other.Client.TabCap = &tabs
	_, _, err = k.create(other)
	wantKind(t, "another payload", err, lifecycle.SessionConflict)
	other.Token = Token{"another token of more than 32 characters"}
	_, _, err = k.create(other)
	wantKind(t, "another token", err, lifecycle.SessionForbidden)
	_, err = k.stop(CloseRequest{ID: request(1).ID, Token: other.Token})
	wantKind(t, "close with another token", err, lifecycle.SessionForbidden)
	if c := k.Counts(); c.Sessions.Ready != 1 {
		t.Errorf("after a close with another token: %+v", c)
	}

	never, err := k.stop(closing(2))
	if err != nil || !never.Already {
		t.Errorf("close of what never was: %+v, %v", never, err)
	}
	_, _, err = k.create(request(2))
	wantKind(t, "create after its close", err, lifecycle.SessionClosed)
	if _, err := k.stop(closing(1)); err != nil {
		t.Error(err)
	}
	closed, err := k.stop(closing(1))
	if err != nil || closed != never {
		t.Errorf("a closed session %+v looks unlike one that never was %+v; %v", closed, never, err)
	}
	_, _, err = k.create(request(1))
	wantKind(t, "create after close", err, lifecycle.SessionClosed)
	if starts, _ := w.numbers(); starts != 1 {
		t.Errorf("%d starts", starts)
	}
}

func TestFailedReleaseIsRetryableAndHoldsCapacity(t *testing.T) {
	w := newWorld()
	w.capacity = 1
	k := open(t, w, nil)
	k.must(request(1))
	w.set(func() { w.release = func(context.Context) error { return errStuck } })
	for n := 1; n <= 2; n++ {
		_, err := k.stop(closing(1))
		var failed *ReleaseError
		if !errors.As(err, &failed) || failed.Survivors != 1 || failed.Attempts != n || strings.Contains(err.Error(), errStuck.Error()) {
			t.Fatalf("close %d: %v", n, err)
		}
	}
	_, _, err := k.create(request(1))
	wantKind(t, "the same session", err, lifecycle.SessionReleaseFailed)
	_, _, err = k.create(request(2))
	wantKind(t, "another session", err, lifecycle.CapacityUnavailable)
	if c := k.Counts(); c.Sessions.CleanupPending != 1 || c.Leases.ReleaseFailures != 2 || c.Leases.Active != 1 || c.Degraded {
		t.Errorf("counts: %+v", c)
	}
	k.advance(pendingLimit + time.Second)
	if !k.Counts().Degraded {
		t.Error("a release that failed a minute ago is no alarm")
	}
	w.set(func() { w.release = nil })
	if out, err := k.stop(closing(1)); err != nil || out.Already {
		t.Errorf("third close: %+v, %v", out, err)
	}
	k.must(request(2))
}

func TestSixtyFourCancelledCallersThenCapacityIsReusable(t *testing.T) {
	w := newWorld()
	w.capacity = 64
	k := open(t, w, nil)
	start := newGate()
	w.start = start.pass
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			if _, _, err := k.Create(ctx, request(n)); err != ErrPending {
				t.Errorf("caller %d: %v", n, err)
			}
		})
	}
	for range 64 {
		await(t, "start", start.entered)
	}
	cancel()
	wg.Wait()
	for n := range 64 {
		wg.Go(func() {
			if _, err := k.stop(closing(n)); err != nil {
				t.Errorf("close %d: %v", n, err)
			}
		})
	}
	eventually(t, "64 closes that wait", func() bool { return k.Counts().Sessions.Closing == 64 })
	_, _, err := k.create(request(100))
	wantKind(t, "while all places are held", err, lifecycle.CapacityUnavailable)
	close(start.leave)
	wg.Wait()
	for n := range 64 {
		wg.Go(func() { k.must(request(200 + n)) })
	}
	wg.Wait()
}

func TestIdentityExpiryDoesNotCutAnActiveSession(t *testing.T) {
	w := newWorld()
	k := open(t, w, nil)
	k.must(request(1))
	k.must(request(2))
	w.set(func() { w.active["client-1"] = Activity{Connected: 1} })
	k.advance(100 * time.Hour)
	if err := k.Heartbeat(request(2).ID, Token{testToken}); err != nil {
		t.Fatal(err)
	}
	k.advance(time.Hour - time.Second)
	k.Reap(k.cfg.Now())
	k.flights.Wait()
	if c := k.Counts(); c.Sessions.Ready != 2 {
		t.Fatalf("reaped in use: %+v", c)
	}
	k.advance(time.Second)
	k.Reap(k.cfg.Now())
	k.flights.Wait()
	if c := k.Counts(); c.Sessions.Ready != 1 || c.Sessions.Tombstones != 1 || k.records[request(2).ID].reason != "expired" {
		t.Fatalf("an hour after its heartbeat: %+v", c)
	}
}

func TestExpiredSessionCannotHideAFailedRelease(t *testing.T) {
	w := newWorld()
	k := open(t, w, nil)
	k.must(request(1))
	w.set(func() { w.release = func(context.Context) error { return errStuck } })
	for range 20 {
		k.advance(2 * time.Hour)
		k.Reap(k.cfg.Now())
		k.flights.Wait()
	}
	if c := k.Counts(); c.Sessions.CleanupPending != 1 || c.Sessions.Tombstones != 0 || !c.Degraded {
		t.Errorf("days later: %+v", c)
	}
	if list := k.List(); len(list) != 1 || list[0].State != ReleaseFailed || list[0].Survivors != 1 {
		t.Errorf("the operator sees %+v", list)
	}
	w.set(func() { w.release = nil })
	if _, err := k.stop(closing(1)); err != nil {
		t.Error(err)
	}
}

func TestCloseRacingAnAdmissionRetryMakesNoSecondBrowser(t *testing.T) {
	for n := range scaled(t, 200) {
		w := newWorld()
		k := open(t, w, nil)
		w.capacity = 0
		_, _, err := k.create(request(n))
		wantKind(t, "no place", err, lifecycle.CapacityUnavailable)
		w.set(func() { w.capacity = 1 })
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, _, err := k.create(request(n)); err != nil {
				wantKind(t, "retry", err, lifecycle.SessionClosed)
			}
		})
		wg.Go(func() {
			if _, err := k.stop(closing(n)); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		wg.Wait()
		k.flights.Wait()
		_, _, err = k.create(request(n))
		wantKind(t, "after all", err, lifecycle.SessionClosed)
		if starts, releases := w.numbers(); starts != releases || starts > 1 {
			t.Fatalf("%d starts, %d releases", starts, releases)
		}
	}
}

func TestBoundPrunesOnlyExpiredTombstones(t *testing.T) {
	w := newWorld()
	w.capacity = 9
	k := open(t, w, func(c *Config) { c.Bound = 4 })
	k.must(request(1))
	for n := 2; n <= 4; n++ {
		if _, err := k.stop(closing(n)); err != nil {
			t.Fatal(err)
		}
		k.advance(20 * time.Minute)
	}
	_, _, err := k.create(request(5)) // the oldest is an hour old
	wantKind(t, "with one expired", err, "")
	_, _, err = k.create(request(6))
	wantKind(t, "with none expired", err, lifecycle.IdentityCapacity)
	_, err = k.stop(closing(7))
	wantKind(t, "a close has no room either", err, lifecycle.IdentityCapacity)
	_, _, err = k.create(request(3))
	wantKind(t, "a younger tombstone", err, lifecycle.SessionClosed)
	k.must(request(1))
	k.must(request(5))
}

func TestRefusalsKeepTheIdentityOpen(t *testing.T) {
	w := newWorld()
	k := open(t, w, nil)
	for _, kind := range []string{lifecycle.StoreLocked, lifecycle.Draining, lifecycle.BreakerOpen, lifecycle.BrowserStopping} {
		w.set(func() { w.refused = &lifecycle.Failure{Kind: kind, Text: "not now"} })
		_, _, err := k.create(request(1))
		wantKind(t, "refused", err, kind)
	}
	w.set(func() {
		w.refused = nil
		w.start = func(context.Context) error { return &lifecycle.Failure{Kind: lifecycle.NoDisplay, Text: "no"} }
	})
	_, _, err := k.create(request(1))
	wantKind(t, "failed launch", err, lifecycle.NoDisplay)
	w.set(func() { w.start = nil })
	k.must(request(1))
}

func TestCloseWhileCreatingReleasesWhatComesOfIt(t *testing.T) {
	for _, outcome := range []error{nil, &lifecycle.Failure{Kind: lifecycle.LaunchFailed, Text: "no"}} {
		w := newWorld()
		k := open(t, w, nil)
		start := newGate()
		w.start = func(ctx context.Context) error { return errors.Join(start.pass(ctx), outcome) }
		made, closed := make(chan error, 1), make(chan error, 1)
		go func() { _, _, err := k.create(request(1)); made <- err }()
		await(t, "start", start.entered)
		go func() { _, err := k.stop(closing(1)); closed <- err }()
		eventually(t, "close that waits", func() bool { return k.Counts().Sessions.Closing == 1 })
		_, _, err := k.create(request(1))
		wantKind(t, "the same request", err, lifecycle.SessionClosed)
		close(start.leave)
		wantKind(t, "who created", <-made, lifecycle.SessionClosed)
		wantKind(t, "who closed", <-closed, "")
		if c := k.Counts(); c.Sessions.Tombstones != 1 {
			t.Errorf("counts: %+v", c)
		}
	}
}
