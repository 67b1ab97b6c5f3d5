package admin

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// Snapshot is what a scrape of /metrics reads of a server.
type Snapshot struct {
	Status           Status
	Totals           Totals // with what open connections have carried
	Routed           routing.Totals
	Closed           [wire.ReasonCount]int64 // connections of clients
	BrowserQueue     int                     // bytes that wait for the browser
	WrongCredentials int64
}

// Registry has the metrics of a server, which read is asked for at each scrape,
// and those of the process.
func Registry(read func() Snapshot) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{read}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// collector reads the server's counts when /metrics is asked for. None of its
// labels is free text or a client: each has a closed list of values, but for
// the one store of cdpmux_info.
type collector struct{ read func() Snapshot }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("cdpmux_"+name, help, labels, nil)
}

var (
	descInfo          = desc("info", "Which store this is; always 1.", "store")
	descBrowser       = desc("browser_state", "1 for the state that the browser is in.", "state")
	descStarts        = desc("browser_starts_total", "Attempts to have a browser, by what came of them.", "outcome")
	descStartFailures = desc("browser_start_failures_total", "Attempts to have a browser that failed, by why.", "failure_kind")
	descStops         = desc("browser_stops_total", "Ends of the browser that the proxy brought about, by whether all its processes were seen gone.", "outcome")
	descReconnects    = desc("browser_reconnects_total", "Connections to a browser that still ran after the last connection was lost.")
	descBreaker       = desc("breaker_open", "1 while the budget of relaunches is used up and only a trial now and then is let through.")
	descRelaunches    = desc("breaker_relaunches", "Relaunches that count against the budget.")
	descDraining      = desc("draining", "1 while newcomers are turned away.")

	descClients     = desc("clients", "Clients, by state: connected, in grace, or known by HTTP alone.", "state")
	descConnections = desc("connections", "Open WebSocket connections of clients.")
	descTabs        = desc("tabs", "Tabs of clients, by state.", "state")
	descStrays      = desc("stray_tabs", "Tabs whose client is gone and that Chrome has not closed yet.")
	descTargets     = desc("targets", "Targets of the browser, everybody's.")
	descSessions    = desc("cdp_sessions", "CDP sessions in the browser, the proxy's own among them.")
	descEvictions   = desc("tab_evictions_total", "Tabs closed because their client had more than --tab-cap.")
	descTurnedAway  = desc("connections_turned_away_total", "Connections closed before they sent a request, because too many had sent none.")
	descWrong       = desc("wrong_credentials_total", "Requests with a token or capability that is none of ours.")
	descClosed      = desc("connections_closed_total", "Connections of clients that ended, by why.", "reason")

	descMessages = desc("messages_total", "CDP messages, by direction.", "direction")
	descBytes    = desc("message_bytes_total", "Bytes of CDP messages, by direction.", "direction")
	descPending  = desc("requests_pending", "Commands that the browser has not answered yet, the proxy's own among them.")
	descHeld     = desc("commands_held", "Commands that wait for the browser to be up.")
	descLatency  = desc("command_duration_seconds", "Time from a client's command to its reply, of those that the browser answered.")
	descQueue    = desc("client_queue_bytes", "Bytes that wait to be sent to clients.")
	descMost     = desc("client_queue_max_bytes", "Bytes that wait for the client that most wait for.")
	descUpQueue  = desc("browser_queue_bytes", "Bytes that wait to be sent to the browser.")

	descDownloading = desc("downloads_active", "Downloads under way.")
	descDownloads   = desc("downloads_total", "Downloads of clients that ended, by what came of them.", "outcome")
)

// The states that a label may name.
var (
	browserStates = []string{"stopped", "starting", "ready", "degraded", "stopping", "cleanup_pending", "refused", "disabled"}
	clientStates  = []string{"connected", "grace", "http"}
	tabStates     = []string{"ready", "navigating", "failed", "crashed"}
)

// Describe says nothing: what is collected is checked at each scrape instead.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c collector) Collect(out chan<- prometheus.Metric) {
	snap := c.read()
	st, life := &snap.Status, lifeOf(snap.Status.Browser.Life)
	put := func(kind prometheus.ValueType, d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		put(prometheus.GaugeValue, d, float64(value), labels...)
	}
	total := func(d *prometheus.Desc, value int64, labels ...string) {
		put(prometheus.CounterValue, d, float64(value), labels...)
	}
	gauge(descInfo, 1, st.Store)
	for _, state := range browserStates {
		gauge(descBrowser, one(st.Browser.State == state), state)
	}
	for _, outcome := range startOutcomes {
		total(descStarts, int64(snap.Totals.starts[outcome]), outcome)
	}
	for kind, n := range snap.Totals.failures {
		total(descStartFailures, int64(n), kind)
	}
	for _, outcome := range stopOutcomes {
		total(descStops, int64(snap.Totals.stops[outcome]), outcome)
	}
	total(descReconnects, int64(snap.Totals.reconnects))
	gauge(descBreaker, one(life.BreakerOpen))
	gauge(descRelaunches, life.Relaunches)
	gauge(descDraining, one(st.Draining))

	clients, tabs, queue, most := map[string]int{}, map[string]int{}, 0, 0
	for _, c := range st.Clients {
		clients[c.State]++
		queue += c.QueuedBytes
		most = max(most, c.QueuedBytes)
		for _, t := range c.Tabs {
			tabs[t.State]++
		}
	}
	for _, state := range clientStates {
		gauge(descClients, clients[state], state)
	}
	gauge(descConnections, st.Counts.Conns)
	for _, state := range tabStates {
		gauge(descTabs, tabs[state], state)
	}
	gauge(descStrays, st.Counts.Strays)
	gauge(descTargets, st.Counts.Targets)
	gauge(descSessions, st.Counts.Sessions)
	total(descEvictions, int64(snap.Routed.Evictions))
	total(descTurnedAway, st.TurnedAway)
	total(descWrong, snap.WrongCredentials)
	for r := wire.ClientLeft; r < wire.ReasonCount; r++ {
		total(descClosed, snap.Closed[r], r.Info().Label)
	}

	for p, names := range [peers][2]string{OfClients: {"from_clients", "to_clients"}, OfBrowser: {"from_browser", "to_browser"}} {
		of := snap.Totals.Carried[p]
		total(descMessages, of.Received.Messages, names[0])
		total(descMessages, of.Sent.Messages, names[1])
		total(descBytes, of.Received.Bytes, names[0])
		total(descBytes, of.Sent.Bytes, names[1])
	}
	gauge(descPending, st.Counts.Requests)
	gauge(descHeld, st.Counts.Held)
	out <- histogram(descLatency, &snap.Routed.Latency)
	gauge(descQueue, queue)
	gauge(descMost, most)
	gauge(descUpQueue, snap.BrowserQueue)

	gauge(descDownloading, st.Downloads.Active)
	total(descDownloads, st.Downloads.Arrived, "arrived")
	total(descDownloads, st.Downloads.Failed, "failed")

	if st.LeaseStatus != nil {
		st.LeaseStatus.collect(gauge, total)
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
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
