package lease

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Path is where the calls are:
//
//	POST /v1/sessions                  makes a session, or finds it again
//	GET  /v1/sessions                  lists them, to the operator
//	GET  /v1/sessions/{id}             shows it; X-Session-Token has its token
//	POST /v1/sessions/{id}/close       closes it
//	POST /v1/sessions/{id}/heartbeat   keeps it from expiring; X-Session-Token
const Path = "/v1/sessions"

// TokenHeader has the close token where there is no body.
const TokenHeader = "X-Session-Token"

// ServeSessions answers a request below [Path] of somebody who may ask at all.
func (r *Registry) ServeSessions(w http.ResponseWriter, req *http.Request, operator bool) {
	rest := strings.TrimPrefix(req.URL.Path, Path)
	id, call, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	token := Token{req.Header.Get(TokenHeader)}
	switch req.Method + " " + call {
	case "POST ":
		if id == "" && rest == "" {
			r.serveCreate(w, req)
			return
		}
	case "GET ":
		switch {
		case rest == "" && operator:
			send(w, http.StatusOK, map[string]any{"sessions": r.List()})
			return
		case rest == "":
			sendError(w, errOperator)
			return
		case id != "":
			r.serveShow(w, req, id, token)
			return
		}
	case "POST close":
		r.serveClose(w, req, id, operator)
		return
	case "POST heartbeat":
		if err := r.Heartbeat(id, token); err != nil {
			sendError(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	switch {
	case rest == "":
		w.Header().Set("Allow", "GET, POST")
	case call == "close", call == "heartbeat":
		w.Header().Set("Allow", "POST")
	case id != "" && call == "":
		w.Header().Set("Allow", "GET")
	default:
		sendError(w, errNoCall)
		return
	}
	sendError(w, errMethod)
}

// maxBody is above every request that can be meant.
const maxBody = 1 << 16

// body reads a request's body; one too large reads as none.
func body(req *http.Request) []byte {
	text, err := io.ReadAll(io.LimitReader(req.Body, maxBody+1))
	if err != nil || len(text) > maxBody {
		return nil
	}
	return text
}

func (r *Registry) serveCreate(w http.ResponseWriter, req *http.Request) {
	q, bad := parseCreate(body(req))
	switch {
	case len(bad) > 0:
		sendError(w, invalid(bad))
		return
	case q.Store != "" && q.Store != r.cfg.Store && q.Store != r.cfg.ID:
		sendError(w, r.unknownStore())
		return
	}
	ctx, cancel := waiting(req, q.Wait)
	defer cancel()
	s, replayed, err := r.Create(ctx, q)
	switch {
	case errors.Is(err, ErrPending):
		w.Header().Set("Location", r.cfg.Prefix+Path+"/"+q.ID)
		send(w, http.StatusAccepted, underWay{q.ID, Creating})
	case err != nil:
		sendError(w, err)
	default:
		status := http.StatusCreated
		if s.Replayed = replayed; replayed {
			status = http.StatusOK
		}
		r.sendSession(w, req, status, s)
	}
}

// underWay is a session that is not ready.
type underWay struct {
	ID    string `json:"session_id"`
	State State  `json:"state"`
}

// waiting ends with the request, and after its time.
func waiting(req *http.Request, wait time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(req.Context(), wait)
}

func (r *Registry) sendSession(w http.ResponseWriter, req *http.Request, status int, s Session) {
	s.WS, s.HTTP = r.world.URLs(req, s.client, s.digest)
	send(w, status, s)
}

func (r *Registry) serveShow(w http.ResponseWriter, req *http.Request, id string, token Token) {
	s, err := r.Show(id, token)
	switch {
	case err != nil:
		sendError(w, err)
	case s.State != Ready:
		send(w, http.StatusOK, underWay{id, s.State})
	default:
		s.Replayed = true
		r.sendSession(w, req, http.StatusOK, s)
	}
}

func (r *Registry) serveClose(w http.ResponseWriter, req *http.Request, id string, operator bool) {
	q, bad := parseClose(id, body(req), operator)
	if len(bad) > 0 {
		sendError(w, invalid(bad))
		return
	}
	ctx, cancel := waiting(req, q.Wait)
	defer cancel()
	out, err := r.Stop(ctx, q, operator)
	switch {
	case errors.Is(err, ErrPending):
		send(w, http.StatusAccepted, map[string]any{"session_id": id, "closed": false, "status": "closing"})
	case err != nil:
		sendError(w, err)
	default:
		status := "closed"
		if out.Already {
			status = "already_closed"
		}
		send(w, http.StatusOK, map[string]any{"session_id": id, "closed": true, "status": status, "receipt": out.Receipt})
	}
}
