package proxy

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// serveMetrics answers GET /metrics, to who has the admin token.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		sendText(w, http.StatusMethodNotAllowed, "GET only")
	case s.admin(w, r):
		s.metrics().ServeHTTP(w, r)
	}
}

func (s *Server) newMetrics() http.Handler {
	return promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{ErrorLog: errorLog{s}})
}

// registry has this server's own metrics, and those of the process.
func (s *Server) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

type errorLog struct{ s *Server }

func (l errorLog) Println(v ...any) { l.s.log.Error().Msgf("metrics: %v", v) }

// peer is who is at the other end of a WebSocket.
type peer uint8

const (
	ofClients peer = iota
	ofBrowser
	peers
)

// carried is what connections that are over have carried.
type carried struct {
	received, sent struct{ messages, bytes int64 }
}

func (c *carried) add(l *wire.Link) {
	c.received.messages += l.Received.Messages.Load()
	c.received.bytes += l.Received.Bytes.Load()
	c.sent.messages += l.Sent.Messages.Load()
	c.sent.bytes += l.Sent.Bytes.Load()
}

// totals are the counts of this run that nothing else keeps. Guarded by Server.mu.
type totals struct {
	carried    [peers]carried
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

// reached counts an attempt to get a browser. started: it was not there
// before; again: another connection was.
func (t *totals) reached(started, again bool, err error) {
	switch {
	case err != nil:
		add(&t.starts, "failed")
		add(&t.failures, problemOf(err).Kind)
	case started:
		add(&t.starts, "started")
	case again:
		t.reconnects++
	default:
		add(&t.starts, "adopted")
	}
}

// stopped counts an end of the browser.
func (t *totals) stopped(verified bool) {
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

// snapshot is what a scrape reads of the server, beside its Status.
type snapshot struct {
	totals
	routing.Totals
	closed        [wire.ReasonCount]int64
	browserQueue  int
	tabs, clients map[string]int // by state
	queue, most   int            // bytes that wait for clients: all, and for one
}

func (s *Server) snapshot() (Status, lifeView, snapshot) {
	st := s.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := snapshot{
		totals: s.totals, Totals: s.router.Totals(), closed: s.closed.count,
		tabs: map[string]int{}, clients: map[string]int{},
	}
	snap.starts, snap.failures, snap.stops = copied(s.totals.starts), copied(s.totals.failures), copied(s.totals.stops)
	for l, p := range s.links {
		snap.carried[p].add(l)
	}
	if s.up != nil {
		snap.browserQueue = s.up.Queued()
	}
	for _, c := range st.Clients {
		snap.clients[c.State]++
		snap.queue += c.QueuedBytes
		snap.most = max(snap.most, c.QueuedBytes)
		for _, t := range c.Tabs {
			snap.tabs[t.State]++
		}
	}
	return st, lifeOf(st.Browser.Life), snap
}

func copied(m map[string]int) map[string]int {
	c := make(map[string]int, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// histogram is the waits in the form that Prometheus wants.
func histogram(d *prometheus.Desc, l *routing.Latency) prometheus.Metric {
	buckets, n := make(map[float64]uint64, len(routing.LatencyBounds)), uint64(0)
	for i, bound := range routing.LatencyBounds {
		n += l.Buckets[i]
		buckets[bound.Seconds()] = n
	}
	n += l.Buckets[len(routing.LatencyBounds)]
	return prometheus.MustNewConstHistogram(d, n, l.Sum.Seconds(), buckets)
}

// uptime is for how long the browser's connection is up; 0 when it is not.
func (s *Server) uptime(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up == nil {
		return 0
	}
	return now.Sub(s.since)
}
