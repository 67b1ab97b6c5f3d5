package lifecycle

import (
	"testing"
	"time"
)

func TestIdle(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const limit = 5 * time.Minute
	for name, tc := range map[string]struct {
		change func(p *Picture)
		after  time.Duration
		idle   bool
	}{
		"a moment before": {func(*Picture) {}, limit - 1, false},
		"at the limit":    {func(*Picture) {}, limit, true},
		"a client":        {func(p *Picture) { p.Clients = 1 }, time.Hour, false},
		"in grace":        {func(p *Picture) { p.InGrace = 1 }, time.Hour, false},
		"a request":       {func(p *Picture) { p.Requests = 1 }, time.Hour, false},
		"a download":      {func(p *Picture) { p.Downloads = 1 }, time.Hour, false},
		"a start":         {func(p *Picture) { p.Starting = true }, time.Hour, false},
		"a hold":          {func(p *Picture) { p.Holds.Hold("task", t0, time.Hour) }, time.Hour - 1, false},
		"a hold at its end": {func(p *Picture) { p.Holds.Hold("task", t0, time.Hour) },
			time.Hour, true},
		"a renewed hold": {func(p *Picture) {
			p.Holds.Hold("task", t0, time.Hour)
			p.Holds.Hold("task", t0.Add(time.Minute), time.Hour)
		}, time.Hour, false},
		"a hold given back": {func(p *Picture) {
			p.Holds.Hold("task", t0, time.Hour)
			p.Holds.Hold("task", t0, 0)
		}, limit, true},
		"one hold of two": {func(p *Picture) {
			p.Holds.Hold("a", t0, time.Minute)
			p.Holds.Hold("b", t0, time.Hour)
		}, 10 * time.Minute, false},
		"a clock set back": {func(p *Picture) { p.Active = t0.Add(time.Hour) }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Picture{Holds: Holds{}, Active: t0}
			tc.change(&p)
			idle, busy := p.Idle(t0.Add(tc.after), limit)
			if idle != tc.idle || idle != (busy == "") {
				t.Errorf("idle %v (%s), want %v", idle, busy, tc.idle)
			}
			if idle, _ := p.Idle(t0.Add(tc.after), 0); idle {
				t.Error("a limit of 0: idle")
			}
		})
	}
}
