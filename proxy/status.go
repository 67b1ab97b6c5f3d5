package proxy

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"cdpmux/routing"
)

// Status is what GET /status answers, to who has the admin token:
//
//	{
//	  "store": "demo/1a2b3c4d",
//	  "browser": {"state": "ready", "product": "Chrome/…"},
//	  "clients": [{
//	    "id": "alice", "short": "alice", "state": "connected", "connections": 1,
//	    "pending": 0, "queued_bytes": 0, "sessions": 2,
//	    "tabs": [{"id": "…", "title": "…", "url": "…", "last_used_order": 1, "state": "ready"}]
//	  }],
//	  "downloads": {"active": 0, "arrived": 2, "failed": 0},
//	  "counts": {"conns": 1, "targets": 4, "sessions": 5, "requests": 0, "held": 0, "strays": 0},
//	  "close_reasons": {"client_left": 3}
//	}
//
// A browser is stopped, starting, ready, or degraded: lost, and being sought.
// A client is connected, in grace (until says when its tabs go), or known by
// what it did over HTTP alone; id "" is whoever uses HTTP without a name.
// A tab is ready, navigating, failed (error says why, where its client was
// told) or crashed. Strays are tabs whose client is gone and that Chrome has
// not closed yet. Downloads are of this run of the proxy; error is why the last
// one that failed did.
type Status struct {
	Store        string           `json:"store"`
	Browser      BrowserStatus    `json:"browser"`
	Clients      []ClientStatus   `json:"clients"`
	Downloads    DownloadStatus   `json:"downloads"`
	Counts       Counts           `json:"counts"`
	CloseReasons map[string]int64 `json:"close_reasons"`
}

// BrowserStatus is the browser's part of a Status.
type BrowserStatus struct {
	State   string `json:"state"`
	Product string `json:"product,omitempty"`
	Error   string `json:"error,omitempty"` // why there is none
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
	Sessions    int                 `json:"sessions"`
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
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.router.Status()
	st := Status{
		Store: s.cfg.Store, Browser: s.browserStatus(), Clients: []ClientStatus{},
		Counts: Counts{
			Conns: is.Stats.Conns, Targets: is.Stats.Targets, Sessions: is.Stats.Sessions,
			Requests: is.Stats.Requests, Held: is.Stats.Held, Strays: is.Strays,
		},
		CloseReasons: map[string]int64{}, Downloads: s.downloads,
	}
	st.Downloads.Active = is.Stats.Downloads
	for _, c := range is.Clients {
		cs := ClientStatus{
			ID: c.ID, Short: routing.ShortID(c.ID), State: "http", Until: c.Until,
			Connections: len(c.Conns), Pending: c.Pending, Sessions: c.Sessions, Tabs: c.Tabs,
		}
		switch {
		case len(c.Conns) > 0:
			cs.State = "connected"
		case !c.Until.IsZero():
			cs.State = "grace"
		}
		for _, id := range c.Conns {
			if conn := s.clients[id]; conn != nil {
				waiting, _ := conn.out.state()
				cs.QueuedBytes += waiting
			}
		}
		st.Clients = append(st.Clients, cs)
	}
	for r, n := range s.ended {
		if n > 0 {
			st.CloseReasons[reasons[r].label] = n
		}
	}
	return st
}

func (s *Server) browserStatus() BrowserStatus {
	switch {
	case s.up != nil:
		v, _ := s.router.Version()
		return BrowserStatus{State: "ready", Product: v.Product}
	case s.redial.on:
		return BrowserStatus{State: "degraded", Error: s.noBrowser}
	case s.starting != nil:
		return BrowserStatus{State: "starting"}
	}
	return BrowserStatus{State: "stopped", Error: s.noBrowser}
}

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

// admin lets through who has the admin token. It answers and returns false.
func (s *Server) admin(w http.ResponseWriter, r *http.Request) bool {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.cfg.AdminToken != "" && subtle.ConstantTimeCompare([]byte(given), []byte(s.cfg.AdminToken)) == 1 {
		return true
	}
	body, _ := json.Marshal(problem{
		Text: "this shows what is everybody's: it needs the admin token", Kind: "admin_only",
		Next: "send Authorization: Bearer with what stands in run/<store>.admin of the state directory, or use cdpmux status",
	})
	w.Header().Set("WWW-Authenticate", "Bearer")
	send(w, http.StatusUnauthorized, jsonType, string(body)+"\n")
	return false
}

// count notes how a connection ended.
func (s *Server) count(r reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[r]++
}
