package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cdpmux/lifecycle"
)

var (
	errForbidden  = &lifecycle.Failure{Kind: lifecycle.SessionForbidden, Text: "the session has another close token"}
	errConflict   = &lifecycle.Failure{Kind: lifecycle.SessionConflict, Text: "the session was asked for with other values"}
	errClosed     = &lifecycle.Failure{Kind: lifecycle.SessionClosed, Text: "the session is closed"}
	errGone       = goneError{errClosed}
	errUnfinished = &lifecycle.Failure{Kind: lifecycle.SessionReleaseFailed, Text: "what the session held before is not released yet"}
	errUnknown    = &lifecycle.Failure{Kind: lifecycle.UnknownSession, Text: "no such session"}
	errNoCall     = &lifecycle.Failure{Kind: lifecycle.UnknownCall, Text: "no such call of sessions"}
	errMethod     = methodError{&lifecycle.Failure{Kind: lifecycle.UnknownCall, Text: "this call of sessions has another method"}}
	errOperator   = &lifecycle.Failure{Kind: lifecycle.SessionForbidden, Text: "this lists everybody's sessions: it needs the admin token", Hint: "use cdpmux session list"}
)

// goneError is a session that was closed, told to who asks for it.
type goneError struct{ *lifecycle.Failure }

func (goneError) Status() int { return http.StatusGone }

// methodError is a call that there is, but not by this method.
type methodError struct{ *lifecycle.Failure }

func (methodError) Status() int { return http.StatusMethodNotAllowed }

// unwritten says that nothing is promised, because the disk does not take it.
// Where the disk has the file is nothing for a caller.
func unwritten(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return &lifecycle.Failure{Kind: lifecycle.StateUnwritable, Text: fmt.Sprintf("the session could not be written down: %v", err)}
}

// unknownStore says that the request is for somebody else.
func (r *Registry) unknownStore() error {
	return &lifecycle.Failure{Kind: lifecycle.UnknownStore, Text: "this is the store " + r.cfg.Store}
}

// invalid names fields that cannot be taken, and none of their values.
func invalid(bad []string) error {
	return &lifecycle.Failure{Kind: lifecycle.InvalidRequest, Text: "cannot be taken: " + strings.Join(bad, ", ")}
}

// failure is what an error may say of itself: see lifecycle.Failure.
type failure interface {
	FailureKind() string
	Next() string
	Status() int
	Retryable() bool
	RetryAfter() time.Duration
}

// problem is the one form in which errors are told.
type problem struct {
	Text      string `json:"error"`
	Kind      string `json:"failure_kind"`
	Retryable bool   `json:"retryable"`
	Next      string `json:"next"`
}

// unreleased is the problem of a close that has to be repeated.
type unreleased struct {
	Closed bool `json:"closed"` // false
	problem
	Survivors int `json:"survivors"`
	Attempts  int `json:"attempts"`
}

// sendError tells an error. What does not describe itself is told as a failed
// launch: nothing else fails here without saying how.
func sendError(w http.ResponseWriter, err error) {
	var f failure
	if !errors.As(err, &f) {
		f = &lifecycle.Failure{Kind: lifecycle.LaunchFailed, Text: err.Error()}
	}
	p := problem{Text: err.Error(), Kind: f.FailureKind(), Retryable: f.Retryable(), Next: f.Next()}
	if f.Status() == http.StatusServiceUnavailable || f.Retryable() {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter().Seconds()))))
	}
	var failed *ReleaseError
	if errors.As(err, &failed) {
		send(w, f.Status(), unreleased{problem: p, Survivors: failed.Survivors, Attempts: failed.Attempts})
		return
	}
	send(w, f.Status(), p)
}

func send(w http.ResponseWriter, status int, body any) {
	text, _ := json.Marshal(body) // our own types
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
