package routing

import (
	"slices"
	"strings"
	"time"
)

// Status is a picture of the tables for the operator.
type Status struct {
	Clients []ClientStatus // by id; the HTTP owner, "", is there when it has tabs
	Stats   Stats
	Strays  int // tabs whose client is gone, and that Chrome has not closed yet
}

// ClientStatus is one client and what is its own.
type ClientStatus struct {
	ID       string
	Conns    []ConnID
	Until    time.Time // end of its grace; zero while it is connected
	Pending  int       // commands that wait for an answer
	Sessions int
	Last     string      // method of its last command
	Tabs     []TabStatus // most recently used first
}

// TabStatus is one tab: its state is ready, navigating, failed or crashed,
// and Error what its client was told of the failure, when it asked.
type TabStatus struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
	Order int    `json:"last_used_order"` // 1 is the one used last
	State string `json:"state"`
	Error string `json:"error,omitempty"`
	Last  string `json:"last_method,omitempty"` // on a session of it
}

var navigationNames = [...]string{navReady: "ready", navLoading: "navigating", navFailed: "failed"}

// Status says what there is now. Titles are as discovery told them last.
func (r *Router) Status() Status {
	st := Status{Stats: r.Stats()}
	pending := map[*client]int{}
	for _, q := range r.requests {
		if q.conn != nil {
			pending[q.conn.client]++
		}
	}
	for _, cl := range r.clients {
		cs := ClientStatus{ID: cl.id, Until: cl.until, Pending: pending[cl], Last: cl.last.String(), Tabs: []TabStatus{}}
		for _, c := range cl.conns {
			cs.Conns = append(cs.Conns, c.id)
			cs.Pending += len(c.held)
			for _, s := range c.sessions {
				if !s.root {
					cs.Sessions++
				}
			}
		}
		for _, t := range slices.Backward(r.tabs(cl)) {
			cs.Tabs = append(cs.Tabs, t.status(len(cs.Tabs)+1))
		}
		if cl.id != "" || len(cs.Tabs) > 0 || len(cs.Conns) > 0 {
			st.Clients = append(st.Clients, cs)
		}
	}
	slices.SortFunc(st.Clients, func(a, b ClientStatus) int { return strings.Compare(a.ID, b.ID) })
	for _, t := range r.targets {
		if t.owner != nil && t.owner.gone && t.isTab() {
			st.Strays++
		}
	}
	return st
}

func (t *target) status(order int) TabStatus {
	st := TabStatus{ID: t.id, Title: t.info.Title, URL: t.info.URL, Order: order, State: navigationNames[t.navigation], Last: t.last.String()}
	switch {
	case t.crashed:
		st.State = "crashed"
	case t.navigation == navFailed:
		st.Error = t.navError
	}
	return st
}

// TargetType is the type of a session's target, "" when it is not known.
func (r *Router) TargetType(session []byte) string {
	if s := r.sessions[string(session)]; s != nil && s.target != nil {
		return s.target.info.Type
	}
	return ""
}
