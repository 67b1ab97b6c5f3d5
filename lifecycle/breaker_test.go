package lifecycle

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newBreaker() *Breaker {
	return &Breaker{Policy: BreakerPolicy{Max: 3, Window: 10 * time.Minute}}
}

// A browser that dies a second after each start, whatever it serves until then.
func TestBreakerEndsTheStorm(t *testing.T) {
	b, now, launches := newBreaker(), noon, 0
	for now.Sub(noon) < 10*time.Minute {
		if b.Allow(now).OK {
			launches++
			b.Connected(now)
		}
		now = now.Add(time.Second)
		b.Ended(now, EndCrash, "exit 1")
	}
	if launches != 4 {
		t.Errorf("%d launches in the window, want 1 + 3", launches)
	}
	next, refused := b.Refused(now)
	if !refused || next.Sub(now) <= 0 || next.Sub(now) > 10*time.Second {
		t.Fatalf("next trial %v from now, refused %v", next.Sub(now), refused)
	}
	if b.Allow(next.Add(-1)).OK {
		t.Error("a start before the trial's time")
	}
	if v := b.Allow(next); !v.OK || !v.Trial {
		t.Errorf("at the trial's time: %+v", v)
	}
	b.Ended(next, EndCrash, "again")
	if v := b.Allow(next.Add(time.Second)); v.OK || v.Next != next.Add(10*time.Minute) {
		t.Errorf("after a trial in vain: %+v", v)
	}
}

func TestBreakerIsClearedByHealthAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(b *Breaker)
		open bool
	}{
		"nothing":             {func(*Breaker) {}, true},
		"a stop":              {func(b *Breaker) { b.Ended(noon, EndNone, "") }, true},
		"59 s up":             {func(b *Breaker) { b.Connected(noon); b.Lost(noon.Add(59 * time.Second)) }, true},
		"60 s up":             {func(b *Breaker) { b.Connected(noon); b.Lost(noon.Add(60 * time.Second)) }, false},
		"60 s up, seen alive": {func(b *Breaker) { b.Connected(noon); b.Settle(noon.Add(60 * time.Second)) }, false},
		"twice 40 s": {func(b *Breaker) {
			b.Connected(noon)
			b.Lost(noon.Add(40 * time.Second))
			b.Connected(noon.Add(41 * time.Second))
			b.Lost(noon.Add(81 * time.Second))
		}, true},
		"told twice that it is up": {func(b *Breaker) {
			b.Connected(noon)
			b.Connected(noon.Add(50 * time.Second))
			b.Settle(noon.Add(60 * time.Second))
		}, false},
		"a new proxy": {func(b *Breaker) { *b = *reload(t, b) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBreaker()
			for range 4 {
				b.Ended(noon, EndFailed, "")
				b.Allow(noon)
			}
			tc.do(b)
			if _, refused := b.Refused(noon.Add(2 * time.Minute)); refused != tc.open {
				t.Errorf("refused %v, want %v: %+v", refused, tc.open, b)
			}
		})
	}
}

func TestBreakerCountsUnwantedEndsOnly(t *testing.T) {
	for end, counts := range map[End]bool{EndNone: false, EndCrash: true, EndKeeper: true, EndForced: true, EndFailed: true} {
		b := newBreaker()
		for range 20 {
			b.Ended(noon, end, "")
			b.Allow(noon)
		}
		if b.Open != counts {
			t.Errorf("20 starts after %q: open %v", end, b.Open)
		}
		for _, off := range []BreakerPolicy{{0, time.Minute}, {3, 0}} {
			b.Policy = off
			if v := b.Allow(noon); !v.OK {
				t.Errorf("%+v: %+v", off, v)
			}
		}
	}
}

// A clock that was set back must not shut a store out for years.
func TestBreakerSurvivesClock(t *testing.T) {
	b := newBreaker()
	for range 4 {
		b.Ended(noon.AddDate(5, 0, 0), EndCrash, "")
		b.Allow(noon.AddDate(5, 0, 0))
	}
	if v := b.Allow(noon); v.OK || v.Next.Sub(noon) > 10*time.Minute {
		t.Errorf("%+v", v)
	}
}

// What no history of ends, breaks and restarts may do: more relaunches in a
// window than the budget; two trials in one window; a refusal without a time
// at which a start is let through.
func TestBreakerHistories(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b, now := newBreaker(), noon
		var counted []time.Time // the twin: starts that were let through and count
		var up time.Time
		settle := func() {
			if !up.IsZero() && now.Sub(up) >= HealthyAfter {
				counted = nil
			}
		}
		for step := range 400 {
			now = now.Add(time.Duration(rnd.ExpFloat64() * float64(20*time.Second)))
			switch rnd.IntN(6) {
			case 0:
				b.Connected(now)
				if up.IsZero() {
					up = now
				}
				continue
			case 1:
				b.Lost(now)
				settle()
				up = time.Time{}
				continue
			case 2:
				b.Ended(now, []End{EndNone, EndCrash, EndKeeper, EndForced, EndFailed}[rnd.IntN(5)], "")
				settle()
				up = time.Time{}
				continue
			case 3:
				*b = *reload(t, b)
				up = time.Time{}
				continue
			}
			b.Settle(now)
			settle()
			relaunch := b.Open || b.Last != EndNone
			next, refused := b.Refused(now)
			v := b.Allow(now)
			switch {
			case v.OK == refused:
				t.Fatalf("seed %d, step %d: Refused and Allow disagree: %v, %+v", seed, step, refused, v)
			case !v.OK && (next != v.Next || !next.After(now) || next.Sub(now) > b.Policy.Window):
				t.Fatalf("seed %d, step %d: refused until %v, now %v", seed, step, next, now)
			case !v.OK || !relaunch:
				continue
			}
			counted = append(counted, now)
			in := 0
			for _, c := range counted {
				if now.Sub(c) < b.Policy.Window {
					in++
				}
			}
			if in > b.Policy.Max || v.Trial && in > 1 {
				t.Fatalf("seed %d, step %d: %d relaunches in a window (%+v)", seed, step, in, v)
			}
		}
	}
}

// reload is what a new proxy knows of a breaker.
func reload(t *testing.T, b *Breaker) *Breaker {
	t.Helper()
	data, err := json.Marshal(b)
	got := &Breaker{Policy: b.Policy}
	if err == nil {
		err = json.Unmarshal(data, got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestBreakerFile(t *testing.T) {
	b := newBreaker()
	for range 4 {
		b.Ended(noon, EndCrash, "exit 1")
		b.Allow(noon)
	}
	path := filepath.Join(t.TempDir(), "b.json")
	if err := b.Save(path); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadBreaker(path, b.Policy); err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("read back %+v, %v, want %+v", got, err, b)
	}
	path = filepath.Join(t.TempDir(), "none.json")
	if got, err := LoadBreaker(path, b.Policy); err != nil || got.Open {
		t.Errorf("without a file: %+v, %v", got, err)
	}
	write(t, path, "{", 0o600)
	if _, err := LoadBreaker(path, b.Policy); err == nil {
		t.Error("a broken file: no error")
	}
}

// An end makes one start a relaunch: another that follows when proxy and
// keeper have died together, of which nobody tells, is none.
func TestEndCountsOnce(t *testing.T) {
	b := newBreaker()
	b.Ended(noon, EndKeeper, "lost")
	if v := b.Allow(noon); !v.OK || v.Count != 1 {
		t.Errorf("start after a lost keeper: %+v", v)
	}
	if v := b.Allow(noon.Add(time.Second)); !v.OK || v.Count != 0 {
		t.Errorf("start that follows no known end: %+v", v)
	}
	if len(b.Relaunches) != 1 {
		t.Errorf("counted %d, want 1", len(b.Relaunches))
	}
}
