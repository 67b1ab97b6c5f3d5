package lifecycle

import "context"

// Backend is one way to have a browser. Its methods may be called from any
// goroutine; doc.go says what each of them promises.
type Backend interface {
	Start(ctx context.Context) (Endpoint, error)
	Stop(ctx context.Context) Receipt
	Probe(ctx context.Context) error
}

// Endpoint is where a browser answers.
type Endpoint struct {
	WS string // its browser-level WebSocket; whoever knows it can go round the proxy
}

// How a stop went.
const (
	MethodNone     = "none"     // there was no browser of ours
	MethodGraceful = "graceful" // it ended by itself after Browser.close or SIGINT
	MethodForced   = "forced"   // it had to be killed
)

// Receipt is what Stop saw.
type Receipt struct {
	Method    string `json:"method"`
	RootExit  string `json:"root_exit,omitempty"` // "exit 0", "signal: killed"
	ExitType  string `json:"exit_type,omitempty"` // Chrome's own word in its Preferences: Normal, SessionEnded, Crashed
	Killed    int    `json:"killed"`              // processes that got SIGKILL
	Survivors int    `json:"survivors"`
	Verified  bool   `json:"verified"`  // no process of the browser is left
	DataRisk  bool   `json:"data_risk"` // cookies of the last 30 s may be lost
}
