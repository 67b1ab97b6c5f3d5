package main

import (
	"context"
	"fmt"
	"os/exec"
)

// kind is a kind of work with other counts.
func kind(name string, change func(*work)) work {
	w, err := kindOf(name)
	if err != nil {
		panic(err)
	}
	if change != nil {
		change(&w)
	}
	return w
}

func commands(clients, inFlight int) work {
	return kind("commands", func(w *work) { w.Clients, w.InFlight = clients, inFlight })
}

func (b *bench) oneInFlight(ctx context.Context) error {
	found, err := b.measure(ctx, b.all(), repliesPerSec, commands(16, 1))
	if err == nil {
		b.compare("P1", "16 clients × 1 command", "replies/s", found, 1.2, false)
	}
	return err
}

// pipelined is P2, with the CPU time (P4) and the write calls (P11) of the
// same runs.
func (b *bench) pipelined(ctx context.Context) error {
	cpu := map[string][]float64{}
	var writes []float64
	stop := b.profile(ctx, "p2")
	defer stop()
	found := map[string][]float64{}
	for range b.rounds {
		for _, c := range b.all() {
			r, err := b.drive(ctx, c, commands(16, 32))
			if err != nil {
				return err
			}
			g := r.Groups[0]
			found[c.name] = append(found[c.name], g.RepliesPerSec)
			if p := r.Process; p != nil {
				cpu[c.name] = append(cpu[c.name], p.CPU*1e6/float64(g.Replies))
				if c.name == b.mux.name {
					writes = append(writes, float64(p.Writes)/float64(2*g.Replies))
				}
			}
		}
	}
	b.compare("P2", "16 clients × 32 commands", "replies/s", found, 1, false)
	each := commands(16, 32)
	each.Each = true
	apart, err := b.measure(ctx, b.all(), repliesPerSec, each)
	if err != nil {
		return err
	}
	b.compare("P2", "the same, a write for each command", "replies/s", apart, 1, false)
	if len(writes) == 0 {
		return nil // no /proc here
	}
	b.compare("P4", "P2: CPU time of the proxy", "µs/reply", cpu, 1, true)
	n := median(writes)
	b.add(row{Mark: "P11", Work: "P2: write calls per message", Goal: "≤ 0.25", Figure: fmt.Sprintf("%.3f", n)}, n <= 0.25)
	return nil
}

func (b *bench) latency(ctx context.Context) error {
	found, err := b.measure(ctx, b.all(), p50, commands(1, 1))
	if err == nil {
		b.compare("P3", "1 client × 1 command: latency, p50", "µs", found, 1.5, true)
	}
	return err
}

func (b *bench) manyClients(ctx context.Context) error {
	found := map[int][]float64{}
	for range b.rounds {
		for _, clients := range []int{16, 256} {
			r, err := b.drive(ctx, b.mux, commands(clients, 1))
			if err != nil {
				return err
			}
			found[clients] = append(found[clients], repliesPerSec(r))
		}
	}
	x := ratio(found[256], found[16])
	b.add(row{
		Mark: "P5", Work: "256 clients × 1 command", Unit: "replies/s", Columns: map[string][]float64{b.mux.name: found[256]},
		Goal: "≥ 0.8 × 16 clients", Figure: fmt.Sprintf("%.2f × 16 clients", x),
	}, x >= 0.8)
	return nil
}

func (b *bench) events(ctx context.Context) error {
	for _, clients := range []int{1, 16} {
		w := kind("events", func(w *work) { w.Clients = clients })
		found, err := b.measure(ctx, b.all(), eventsPerSec, w)
		if err != nil {
			return err
		}
		b.compare("P6", fmt.Sprintf("bursts of 20 000 events to %d", clients), "events/s", found, 1, false)
	}
	return nil
}

func (b *bench) large(ctx context.Context) error {
	for _, size := range []int{1, 8, 64} {
		w := kind("replies", func(w *work) { w.Size = size << 20 })
		found, err := b.measure(ctx, b.all(), mbPerSec, w)
		if err != nil {
			return err
		}
		b.compare("P7", fmt.Sprintf("replies of %d MiB", size), "MB/s", found, 0.9, false)
	}
	fresh, stop, err := b.startMux(ctx, b.fake)
	if err != nil {
		return err
	}
	defer stop()
	r, err := b.drive(ctx, fresh, kind("replies", nil))
	if err != nil || r.Process == nil {
		return err
	}
	n := mib(r.Process.Peak)
	b.add(row{Mark: "P7", Work: "replies of 64 MiB: memory, peak", Goal: "≤ 192 MiB", Figure: fmt.Sprintf("%.0f MiB", n)}, n <= 192)
	return nil
}

// neighbours is what one client notices of another: P8b, P8c, and the fairness
// beside one that sends thousands of commands ahead.
func (b *bench) neighbours(ctx context.Context) error {
	quiet, reply := commands(1, 1), kind("replies", nil)
	one, err := b.measure(ctx, []column{b.direct}, p50, reply)
	if err != nil {
		return err
	}
	var alone, large, stalled, busy, flooded []float64
	for range b.rounds {
		for _, run := range []struct {
			into   *[]float64
			beside []work
		}{
			{&alone, nil},
			{&large, []work{reply}},
			{&stalled, []work{kind("stall", nil)}},
			{&busy, []work{commands(1, 32)}},
			{&flooded, []work{kind("flood", nil)}},
		} {
			r, err := b.drive(ctx, b.mux, append([]work{quiet}, run.beside...)...)
			if err != nil {
				return err
			}
			*run.into = append(*run.into, p99(r))
		}
	}
	figure := func(p, base []float64) string {
		return fmt.Sprintf("%.1f ms, %.1f × %.2f ms", median(p)/1e3, ratio(p, base), median(base)/1e3)
	}
	bound := median(alone) + 1.5*median(one[b.direct.name])
	b.add(row{
		Mark: "P8b", Work: "p99 beside 64 MiB replies", Unit: "µs", Columns: map[string][]float64{"alone": alone, "beside": large, "one reply, direct": one[b.direct.name]},
		Goal: "≤ alone + 1.5 × one such reply, direct", Figure: fmt.Sprintf("%.1f ms, of %.1f allowed", median(large)/1e3, bound/1e3),
	}, median(large) <= bound)
	b.add(row{
		Mark: "P8c", Work: "p99 beside one that does not read", Unit: "µs", Columns: map[string][]float64{"alone": alone, "beside": stalled},
		Goal: "≤ 3 × alone", Figure: figure(stalled, alone),
	}, ratio(stalled, alone) <= 3)
	b.add(row{
		Mark: "P8d", Work: "p99 beside one with 10 000 commands ahead", Unit: "µs", Columns: map[string][]float64{"beside 32": busy, "beside 10 000": flooded},
		Goal: "≤ 3 × beside one with 32", Figure: figure(flooded, busy),
	}, ratio(flooded, busy) <= 3)
	return nil
}

func (b *bench) idleMemory(ctx context.Context) error {
	const clients = 1000
	var each []float64
	for range b.rounds {
		fresh, stop, err := b.startMux(ctx, b.fake)
		if err != nil {
			return err
		}
		r, err := b.drive(ctx, fresh, kind("idle", func(w *work) { w.Clients = clients }))
		stop()
		if err != nil || r.Process == nil {
			return err
		}
		each = append(each, float64(r.Process.RSS-r.Process.Connected)/clients/1024)
	}
	n := median(each)
	b.add(row{
		Mark: "P9", Work: "memory of an idle client, of 1 000", Unit: "KiB", Columns: map[string][]float64{b.mux.name: each},
		Goal: "≤ 48 KiB", Figure: fmt.Sprintf("%.0f KiB", n),
	}, n <= 48)
	return nil
}

// allocations runs the tests that hold the hot path to its allocations.
func (b *bench) allocations(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "test", "-count", "1", "-run", "Allocates$", "./routing", "./proxy").CombinedOutput()
	figure := "as tested"
	if err != nil {
		figure = "see the tests"
		fmt.Fprintf(b.log, "%s", out)
	}
	b.add(row{
		Mark: "P10", Work: "allocations per message",
		Goal: "routing 0, to the browser ≤ 2, to a client ≤ 1", Figure: figure,
	}, err == nil)
	return nil
}
