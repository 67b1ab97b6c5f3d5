package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// report is what a run has shown.
type report struct {
	URL      string         `json:"url"`
	Groups   []result       `json:"groups"` // the first one is what was measured
	Process  *processReport `json:"process,omitempty"`
	Failures []string       `json:"failures,omitempty"` // clients that ended early, and why
}

// result is one group's part. Latencies are microseconds from a command to its
// reply, exact: every sample is kept and sorted.
type result struct {
	work
	counts
	Seconds       float64 `json:"seconds"` // until the last reply
	RepliesPerSec float64 `json:"replies_per_s"`
	EventsPerSec  float64 `json:"events_per_s"`
	MBPerSec      float64 `json:"mb_per_s"` // 10^6 bytes of text received
	P50           float64 `json:"p50_us"`
	P90           float64 `json:"p90_us"`
	P99           float64 `json:"p99_us"`
	Max           float64 `json:"max_us"`
}

func (g *group) result(began time.Time) result {
	r := result{work: g.work, Seconds: g.ended.Sub(began).Seconds()}
	for _, c := range g.clients {
		r.counts.add(&c.counts)
	}
	r.RepliesPerSec = float64(r.Replies) / r.Seconds
	r.EventsPerSec = float64(r.Events) / r.Seconds
	r.MBPerSec = float64(r.Bytes) / r.Seconds / 1e6
	if s := r.samples; len(s) > 0 {
		slices.Sort(s)
		at := func(q float64) float64 { return float64(s[int(q*float64(len(s)-1))].Nanoseconds()) / 1e3 }
		r.P50, r.P90, r.P99, r.Max = at(.5), at(.9), at(.99), at(1)
	}
	return r
}

// wrong counts what must not be.
func (r *report) wrong() (n int64) {
	for _, g := range r.Groups {
		n += g.Lost + g.Duplicates + g.Foreign
	}
	return n + int64(len(r.Failures))
}

// processReport is what the process of --pid has used during the run.
type processReport struct {
	CPU       float64 `json:"cpu_s"`
	Writes    int64   `json:"write_calls"`
	Connected int64   `json:"rss_before_bytes"` // before the clients came
	RSS       int64   `json:"rss_bytes"`        // at the end
	Peak      int64   `json:"peak_rss_bytes"`
	// PeakOfRun: the peak is of this run alone, because the kernel let us reset
	// it; else it is since the process began.
	PeakOfRun bool `json:"peak_is_of_run"`
}

func (p *processReport) fill(before, start, end usage) {
	if p == nil {
		return
	}
	p.CPU, p.Writes = end.CPU-start.CPU, end.Writes-start.Writes
	p.Connected, p.RSS, p.Peak = before.RSS, end.RSS, end.Peak
}

// print writes the report for people.
func (r *report) print(w io.Writer) {
	for i, g := range r.Groups {
		if i > 0 {
			fmt.Fprint(w, "beside: ")
		}
		fmt.Fprintf(w, "%s: %d clients, %d in flight, %.2f s\n", g.Kind, g.Clients, g.InFlight, g.Seconds)
		fmt.Fprintf(w, "  %.0f replies/s  %.0f events/s  %.1f MB/s\n", g.RepliesPerSec, g.EventsPerSec, g.MBPerSec)
		fmt.Fprintf(w, "  latency µs: p50 %.0f  p90 %.0f  p99 %.0f  max %.0f\n", g.P50, g.P90, g.P99, g.Max)
		fmt.Fprintf(w, "  %d replies, %d errors; lost %d, duplicates %d, foreign %d\n", g.Replies, g.Errors, g.Lost, g.Duplicates, g.Foreign)
	}
	if p := r.Process; p != nil {
		since := "since it began"
		if p.PeakOfRun {
			since = "in this run"
		}
		fmt.Fprintf(w, "process: %.2f CPU s, %d write calls, RSS %.1f MiB before, %.1f after, peak %.1f %s\n",
			p.CPU, p.Writes, mib(p.Connected), mib(p.RSS), mib(p.Peak), since)
	}
	for _, text := range r.Failures {
		fmt.Fprintln(w, "failed:", text)
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
