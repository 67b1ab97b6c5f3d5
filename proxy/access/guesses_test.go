package access

import (
	"testing"
	"time"
)

func TestGuesses(t *testing.T) {
	var g Guesses
	now := time.Unix(1_000_000, 0)
	for i := range guessBurst {
		if wait := g.Wrong(now); wait != 0 {
			t.Fatalf("guess %d: wait %s", i, wait)
		}
	}
	for range 100 { // who goes on does not make it longer
		if wait := g.Wrong(now); wait != time.Second {
			t.Fatalf("after the burst: wait %s, want 1s", wait)
		}
	}
	if wait := g.Wrong(now.Add(guessInterval)); wait != 0 {
		t.Errorf("an interval later: wait %s", wait)
	}
	if wait := g.Wrong(now.Add(guessInterval)); wait == 0 {
		t.Error("a second one in that interval is told")
	}
	told := 0
	for i := range 1000 { // ten a second
		if g.Wrong(now.Add(time.Minute+time.Duration(i)*guessInterval/10)) == 0 {
			told++
		}
	}
	if want := guessBurst + 100; told < want-1 || told > want+1 {
		t.Errorf("%d of 1000 guesses in 100 s were told, want %d", told, want)
	}
	if wait := g.Wrong(now); wait < time.Second { // the clock was set back
		t.Errorf("with the clock set back: wait %s", wait)
	}
}
