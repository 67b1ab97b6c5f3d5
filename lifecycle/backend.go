package lifecycle

import (
	"context"
	"time"
)

// Backend is one way to have a browser. Its methods may be called from any
// goroutine; doc.go says what each of them promises.
type Backend interface {
	Start(ctx context.Context) (Endpoint, error)
	Stop(ctx context.Context) Receipt
	Probe(ctx context.Context) error
}

// Endpoint is where a browser answers.
type Endpoint struct {
	WS          string  // its browser-level WebSocket; whoever knows it can go round the proxy
	Incarnation string  // names this very browser, one life long; empty: not known
	Adopted     bool    // it was there before its proxy
	Stages      []Stage // how a launch went; none when there was no launch

	// Ending is closed when the browser has ended, or is about to, although it
	// may answer for a moment more; nil: nobody can tell.
	Ending <-chan struct{}
}

// Gate is asked by a backend right before each launch, with the end that the
// launch follows, as far as the backend saw it. It may wait, or refuse.
// started is called when the launch is over, with its error.
type Gate func(ctx context.Context, after End, why string) (started func(error), err error)

// How a stop went.
const (
	MethodNone     = "none"     // there was no browser of ours
	MethodGraceful = "graceful" // it ended by itself after Browser.close, the end of its pipe, or SIGINT
	MethodForced   = "forced"   // it had to be killed
	MethodCrashed  = "crashed"  // it ended without having been asked
)

// Receipt is what was seen of a browser's end.
type Receipt struct {
	Incarnation string   `json:"incarnation,omitempty"`
	Method      string   `json:"method"`
	Stages      []Stage  `json:"stages,omitempty"`
	ElapsedMS   int64    `json:"elapsed_ms"`
	RootExit    string   `json:"root_exit,omitempty"` // "exit 0", "signal: killed"
	ExitType    string   `json:"exit_type,omitempty"` // Chrome's own word in its Preferences: Normal, SessionEnded, Crashed
	Escalated   bool     `json:"escalated"`           // more than the first polite request was needed
	Killed      int      `json:"killed"`              // processes that got SIGKILL
	Survivors   int      `json:"survivors"`
	Left        []int    `json:"left,omitempty"`    // their pids
	Removed     []string `json:"removed,omitempty"` // singleton, port_file, tmpdir, cgroup
	Verified    bool     `json:"verified"`          // no process of the browser is left
	DataRisk    bool     `json:"data_risk"`         // cookies of the last 30 s may be lost
}

// Stage is one step of a start or a stop.
type Stage struct {
	Name string `json:"stage"`
	MS   int64  `json:"ms"`
	OK   bool   `json:"ok"`
}

// Watch times the stages of one start or stop.
type Watch struct {
	Stages []Stage
	last   time.Time
}

// NewWatch starts the clock.
func NewWatch() *Watch { return &Watch{last: time.Now()} }

// Done notes the end of the stage that has been under way.
func (w *Watch) Done(name string, ok bool) {
	now := time.Now()
	w.Stages = append(w.Stages, Stage{name, now.Sub(w.last).Milliseconds(), ok})
	w.last = now
}

// ElapsedMS is the time of all stages.
func (w *Watch) ElapsedMS() (ms int64) {
	for _, s := range w.Stages {
		ms += s.MS
	}
	return ms
}
