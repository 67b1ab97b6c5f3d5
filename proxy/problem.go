package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// problem is the one form in which HTTP clients are told why something that
// they may ask for cannot be had now.
type problem struct {
	Text      string `json:"error"`
	Kind      string `json:"failure_kind"`
	Retryable bool   `json:"retryable"`
	Next      string `json:"next"`

	status int
}

var (
	errStartTimeout = errors.New("browser is not up")
	errShutdown     = errors.New("proxy is shutting down")
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
	switch {
	case errors.As(err, &kind):
		p.Kind = kind.FailureKind()
		p.Retryable = !slices.Contains(lasting, p.Kind)
		if errors.As(err, &next) {
			p.Next = next.Next()
		}
	case errors.Is(err, errStartTimeout):
		p.Kind = launchTimeout
	case errors.Is(err, context.DeadlineExceeded):
		p.status = http.StatusGatewayTimeout
	case errors.Is(err, errShutdown), errors.Is(err, context.Canceled):
		p.Text, p.Kind, p.Next = errShutdown.Error(), "draining", "try again when it is up"
	}
	if p.Kind == launchTimeout {
		p.status = http.StatusGatewayTimeout
	}
	return p
}

const launchTimeout = "launch_timeout"

// lasting are the kinds of failure that waiting does not mend.
var lasting = []string{
	"browser_missing", "launch_sandbox", "no_display", "profile_denied", "profile_foreign_host", "profile_invalid", "tmpdir_too_long",
}

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
	w.Header().Set("Retry-After", strconv.Itoa(int(s.limits.retry.Seconds())))
	send(w, p.status, jsonType, string(body)+"\n")
}
