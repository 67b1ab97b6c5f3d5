package proxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// Status is what GET /status answers, to who has the admin token:
//
//	{
//	  "status": "ok", "uptime_s": 812,
//	  "store": "demo/1a2b3c4d",
//	  "browser": {"state": "ready", "product": "Chrome/…"},
//	  "clients": [{
//	    "id": "alice", "short": "alice", "state": "connected", "connections": 1,
//	    "pending": 0, "queued_bytes": 0, "sessions": 2, "last_method": "Page.navigate",
//	    "in_messages": 9, "out_messages": 12, "in_bytes": 1104, "out_bytes": 4711,
//	    "tabs": [{"id": "…", "title": "…", "url": "…", "last_used_order": 1, "state": "ready", "last_method": "Page.navigate"}]
//	  }],
//	  "downloads": {"active": 0, "arrived": 2, "failed": 0},
//	  "turned_away": 0,
//	  "counts": {"conns": 1, "targets": 4, "sessions": 5, "requests": 0, "held": 0, "strays": 0},
//	  "close_reasons": {"client_left": 3},
//	  "recent_closes": [{"at": "…", "client": "alice", "reason": "client_left", "ms": 5120, "received": 12, "sent": 30}],
//	  "draining": false,
//	  "sessions": {…}, "leases": {…}, "launch": {…}, "admission": {…}
//	}
//
// It is degraded when something of a session is left that could not be
// released; see LeaseStatus for the last four.
//
// A browser is stopped, starting, ready, degraded (lost, and being sought),
// stopping, cleanup_pending (something of it is left), refused (it ended too
// often; error says until when) or disabled.
// A client is connected, in grace (until says when its tabs go), or known by
// what it did over HTTP alone; id "" is whoever uses HTTP without a name.
// A tab is ready, navigating, failed (error says why, where its client was
// told) or crashed. Strays are tabs whose client is gone and that Chrome has
// not closed yet. Downloads are of this run of the proxy; error is why the last
// one that failed did.
type Status struct {
	Health       string           `json:"status"` // ok or degraded
	Uptime       int64            `json:"uptime_s"`
	Store        string           `json:"store"`
	Browser      BrowserStatus    `json:"browser"`
	Clients      []ClientStatus   `json:"clients"`
	Downloads    DownloadStatus   `json:"downloads"`
	TurnedAway   int64            `json:"turned_away"` // connections too many, closed before they sent a request
	Counts       Counts           `json:"counts"`
	CloseReasons map[string]int64 `json:"close_reasons"`
	Recent       []Closed         `json:"recent_closes"` // connections, the last one first
	Draining     bool             `json:"draining"`      // newcomers are turned away
	*LeaseStatus
}

// BrowserStatus is the browser's part of a Status.
type BrowserStatus struct {
	State   string `json:"state"`
	Product string `json:"product,omitempty"`
	Error   string `json:"error,omitempty"` // why there is none
	Life    any    `json:"life,omitempty"`  // relaunches, the last stop, holds: see lifecycle.View
}

// ClientStatus is one client of a Status.
type ClientStatus struct {
	ID          string              `json:"id"`
	Short       string              `json:"short"`
	State       string              `json:"state"`
	Until       time.Time           `json:"until,omitzero"`
	Connections int                 `json:"connections"`
	Pending     int                 `json:"pending"`
	QueuedBytes int                 `json:"queued_bytes"`
	InMessages  int64               `json:"in_messages"` // of the connections that there are, as the other three
	OutMessages int64               `json:"out_messages"`
	InBytes     int64               `json:"in_bytes"`
	OutBytes    int64               `json:"out_bytes"`
	Sessions    int                 `json:"sessions"`
	Last        string              `json:"last_method,omitempty"`
	Tabs        []routing.TabStatus `json:"tabs"`
}

// Counts are the sizes of the tables.
type Counts struct {
	Conns    int `json:"conns"`
	Targets  int `json:"targets"`
	Sessions int `json:"sessions"`
	Requests int `json:"requests"`
	Held     int `json:"held"`
	Strays   int `json:"strays"`
}

// Status says what there is now.
func (s *Server) Status() Status {
	refusal := s.refused()
	var view any
	if s.cfg.Life.View != nil {
		view = s.cfg.Life.View()
	}
	health, leases := "ok", (*LeaseStatus)(nil)
	if s.cfg.Leases != nil {
		of := s.cfg.Leases.Status()
		if leases = &of; of.Degraded {
			health = "degraded"
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.router.Status()
	st := Status{
		Health: health, Uptime: int64(time.Since(s.started).Seconds()), LeaseStatus: leases,
		Store: s.cfg.Store, Browser: s.browserStatus(refusal), Clients: []ClientStatus{},
		Counts: Counts{
			Conns: is.Stats.Conns, Targets: is.Stats.Targets, Sessions: is.Stats.Sessions,
			Requests: is.Stats.Requests, Held: is.Stats.Held, Strays: is.Strays,
		},
		CloseReasons: map[string]int64{}, Recent: s.closed.list(), Draining: s.draining,
		Downloads: s.downloads, TurnedAway: s.crowd.TurnedAway(),
	}
	st.Browser.Life = view
	st.Downloads.Active = is.Stats.Downloads
	if leases != nil && s.up != nil {
		v, _ := s.router.Version()
		_, leases.Admission.Version, _ = strings.Cut(v.Product, "/")
	}
	for _, c := range is.Clients {
		cs := ClientStatus{
			ID: c.ID, Short: routing.ShortID(c.ID), State: "http", Until: c.Until,
			Connections: len(c.Conns), Pending: c.Pending, Sessions: c.Sessions, Last: c.Last, Tabs: c.Tabs,
		}
		switch {
		case len(c.Conns) > 0:
			cs.State = "connected"
		case !c.Until.IsZero():
			cs.State = "grace"
		}
		for _, id := range c.Conns {
			if conn := s.clients[id]; conn != nil {
				cs.QueuedBytes += conn.Queued()
				cs.InMessages += conn.Received.Messages.Load()
				cs.OutMessages += conn.Sent.Messages.Load()
				cs.InBytes += conn.Received.Bytes.Load()
				cs.OutBytes += conn.Sent.Bytes.Load()
			}
		}
		st.Clients = append(st.Clients, cs)
	}
	for r, n := range s.closed.count {
		if n > 0 {
			st.CloseReasons[wire.Reason(r).Info().Label] = n
		}
	}
	return st
}

// browserStatus is told why newcomers are refused, if they are.
func (s *Server) browserStatus(refusal error) BrowserStatus {
	switch {
	case s.stopping != nil:
		return BrowserStatus{State: "stopping"}
	case s.cleanup:
		return BrowserStatus{State: "cleanup_pending"}
	case s.up != nil:
		v, _ := s.router.Version()
		return BrowserStatus{State: "ready", Product: v.Product}
	case s.redial.on:
		return BrowserStatus{State: "degraded", Error: s.noBrowser}
	case s.starting != nil:
		return BrowserStatus{State: "starting"}
	}
	if refusal != nil {
		p := problemOf(refusal)
		return BrowserStatus{State: cmp.Or(refusedStates[p.Kind], "stopped"), Error: p.line()}
	}
	return BrowserStatus{State: "stopped", Error: s.noBrowser}
}

// refusedStates name a browser that may not be started now, by the reason.
var refusedStates = map[string]string{"breaker_open": "refused", "store_locked": "disabled"}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		sendText(w, http.StatusMethodNotAllowed, "GET only")
		return
	}
	if !s.admin(w, r) {
		return
	}
	body, _ := json.Marshal(s.Status()) // strings, numbers and times
	send(w, http.StatusOK, jsonType, string(body)+"\n")
}

// lifeView is what the proxy knows of Life.View: the part of its JSON that the
// operator is to see.
type lifeView struct {
	Relaunches  int                  `json:"relaunches"`
	BreakerOpen bool                 `json:"breaker_open"`
	NextTrial   time.Time            `json:"next_trial"`
	Holds       map[string]time.Time `json:"holds"`
	LastStop    *struct {
		Method   string `json:"method"`
		Verified bool   `json:"verified"`
	} `json:"last_stop"`
}

func lifeOf(view any) (l lifeView) {
	text, err := json.Marshal(view)
	if err == nil {
		_ = json.Unmarshal(text, &l) // what is of another form is not shown
	}
	return l
}
