package admin

import (
	"encoding/json"
	"time"

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
	Life    any    `json:"life,omitempty"`  // relaunches, the last stop, holds: its JSON is that of lifecycle.View
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

// DownloadStatus is the downloads' part of a [Status].
type DownloadStatus struct {
	Active  int    `json:"active"`
	Arrived int64  `json:"arrived"`
	Failed  int64  `json:"failed"`
	Error   string `json:"error,omitempty"` // of the last that failed
}

// Closed is a connection that ended.
type Closed struct {
	At       time.Time `json:"at"`
	Client   string    `json:"client"`         // its short id
	Page     bool      `json:"page,omitempty"` // it was a page socket
	Reason   string    `json:"reason"`         // label of the table of reasons
	Level    string    `json:"level"`          // as of its line in the log
	MS       int64     `json:"ms"`             // how long it lasted
	Received int64     `json:"received"`       // messages from the client
	Sent     int64     `json:"sent"`
}

// Duration is how long it lasted.
func (c Closed) Duration() time.Duration { return time.Duration(c.MS) * time.Millisecond }

// life is the part of BrowserStatus.Life that the operator is shown.
type life struct {
	Relaunches  int                  `json:"relaunches"`
	BreakerOpen bool                 `json:"breaker_open"`
	NextTrial   time.Time            `json:"next_trial"`
	Holds       map[string]time.Time `json:"holds"`
	LastStop    *struct {
		Method   string `json:"method"`
		Verified bool   `json:"verified"`
	} `json:"last_stop"`
}

func lifeOf(view any) (l life) {
	text, err := json.Marshal(view)
	if err == nil {
		_ = json.Unmarshal(text, &l) // what is of another form is not shown
	}
	return l
}
