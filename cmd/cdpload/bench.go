package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func benchCommand() *cobra.Command {
	b := &bench{}
	var peers []string
	var only []string
	cmd := &cobra.Command{
		Use:   "bench --cdpmux PATH",
		Short: "Compare cdpmux with a byte relay and with no proxy; scripts/bench runs it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, text := range peers {
				name, url, ok := strings.Cut(text, "=")
				if !ok {
					return fmt.Errorf("--peer %s: give it as NAME=URL-TEMPLATE", text)
				}
				b.peers = append(b.peers, column{name: name, url: url})
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			b.log = cmd.ErrOrStderr()
			err := b.run(ctx, only)
			return errors.Join(err, b.write(cmd.OutOrStdout()))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&b.binary, "cdpmux", "", "`PATH` of cdpmux")
	f.StringVar(&b.json, "json", "", "`FILE` for the figures as JSON")
	f.BoolVar(&b.quick, "quick", false, "only what needs no Chromium, one second for each figure")
	f.IntVar(&b.rounds, "rounds", 3, "how often everything is measured; the median counts")
	f.DurationVar(&b.duration, "duration", 2*time.Second, "of each measurement")
	f.StringArrayVar(&peers, "peer", nil, "another proxy to measure, `NAME=URL-TEMPLATE`; it must be before a browser of its own")
	f.StringSliceVar(&only, "only", nil, "`MARKS` to measure, as P1,P7 (default: all)")
	f.StringVar(&b.profiles, "profiles", "", "`DIR` for CPU profiles; needs a cdpmux built with -tags pprof")
	return cmd
}

// bench measures the marks, each in rounds: A B C A B C …, so that a noisy
// machine is as noisy for all.
type bench struct {
	binary, json, profiles string
	quick                  bool
	rounds                 int
	duration               time.Duration
	peers                  []column
	log                    io.Writer

	home               string // state of the proxies; removed in the end
	fake               string // WebSocket address of the fake browser
	direct, relay, mux column
	rows               []*row
}

// column is one thing that is compared.
type column struct {
	name, url string
	pid       int
}

// row is one mark.
type row struct {
	Mark    string               `json:"mark"`
	Work    string               `json:"work"`
	Goal    string               `json:"goal"`
	Figure  string               `json:"figure"`
	Verdict string               `json:"verdict"` // holds, falls short, "" without a goal
	Unit    string               `json:"unit,omitempty"`
	Columns map[string][]float64 `json:"columns,omitempty"` // by round
}

// marks are what is measured, in order. The last ones need a Chromium.
var marks = []struct {
	id     string
	chrome bool
	run    func(*bench, context.Context) error
}{
	{"P1", false, (*bench).oneInFlight},
	{"P2", false, (*bench).pipelined},
	{"P3", false, (*bench).latency},
	{"P5", false, (*bench).manyClients},
	{"P6", false, (*bench).events},
	{"P7", false, (*bench).large},
	{"P8", false, (*bench).neighbours},
	{"P9", false, (*bench).idleMemory},
	{"P10", false, (*bench).allocations},
	{"P8a", true, (*bench).chromeNeighbour},
	{"P12", true, (*bench).chromeEvaluate},
	{"P13", true, (*bench).chromeTabs},
	{"P14", true, (*bench).starts},
}

func (b *bench) run(ctx context.Context, only []string) (err error) {
	if b.quick {
		b.duration = time.Second
	}
	if b.home, err = os.MkdirTemp("", "cdpload"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.home)) }()
	stop, err := b.startFake(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, m := range marks {
		wanted := len(only) == 0 && !(m.chrome && b.quick) || slices.Contains(only, m.id)
		if !wanted || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(b.log, "%s …\n", m.id)
		if err := m.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", m.id, err)
		}
	}
	return ctx.Err()
}

// measure drives each column in turn, round after round, and returns what
// figure reads from each report. A peer that fails has no figure.
func (b *bench) measure(ctx context.Context, columns []column, figure func(*report) float64, groups ...work) (map[string][]float64, error) {
	found := map[string][]float64{}
	for range b.rounds {
		for _, c := range columns {
			r, err := b.drive(ctx, c, groups...)
			switch {
			case err == nil:
				found[c.name] = append(found[c.name], figure(r))
			case slices.ContainsFunc(b.peers, func(p column) bool { return p.name == c.name }):
				fmt.Fprintf(b.log, "  %v\n", err)
			default:
				return nil, err
			}
		}
	}
	return found, nil
}

func (b *bench) drive(ctx context.Context, c column, groups ...work) (*report, error) {
	j := job{url: c.url, groups: groups, duration: b.duration, pid: c.pid}
	r, err := j.run(ctx)
	if err == nil && r.wrong() > 0 {
		var text strings.Builder
		r.print(&text)
		err = errors.New(text.String())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return r, nil
}

func repliesPerSec(r *report) float64 { return r.Groups[0].RepliesPerSec }
func eventsPerSec(r *report) float64  { return r.Groups[0].EventsPerSec }
func mbPerSec(r *report) float64      { return r.Groups[0].MBPerSec }
func p50(r *report) float64           { return r.Groups[0].P50 }
func p99(r *report) float64           { return r.Groups[0].P99 }

// all is every column before the fake browser.
func (b *bench) all() []column {
	return append([]column{b.direct, b.relay, b.mux}, b.peers...)
}

// ratio is the median of the rounds' ratios.
func ratio(over, under []float64) float64 {
	var ratios []float64
	for i := range over {
		ratios = append(ratios, over[i]/under[i])
	}
	return median(ratios)
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// add enters a row; the verdict is that of holds.
func (b *bench) add(r row, holds bool) {
	r.Verdict = "falls short"
	if holds {
		r.Verdict = "holds"
	}
	b.rows = append(b.rows, &r)
	fmt.Fprintf(b.log, "  %s %s: %s (%s)\n", r.Mark, r.Figure, r.Verdict, r.Goal)
}

// compare enters a row that asks for cdpmux at least (atMost: at most) goal
// times the relay.
func (b *bench) compare(mark, work, unit string, found map[string][]float64, goal float64, atMost bool) {
	x := ratio(found[b.mux.name], found[b.relay.name])
	sign, holds := "≥", x >= goal
	if atMost {
		sign, holds = "≤", x <= goal
	}
	b.add(row{
		Mark: mark, Work: work, Unit: unit, Columns: found,
		Goal: fmt.Sprintf("%s %.1f × relay", sign, goal), Figure: fmt.Sprintf("%.2f × relay", x),
	}, holds)
}
