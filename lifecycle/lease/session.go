package lease

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Session is a lease as its holder sees it.
type Session struct {
	ID          string    `json:"session_id"`
	Store       string    `json:"store"`
	State       State     `json:"state"`
	Replayed    bool      `json:"replayed"`
	Incarnation string    `json:"incarnation"` // of the browser that it began with
	WS          string    `json:"ws_url"`
	HTTP        string    `json:"http_url"`
	Created     time.Time `json:"created_at"`
	Active      time.Time `json:"last_activity_at"`
	Ownership   string    `json:"ownership"`
	Connected   int       `json:"clients_connected"`
	Tabs        int       `json:"tabs"`
	Receipt     Receipt   `json:"receipt"` // of its start

	client string
	digest []byte
}

// session shows a lease that is ready. ok is false when it is not.
func (r *Registry) session(rec *record) (s Session, ok bool) {
	r.mu.Lock()
	if rec.state != Ready {
		r.mu.Unlock()
		return Session{}, false
	}
	s = Session{
		ID: rec.id, Store: r.cfg.Store, State: rec.state, Incarnation: rec.receipt.Incarnation,
		Created: rec.created.UTC().Truncate(time.Second), Active: rec.touched.UTC(), Ownership: Retained, Receipt: rec.receipt,
		client: rec.client.Name, digest: rec.digest,
	}
	r.mu.Unlock()
	a := r.world.Activity(s.client)
	s.Connected, s.Tabs, s.Active = a.Connected, a.Tabs, later(s.Active, a.Last.UTC()).Truncate(time.Second)
	return s, true
}

// Show finds a lease for who has its token. While it is not ready, the session
// has its id and its state alone.
func (r *Registry) Show(id string, token Token) (Session, error) {
	rec, err := r.find(id, token)
	if err != nil {
		return Session{}, err
	}
	if s, ok := r.session(rec); ok {
		return s, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.state == Closed {
		return Session{}, errGone
	}
	return Session{ID: id, State: rec.state}, nil
}

// Heartbeat keeps a lease from expiring.
func (r *Registry) Heartbeat(id string, token Token) error {
	rec, err := r.find(id, token)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec.unwanted {
		return errGone
	}
	rec.touched = r.cfg.Now()
	return nil
}

// find looks for a lease. A tombstone is shown to who has its token alone: to
// all others the id looks as if it had never been.
func (r *Registry) find(id string, token Token) (*record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.records[id]
	switch {
	case rec == nil:
		return nil, errUnknown
	case rec.state == Closed && !rec.opens(token.text), rec.tomb && !rec.opens(token.text):
		return nil, errUnknown
	case !rec.opens(token.text):
		return nil, errForbidden
	case rec.state == Closed:
		return nil, errGone
	}
	return rec, nil
}

// Listed is a lease as the operator sees it.
type Listed struct {
	ID        string    `json:"session_id"`
	Client    string    `json:"client"`
	State     State     `json:"state"`
	Created   time.Time `json:"created_at"`
	Active    time.Time `json:"last_activity_at,omitzero"`
	Connected int       `json:"clients_connected"`
	Tabs      int       `json:"tabs"`
	Attempts  int       `json:"attempts,omitempty"` // of its release
	Survivors int       `json:"survivors,omitempty"`
	Late      bool      `json:"late,omitempty"`
}

// List lists what is not closed, oldest first.
func (r *Registry) List() []Listed {
	list := []Listed{}
	r.mu.Lock()
	for _, rec := range r.records {
		if rec.state != Closed && !rec.tomb {
			list = append(list, Listed{
				ID: rec.id, Client: rec.client.Name, State: rec.state, Created: rec.created.UTC(), Active: rec.touched.UTC(),
				Attempts: rec.attempts, Survivors: rec.survivors, Late: rec.late,
			})
		}
	}
	r.mu.Unlock()
	for i := range list {
		a := r.world.Activity(list[i].Client)
		list[i].Connected, list[i].Tabs, list[i].Active = a.Connected, a.Tabs, later(list[i].Active, a.Last.UTC())
	}
	slices.SortFunc(list, func(a, b Listed) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return list
}
