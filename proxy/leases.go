package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cdpmux/proxy/access"
	"cdpmux/proxy/admin"
)

// Leases are the sessions that callers take at /v1/sessions: client ids that
// admit only who has the capability of their digest. Who keeps them tells the
// Server by Reserve, Release and Free.
type Leases interface {
	// ServeSessions answers a request below /v1/sessions. operator: it came
	// with the admin token.
	ServeSessions(w http.ResponseWriter, r *http.Request, operator bool)

	// Status is their part of the status.
	Status() admin.LeaseStatus
}

const sessionsPath = "/v1/sessions"

func isSessionsPath(path string) bool {
	return path == sessionsPath || strings.HasPrefix(path, sessionsPath+"/")
}

// serveSessions lets those to the leases who have the store token.
func (s *Server) serveSessions(w http.ResponseWriter, r *http.Request, v visitor) {
	if v.level < access.Store {
		sendUnauthenticated(w)
		return
	}
	s.cfg.Leases.ServeSessions(w, r, v.level == access.Admin)
}

// LeaseURLs are where a client with a lease connects, as who sent a request
// sees it.
func (s *Server) LeaseURLs(r *http.Request, client string, digest []byte) (ws, http string) {
	ws = s.base(r, s.cfg.TrustedProxies.Peer(r)) + s.keys().Path(client, digest)
	return ws, strings.Replace(ws, "ws", "http", 1)
}

// Tenant is what a lease gives its client.
type Tenant struct {
	Digest  []byte         // its capability is made with it
	TabCap  *int           // nil: as all; 0: any number
	Grace   *time.Duration // nil: as all
	Closing bool           // nobody is let in any more
}

// tenant is a client id that belongs to a lease. Server.mu guards it.
type tenant struct {
	Tenant
	last time.Time
}

// Reserve gives a place to a client id, which from then on admits only who has
// the capability of the lease's digest. before: the lease is one of an earlier
// proxy, and the id may have tabs already.
func (s *Server) Reserve(id string, t Tenant, before bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !before {
		switch {
		case s.stopping != nil:
			return browserStopping
		case s.tenants[id] != nil, s.router.Present(id), s.upgrading[id] > 0:
			return refusal{problem: problem{
				Text: "the client " + id + " is connected, or its tabs wait for it, without this session", Kind: "client_in_use",
				Next: "choose another client name, or end that client: POST /v1/clients/" + id + "/close", status: http.StatusConflict,
			}}
		case s.cfg.MaxClients > 0 && s.placesTaken() >= s.cfg.MaxClients:
			p := s.fullHouse()
			p.Text = fmt.Sprintf("%d clients and sessions are there, which is the limit", s.cfg.MaxClients)
			p.after = 5 * time.Second
			return refusal{problem: p}
		}
	}
	s.tenants[id] = &tenant{Tenant: t}
	if t.TabCap != nil {
		s.router.SetTabCap(id, *t.TabCap)
	}
	return nil
}

// Free gives the place of a client id back.
func (s *Server) Free(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tenants, id)
	s.router.Uncap(id)
}

// placesTaken counts the client ids that are connected, are connecting or have
// a lease. The lock is held.
func (s *Server) placesTaken() int {
	taken := s.router.LiveClients()
	for id := range s.upgrading {
		if !s.router.HasClient(id) {
			taken++
		}
	}
	for id := range s.tenants {
		if !s.router.HasClient(id) && s.upgrading[id] == 0 {
			taken++
		}
	}
	return taken
}

// digestOf is that of the lease which a client id belongs to; nil is none.
func (s *Server) digestOf(id string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenants[id]; t != nil {
		return t.Digest
	}
	return nil
}

// enters is mayEnter for who does not hold the lock.
func (s *Server) enters(a address) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mayEnter(a)
}

// mayEnter reports whether an address leads to its client: one that belongs to
// a lease must have been opened by that lease's capability, and one that was
// opened so must still belong to it. The lock is held.
func (s *Server) mayEnter(a address) bool {
	t := s.tenants[a.client]
	if t == nil {
		return a.digest == ""
	}
	return !t.Closing && a.digest == string(t.Digest)
}

// seen notes that a client came, asked or left. The lock is held.
func (s *Server) seen(id string) {
	if t := s.tenants[id]; t != nil {
		t.last = time.Now()
	}
}

// refusedTo is refused for one client: whoever has a session may finish while
// newcomers are turned away.
func (s *Server) refusedTo(a address) error {
	err := s.refused()
	if errors.Is(err, errDraining) && a.digest != "" {
		return nil
	}
	return err
}

// Refused says why nobody would be let in now; nil is welcome. The error says
// of itself how to tell it.
func (s *Server) Refused() error {
	err := s.refused()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		err = errShutdown
	}
	return describe(err)
}

// Up has the browser up. cold: it was not before. The error says of itself how
// to tell it.
func (s *Server) Up(ctx context.Context) (cold bool, err error) {
	s.mu.Lock()
	cold = s.up == nil
	s.mu.Unlock()
	_, err = s.browser(ctx)
	return cold, describe(err)
}

// Release ends a client that belongs to a lease, lets nobody in under its id
// any more, and waits until nothing of it is left in the browser, or nothing
// of the browser.
func (s *Server) Release(ctx context.Context, id string) error {
	gone := &leaving{id, make(chan struct{})}
	s.mu.Lock()
	if t := s.tenants[id]; t != nil {
		t.Closing = true
	}
	out := s.router.ReleaseClient(time.Now(), id, s.actions)
	s.leaving = append(s.leaving, gone)
	s.apply(out)
	s.mu.Unlock()
	select {
	case <-gone.done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = slices.DeleteFunc(s.leaving, func(l *leaving) bool { return l == gone })
	switch {
	case s.cleanup:
		return errors.New("processes of the browser are left")
	case s.up == nil:
		return errors.New("the browser is being started or ended")
	}
	return errors.New("tabs of the client are still open")
}

// leaving is a client that is being released.
type leaving struct {
	id   string
	done chan struct{} // closed when nothing of it is left
}

// noteLeft tells who waits for it that a client is gone. The lock is held.
func (s *Server) noteLeft() {
	s.leaving = slices.DeleteFunc(s.leaving, func(l *leaving) bool {
		gone := !s.router.Leaves(l.id)
		if s.up == nil { // its tabs went with the browser, unless that lives on without us
			gone = s.starting == nil && s.stopping == nil && !s.redial.on && !s.cleanup && (gone || !s.cfg.Attached)
		}
		if gone {
			close(l.done)
		}
		return gone
	})
}

// ClientActivity says how many connections and tabs a client has, and when it
// was seen last.
func (s *Server) ClientActivity(id string) (connected, tabs int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	connected, tabs = s.router.Presence(id)
	if t := s.tenants[id]; t != nil {
		last = t.last
	}
	if connected > 0 {
		last = time.Now()
	}
	return connected, tabs, last
}

// refusal is a problem as an error that says of itself how to tell it.
type refusal struct {
	problem
	cause error // may be nil
}

func (e refusal) Unwrap() error             { return e.cause }
func (e refusal) Error() string             { return e.Text }
func (e refusal) FailureKind() string       { return e.Kind }
func (e refusal) Next() string              { return e.problem.Next }
func (e refusal) Status() int               { return e.status }
func (e refusal) Retryable() bool           { return e.problem.Retryable }
func (e refusal) RetryAfter() time.Duration { return cmp.Or(e.after, 5*time.Second) }

// describe makes an error one that says of itself how to tell it.
func describe(err error) error {
	if err == nil {
		return nil
	}
	return refusal{problemOf(err), err}
}

var browserStopping = refusal{problem: problem{
	Text: "the browser is being stopped", Kind: "browser_stopping", Retryable: true,
	Next: "try again when it has stopped", status: http.StatusServiceUnavailable, after: 5 * time.Second,
}}
