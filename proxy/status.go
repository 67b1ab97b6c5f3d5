package proxy

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"cdpmux/proxy/admin"
	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// Status says what there is now.
func (s *Server) Status() admin.Status {
	refusal := s.refused()
	var view any
	if s.cfg.Life.View != nil {
		view = s.cfg.Life.View()
	}
	health, leases := "ok", (*admin.LeaseStatus)(nil)
	if s.cfg.Leases != nil {
		of := s.cfg.Leases.Status()
		if leases = &of; of.Degraded {
			health = "degraded"
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.router.Status()
	st := admin.Status{
		Health: health, Uptime: int64(time.Since(s.started).Seconds()), LeaseStatus: leases,
		Store: s.cfg.Store, Browser: s.browserStatus(refusal), Clients: []admin.ClientStatus{},
		Counts: admin.Counts{
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
		cs := admin.ClientStatus{
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
func (s *Server) browserStatus(refusal error) admin.BrowserStatus {
	switch {
	case s.cleanup: // also while it is tried again
		return admin.BrowserStatus{State: "cleanup_pending"}
	case s.stopping != nil:
		return admin.BrowserStatus{State: "stopping"}
	case s.up != nil:
		v, _ := s.router.Version()
		return admin.BrowserStatus{State: "ready", Product: v.Product}
	case s.redial.on:
		return admin.BrowserStatus{State: "degraded", Error: s.noBrowser}
	case s.starting != nil:
		return admin.BrowserStatus{State: "starting"}
	}
	if refusal != nil {
		p := problemOf(refusal)
		return admin.BrowserStatus{State: cmp.Or(refusedStates[p.Kind], "stopped"), Error: p.line()}
	}
	return admin.BrowserStatus{State: "stopped", Error: s.noBrowser}
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
