package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// problem is the one form in which HTTP clients are told why something that
// they may ask for cannot be had now.
type problem struct {
	Text      string `json:"error"`
	Kind      string `json:"failure_kind"`
	Retryable bool   `json:"retryable"`
	Next      string `json:"next"`

	status int
	after  time.Duration // for Retry-After; 0: as usual
}

var (
	errStartTimeout = errors.New("browser is not up")
	errDraining     = errors.New("the operator lets nobody in")
	errShutdown     = errors.New("proxy is shutting down")
	errStopped      = errors.New("browser stopped")
	errLost         = errors.New("browser connection lost")
	errSilent       = errors.New("browser does not answer; whether it was carried out is unknown")
)

// problemOf describes why there is no browser. The kind and the next step are
// the error's own where it has them.
func problemOf(err error) problem {
	p := problem{
		Text: err.Error(), Kind: "browser_unreachable", Retryable: true,
		Next: "see the log of cdpmux, then try again", status: http.StatusServiceUnavailable,
	}
	var kind interface{ FailureKind() string }
	var next interface{ Next() string }
	var told interface {
		Status() int
		Retryable() bool
	}
	var wait interface{ RetryAfter() time.Duration }
	switch {
	case errors.As(err, &kind):
		p.Kind = kind.FailureKind()
		if errors.As(err, &told) {
			p.status, p.Retryable = told.Status(), told.Retryable()
		}
		if errors.As(err, &wait) {
			p.after = wait.RetryAfter()
		}
		if errors.As(err, &next) {
			p.Next = next.Next()
		}
	case errors.Is(err, errStartTimeout):
		p.Kind = launchTimeout
	case errors.Is(err, context.DeadlineExceeded):
		p.status = http.StatusGatewayTimeout
	case errors.Is(err, errDraining):
		p.Kind, p.Next = "draining", "try again later"
	case errors.Is(err, errNotOurs):
		p.Kind, p.Retryable, p.Next, p.status = "browser_in_use", false, "end it where it was started", http.StatusConflict
	case errors.Is(err, errShutdown), errors.Is(err, context.Canceled):
		p.Text, p.Kind, p.Next = errShutdown.Error(), "draining", "try again when it is up"
	}
	if p.Kind == launchTimeout {
		p.status = http.StatusGatewayTimeout
	}
	return p
}

const launchTimeout = "launch_timeout"

// fullHouse is the refusal of a client too many.
func (s *Server) fullHouse() problem {
	return problem{
		Text: fmt.Sprintf("%d clients are connected, which is the limit", s.cfg.MaxClients),
		Kind: "capacity_unavailable", Retryable: true,
		Next:   "end a client, or start cdpmux with a larger --max-clients",
		status: http.StatusServiceUnavailable,
	}
}

// line is the problem as one line of text, for CDP errors.
func (p problem) line() string { return fmt.Sprintf("%s: %s; %s", p.Kind, p.Text, p.Next) }

func (s *Server) sendProblem(w http.ResponseWriter, p problem) {
	body, _ := json.Marshal(p) // strings and a bool
	if p.Retryable || p.after > 0 || p.status == http.StatusServiceUnavailable {
		after := cmp.Or(p.after, s.limits.retry)
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	send(w, p.status, jsonType, string(body)+"\n")
}
