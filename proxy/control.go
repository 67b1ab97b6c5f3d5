package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"cdpmux/routing"
)

// serveControl answers what lies under /v1/, in JSON:
//
//	POST /v1/browser/start                  wakes the browser and waits for it
//	POST /v1/browser/stop {"force":bool}    ends it; the answer is the receipt
//	GET  /v1/browser                        its part of the status
//	POST /v1/hold {"name":…,"ttl_s":1800}   keeps it from the idle sweep for that many seconds; 0 ends the hold
//	POST /v1/drain {"drain":bool}           turns newcomers away, or no longer
//	POST /v1/clients/{id}/close             ends a client and closes what is its own
//	POST /v1/clients/{id}/tabs/close        closes its tabs alone
//	GET  /v1/clients/{id}/trace             follows it, a TraceLine each line
//
// Only the first needs no admin token. A problem is told as everywhere.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request, path string) {
	call, id := path, ""
	if rest, ok := strings.CutPrefix(path, "/v1/clients/"); ok {
		id, rest, _ = strings.Cut(rest, "/")
		call = "/v1/clients/{id}/" + rest
	}
	c, known := controls[call]
	switch {
	case !known:
		s.sendProblem(w, s.noSuchCall(path))
	case r.Method != c.method:
		w.Header().Set("Allow", c.method)
		s.sendProblem(w, problem{
			Text: path + " is not for " + r.Method, Kind: unknownCall, Next: "send it with " + c.method, status: http.StatusMethodNotAllowed,
		})
	case call != "/v1/browser/start" && !s.admin(w, r):
	case call == "/v1/clients/{id}/trace":
		s.serveTrace(w, r, id)
	default:
		var body controlBody
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&body); err != nil && err != io.EOF {
			s.sendProblem(w, problemOf(badRequest("the body is not the JSON that this call takes: "+err.Error())))
			return
		}
		body.id = id
		answer, err := c.do(s, r, body)
		if err != nil {
			s.sendProblem(w, problemOf(err))
			return
		}
		text, err := json.Marshal(answer)
		if err != nil {
			sendText(w, http.StatusInternalServerError, err.Error())
			return
		}
		send(w, http.StatusOK, jsonType, string(text)+"\n")
	}
}

const unknownCall = "unknown_call"

// noSuchCall says which calls there are.
func (s *Server) noSuchCall(path string) problem {
	var list []string
	if s.cfg.Leases != nil {
		list = append(list, "POST "+sessionsPath)
	}
	for path, c := range controls {
		list = append(list, c.method+" "+path)
	}
	slices.Sort(list)
	return problem{Text: "no such call: " + path, Kind: unknownCall, Next: "call one of these: " + strings.Join(list, ", "), status: http.StatusNotFound}
}

// badRequest is a call that cannot be meant.
type badRequest string

func (e badRequest) Error() string     { return string(e) }
func (badRequest) FailureKind() string { return "bad_request" }
func (badRequest) Next() string        { return "correct the call" }
func (badRequest) Status() int         { return http.StatusBadRequest }
func (badRequest) Retryable() bool     { return false }

// controlBody has what the calls take.
type controlBody struct {
	Force bool   `json:"force"`
	Drain *bool  `json:"drain"`
	Name  string `json:"name"`
	TTL   int    `json:"ttl_s"` // seconds

	id string // from the path
}

// control is a call by its path.
type control struct {
	method string
	do     func(*Server, *http.Request, controlBody) (any, error)
}

var controls map[string]control

func init() { // not at the declaration: the calls lead back to the table
	controls = map[string]control{
		"/v1/browser/start":           {"POST", (*Server).controlStart},
		"/v1/browser/stop":            {"POST", (*Server).controlStop},
		"/v1/browser":                 {"GET", func(s *Server, _ *http.Request, _ controlBody) (any, error) { return s.Status().Browser, nil }},
		"/v1/hold":                    {"POST", (*Server).controlHold},
		"/v1/drain":                   {"POST", (*Server).controlDrain},
		"/v1/clients/{id}/close":      {"POST", (*Server).controlClient},
		"/v1/clients/{id}/tabs/close": {"POST", (*Server).controlTabs},
		"/v1/clients/{id}/trace":      {"GET", nil}, // its answer has no end
	}
}

func (s *Server) controlStart(r *http.Request, _ controlBody) (any, error) {
	if err := s.refused(); err != nil {
		return nil, err
	}
	if _, err := s.browser(r.Context()); err != nil {
		return nil, err
	}
	return s.Status().Browser, nil
}

func (s *Server) controlStop(r *http.Request, b controlBody) (any, error) {
	receipt, _, err := s.StopBrowser(r.Context(), b.Force)
	return receipt, err
}

func (s *Server) controlHold(_ *http.Request, b controlBody) (any, error) {
	if b.TTL < 0 || b.TTL > 30*24*60*60 {
		return nil, badRequest(fmt.Sprintf("ttl_s %d: 0 to 2592000 seconds (30 days)", b.TTL))
	}
	ttl := time.Duration(b.TTL) * time.Second
	if s.cfg.Life.Hold == nil {
		return nil, errNotOurs
	}
	s.cfg.Life.Hold(b.Name, ttl)
	return map[string]time.Time{"until": time.Now().Add(ttl)}, nil
}

func (s *Server) controlDrain(_ *http.Request, b controlBody) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = b.Drain == nil || *b.Drain
	return map[string]bool{"draining": s.draining}, nil
}

func (s *Server) controlClient(_ *http.Request, b controlBody) (any, error) {
	return s.closeClient(b.id, s.router.CloseClient)
}

func (s *Server) controlTabs(_ *http.Request, b controlBody) (any, error) {
	return s.closeClient(b.id, s.router.CloseTabs)
}

func (s *Server) closeClient(id string, do func(now time.Time, id string, out []routing.Action) (int, []routing.Action)) (any, error) {
	if !validID(id) {
		return nil, badRequest("the client id is none")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tabs, out := do(time.Now(), id, s.actions)
	s.apply(out)
	return map[string]int{"tabs": tabs}, nil
}
