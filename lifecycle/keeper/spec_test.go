package keeper

import (
	"testing"
	"time"
)

// However early Chrome is asked again, it has the time of both rungs to quit.
func TestWaitsQuit(t *testing.T) {
	short := Waits{Close: 300 * time.Millisecond, Interrupt: 200 * time.Millisecond}
	for _, tc := range []struct {
		w            Waits
		asked, again time.Duration
	}{
		{DefaultWaits, 5 * time.Second, 13 * time.Second},
		{short, 300 * time.Millisecond, 200 * time.Millisecond},
	} {
		if asked, again := tc.w.quit(); asked != tc.asked || again != tc.again {
			t.Errorf("%+v: %v and %v, want %v and %v", tc.w, asked, again, tc.asked, tc.again)
		}
	}
}
