package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cdpmux/routing"
)

// serveJSON answers what lies under /json, with the view of the client that
// the address names. Only PUT new makes anything.
func (s *Server) serveJSON(w http.ResponseWriter, r *http.Request, a address, query string) {
	command, arg := "list", ""
	if rest := strings.TrimPrefix(a.path, "/json"); rest != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(rest, "/"); !ok {
			sendJSON(w, http.StatusNotFound, "Malformed query: "+a.prefix+a.path)
			return
		}
		command, arg, _ = strings.Cut(rest, "/")
	}
	switch command {
	case "version":
		s.serveVersion(w, r, a)
	case "list":
		s.serveList(w, r, a, query == "for_tab")
	case "protocol":
		s.serveProtocol(w, r, a)
	case "new":
		if r.Method != http.MethodPut {
			sendJSON(w, http.StatusMethodNotAllowed, "Using unsafe HTTP verb "+r.Method+
				" to invoke /json/new. This action supports only PUT verb.")
			return
		}
		s.serveNew(w, r, a, query)
	case "close":
		s.serveTabCommand(w, r, a, arg, "Target is closing", s.router.CloseTab)
	case "activate":
		s.serveTabCommand(w, r, a, arg, "Target activated", s.router.ActivateTab)
	default:
		sendJSON(w, http.StatusNotFound, "Unknown command: "+command)
	}
}

func (s *Server) serveVersion(w http.ResponseWriter, r *http.Request, a address) {
	v, ok := s.version(w, r, a)
	if !ok {
		return
	}
	socket := a.base
	if a.prefix == "" {
		socket += s.handOut(a.guarded)
	}
	sendJSON(w, http.StatusOK, jsonObject(map[string]string{
		"Browser":              v.Product,
		"Cdpmux-Store":         s.cfg.Store,
		"File-Path-Style":      "posix",
		"Protocol-Version":     v.ProtocolVersion,
		"User-Agent":           v.UserAgent,
		"V8-Version":           v.JSVersion,
		"WebKit-Version":       "537.36 (" + v.Revision + ")", // frozen in Chrome since 2013
		"webSocketDebuggerUrl": socket,
	})+"\n")
}

// handOut makes a client id for whoever asks who they are, and returns its
// path, which is enough by itself as in [Server.clientPath].
func (s *Server) handOut(guarded bool) string {
	id := randomID()
	s.mu.Lock()
	s.handed.add(id)
	s.mu.Unlock()
	if guarded {
		return s.keys().Path(id, nil)
	}
	return "/devtools/browser/" + id
}

// version waits for the browser and for what it says of itself. When that
// cannot be had it answers and returns false.
func (s *Server) version(w http.ResponseWriter, r *http.Request, a address) (routing.Version, bool) {
	err := s.refusedTo(a)
	var up *upstream
	if err == nil {
		up, err = s.browser(r.Context())
	}
	if err != nil {
		s.sendProblem(w, problemOf(err))
		return routing.Version{}, false
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.answer)
	defer cancel()
	select {
	case <-up.known:
	case <-up.Gone():
	case <-ctx.Done():
		s.sendProblem(w, problemOf(noAnswer(ctx)))
		return routing.Version{}, false
	}
	s.mu.Lock()
	v, known := s.router.Version()
	s.mu.Unlock()
	if !known {
		s.sendProblem(w, problemOf(errLost))
	}
	return v, known
}

func noAnswer(ctx context.Context) error {
	return fmt.Errorf("browser does not answer: %w", ctx.Err())
}

func (s *Server) serveList(w http.ResponseWriter, r *http.Request, a address, forTab bool) {
	v, ok := s.version(w, r, a)
	if !ok {
		return
	}
	_, ok = s.ask(w, r, a, func(token uint64) []routing.Action {
		return s.router.Refresh(time.Now(), token, s.actions)
	})
	if !ok {
		return
	}
	var entries []string
	for _, t := range s.list(a, forTab) {
		entries = append(entries, targetJSON(t, v, a.base))
	}
	sendJSON(w, http.StatusOK, "[ "+strings.Join(entries, ", ")+" ]\n")
}

// list is the client's own targets; none when a lease has taken its id since.
func (s *Server) list(a address, forTab bool) []routing.TargetView {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mayEnter(a) {
		return nil
	}
	return s.router.List(a.client, forTab)
}

func (s *Server) serveNew(w http.ResponseWriter, r *http.Request, a address, query string) {
	v, ok := s.version(w, r, a)
	if !ok {
		return
	}
	address, forTab := newTabQuery(query)
	result, ok := s.ask(w, r, a, func(token uint64) []routing.Action {
		return s.router.NewTab(time.Now(), a.client, address, forTab, token, s.actions)
	})
	if !ok {
		return
	}
	if result.Err != "" {
		status := http.StatusInternalServerError
		if result.Refused {
			status = http.StatusForbidden
		}
		sendJSON(w, status, "Could not create new page: "+result.Err)
		return
	}
	for _, t := range s.list(a, forTab) {
		if t.ID == result.TargetID {
			t.Title = "" // Chrome speaks of the moment in which it was made
			if forTab {
				t.URL = ""
			}
			sendJSON(w, http.StatusOK, targetJSON(t, v, a.base)+"\n")
			return
		}
	}
	sendJSON(w, http.StatusInternalServerError, "Could not create new page: it was closed at once")
}

// newTabQuery reads the query of /json/new: an address, raw or escaped, behind
// "for_tab" when a tab target is wanted. What is no address is about:blank.
func newTabQuery(query string) (address string, forTab bool) {
	if rest, ok := strings.CutPrefix(query, "for_tab"); ok && (rest == "" || rest[0] == '&') {
		query, forTab = strings.TrimPrefix(rest, "&"), true
	}
	address = query
	if plain, err := url.PathUnescape(query); err == nil {
		address = plain
	}
	if scheme, _, ok := strings.Cut(address, ":"); !ok || scheme == "" || strings.ContainsAny(scheme, "/?# ") {
		address = "about:blank"
	}
	return address, forTab
}

// tabCommand is an entry point of the Router that acts on one target.
type tabCommand func(now time.Time, client, target string, token uint64, out []routing.Action) []routing.Action

func (s *Server) serveTabCommand(w http.ResponseWriter, r *http.Request, a address, target, done string, command tabCommand) {
	result, ok := s.ask(w, r, a, func(token uint64) []routing.Action {
		return command(time.Now(), a.client, target, token, s.actions)
	})
	switch {
	case !ok:
	case result.Refused:
		sendJSON(w, http.StatusForbidden, result.Err)
	case strings.HasPrefix(result.Err, "No such target id: "):
		sendJSON(w, http.StatusNotFound, result.Err)
	case result.Err != "":
		sendJSON(w, http.StatusInternalServerError, result.Err)
	default:
		sendJSON(w, http.StatusOK, done)
	}
}

// ask is outcome for a client that may be told at once why there is none. Then
// it answers and returns false.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, a address, start func(token uint64) []routing.Action) (routing.Result, bool) {
	out := false
	result, err := s.outcome(r, func(token uint64) []routing.Action {
		if out = !s.mayEnter(a); out { // a lease may have come while the browser was awaited
			return append(s.actions, routing.Action{Kind: routing.Answer, Token: token})
		}
		return start(token)
	})
	if out {
		sendUnauthenticated(w)
		return result, false
	}
	if err != nil {
		s.sendProblem(w, problemOf(err))
	}
	return result, err == nil
}

// outcome starts something whose outcome comes later as an Answer, and waits for it.
func (s *Server) outcome(r *http.Request, start func(token uint64) []routing.Action) (routing.Result, error) {
	done := make(chan routing.Result, 1)
	s.mu.Lock()
	s.lastToken++
	token := s.lastToken
	s.requests[token] = done
	s.apply(start(token))
	s.mu.Unlock()
	s.cfg.Audit.wait(r.Context().Done())

	ctx, cancel := context.WithTimeout(r.Context(), s.limits.answer)
	defer cancel()
	select {
	case result := <-done:
		return result, nil
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.requests, token)
		s.mu.Unlock()
		return routing.Result{}, noAnswer(ctx)
	}
}

// servePage serves a page socket. A page that is not the client's is refused
// before the upgrade, as Chrome refuses one that does not exist.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request, a address) {
	for _, t := range s.list(a, true) {
		if t.ID == a.page {
			s.serveClient(w, r, a)
			return
		}
	}
	sendText(w, http.StatusInternalServerError, "No such target id: "+a.page)
}

// localAddr is where a request came in.
func localAddr(r *http.Request) net.Addr {
	return r.Context().Value(http.LocalAddrContextKey).(net.Addr)
}
