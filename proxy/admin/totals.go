package admin

import (
	"maps"

	"cdpmux/proxy/wire"
)

// Peer is who is at the other end of a WebSocket.
type Peer uint8

// The peers.
const (
	OfClients Peer = iota
	OfBrowser
	peers
)

// Carried is what connections have carried.
type Carried struct {
	Received, Sent struct{ Messages, Bytes int64 }
}

// Add counts what a connection has carried.
func (c *Carried) Add(l *wire.Link) {
	c.Received.Messages += l.Received.Messages.Load()
	c.Received.Bytes += l.Received.Bytes.Load()
	c.Sent.Messages += l.Sent.Messages.Load()
	c.Sent.Bytes += l.Sent.Bytes.Load()
}

// Totals are the counts of this run that nothing else keeps.
type Totals struct {
	Carried    [peers]Carried // by connections that are over
	starts     map[string]int // by outcome
	failures   map[string]int // of starts, by kind
	reconnects int
	stops      map[string]int // by outcome
}

// The outcomes of a start and of a stop.
var (
	startOutcomes = []string{"started", "adopted", "failed"}
	stopOutcomes  = []string{"verified", "unverified"}
)

// Reached counts an attempt to get a browser that did. started: it was not
// there before; again: another connection was.
func (t *Totals) Reached(started, again bool) {
	switch {
	case started:
		add(&t.starts, "started")
	case again:
		t.reconnects++
	default:
		add(&t.starts, "adopted")
	}
}

// Failed counts one that did not, by its failure kind.
func (t *Totals) Failed(kind string) {
	add(&t.starts, "failed")
	add(&t.failures, kind)
}

// Stopped counts an end of the browser.
func (t *Totals) Stopped(verified bool) {
	outcome := "unverified"
	if verified {
		outcome = "verified"
	}
	add(&t.stops, outcome)
}

func add(counts *map[string]int, key string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[key]++
}

// Clone is a copy that nobody counts on.
func (t *Totals) Clone() Totals {
	c := *t
	c.starts, c.failures, c.stops = maps.Clone(t.starts), maps.Clone(t.failures), maps.Clone(t.stops)
	return c
}
