package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// work is what a group of clients does.
type work struct {
	Kind     string `json:"kind"`
	Clients  int    `json:"clients"`
	InFlight int    `json:"in_flight"`
	Up       int    `json:"command_bytes"`
	Size     int    `json:"size"` // bytes of a reply, or of an event
	Burst    int    `json:"burst"`
	Page     string `json:"page,omitempty"` // URL that a tab is sent to
	Each     bool   `json:"write_each"`     // a write for each command, as most clients do
}

// kinds are the sorts of work, with what they are when nothing else is said.
// The sizes are those of the usual: a short evaluate, a network event, a
// screenshot of a long page.
var kinds = []struct {
	work
	what string
}{
	{work{"commands", 16, 32, 175, 250, 0, "", false}, "short commands, in-flight of them ahead"},
	{work{"events", 1, 1, 175, 450, 20_000, "", false}, "bursts of events"},
	{work{"replies", 1, 1, 175, 64 << 20, 0, "", false}, "large replies, one after the other"},
	{work{"flood", 1, 10_000, 175, 250, 0, "", false}, "short commands, thousands ahead"},
	{work{"stall", 1, 32, 175, 1 << 20, 0, "", false}, "asks for much, reads nothing until the end"},
	{work{"idle", 16, 0, 0, 0, 0, "", false}, "connects and does nothing"},
	{work{"tabs", 1, 1, 0, 0, 0, "data:text/html,cdpload", false}, "opens, loads, pictures and closes tabs"},
}

// mix is all kinds beside one another.
var mix = []string{"commands", "events", "replies", "flood", "stall", "idle", "tabs"}

func kindOf(name string) (work, error) {
	var names []string
	for _, k := range kinds {
		if k.Kind == name {
			return k.work, nil
		}
		names = append(names, k.Kind)
	}
	return work{}, fmt.Errorf("kind %q is none of %s, mix", name, strings.Join(names, ", "))
}

// job is one run: groups of clients, side by side at one address.
type job struct {
	url      string // {i} is the client's number
	groups   []work // the first one is measured, the others are beside it
	duration time.Duration
	pid      int // of a process to measure; 0: none
}

// run connects everybody, lets them work, and counts.
func (j *job) run(ctx context.Context) (*report, error) {
	before, err := j.usage()
	if err != nil {
		return nil, err
	}
	groups := make([]*group, len(j.groups))
	first := 0
	for i, w := range j.groups {
		groups[i] = &group{work: w, clients: make([]*client, w.Clients), errs: make([]error, w.Clients)}
		defer groups[i].close()
		if err := groups[i].connect(ctx, j.url, first); err != nil {
			return nil, err
		}
		first += w.Clients
	}
	r := &report{URL: j.url}
	if j.pid != 0 {
		r.Process = &processReport{Connected: before.RSS, PeakOfRun: resetPeak(j.pid)}
	}
	start, err := j.usage()
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	began := time.Now()
	for _, g := range groups {
		all.Go(func() { g.labour(ctx, began.Add(j.duration)) })
	}
	all.Wait()
	end, err := j.usage()
	if err != nil {
		return nil, err
	}
	r.Process.fill(before, start, end)
	for _, g := range groups {
		r.Groups = append(r.Groups, g.result(began))
		for i, err := range g.errs {
			if err != nil {
				r.Failures = append(r.Failures, fmt.Sprintf("%s client %d: %v", g.Kind, i, err))
			}
		}
	}
	return r, nil
}

func (j *job) usage() (usage, error) {
	if j.pid == 0 {
		return usage{}, nil
	}
	return usageOf(j.pid)
}

// group is clients that do the same.
type group struct {
	work
	clients []*client
	errs    []error
	ended   time.Time
}

// dialsAtOnce keeps the handshakes of a thousand clients from filling the
// listener's queue.
const dialsAtOnce = 32

func (g *group) connect(ctx context.Context, url string, first int) error {
	slots := make(chan struct{}, dialsAtOnce)
	var all sync.WaitGroup
	for i := range g.clients {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			w, err := dial(ctx, strings.ReplaceAll(url, "{i}", strconv.Itoa(first+i)))
			if err != nil {
				g.errs[i] = err
				return
			}
			g.clients[i] = &client{wire: w, each: g.Each}
			g.errs[i] = g.prepare(g.clients[i])
		})
	}
	all.Wait()
	return errors.Join(g.errs...)
}

// prepare brings a client to where its work begins.
func (g *group) prepare(c *client) error {
	switch g.Kind {
	case "idle", "tabs":
		return c.call("", "Browser.getVersion", `{}`, nil)
	}
	if err := c.openPage(); err != nil {
		return err
	}
	const reply, event = 104, 142 // bytes around the payload, in Chrome's own
	if g.Burst > 0 {
		c.burst = g.Burst
		c.repeat("burst", fmt.Sprintf("%d,%d", g.Burst, max(0, g.Size-event)), g.Up)
	} else {
		c.repeat("big", strconv.Itoa(max(0, g.Size-reply)), g.Up)
	}
	return nil
}

func (g *group) labour(ctx context.Context, until time.Time) {
	var all sync.WaitGroup
	for i, c := range g.clients {
		all.Go(func() {
			switch g.Kind {
			case "idle":
				wait(ctx, until)
				g.errs[i] = c.call("", "Browser.getVersion", `{}`, nil)
			case "tabs":
				g.errs[i] = c.tabs(g.Page, until)
			case "stall":
				g.errs[i] = c.stall(ctx, g.InFlight, until)
			default:
				g.errs[i] = c.pipeline(g.InFlight, until)
			}
		})
	}
	all.Wait()
	g.ended = time.Now()
}

// close ends the clients and their pages.
func (g *group) close() {
	var all sync.WaitGroup
	for _, c := range g.clients {
		if c == nil {
			continue
		}
		all.Go(func() {
			if c.target != "" && g.Kind != "tabs" {
				_ = c.closePage() // it goes with its client, if not so
			}
			c.close()
		})
	}
	all.Wait()
}
