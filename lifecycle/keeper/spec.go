package keeper

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// Spec is what a keeper is to run.
type Spec struct {
	ID       string   // names the incarnation; 8 hex digits
	Binary   string   // of Chrome
	Args     []string // with --remote-debugging-pipe, --user-data-dir=Profile and, without Upstream, --remote-debugging-port=0
	Env      []string // TMPDIR comes on top
	Profile  string   // its real path, prepared
	TMPDIR   string   // made by the keeper, gone with the browser; its name marks the processes
	Socket   string   // where the next proxy finds the keeper; empty: nowhere
	Upstream string   // socket on which the pipe is relayed; empty: Chrome has a port
	Record   string   // file that the next proxy reads; empty: none
	Grace    time.Duration
	Waits    Waits
	Verbose  bool // report each line that Chrome prints
}

// Waits bound the rungs of the ladder (stop.go).
type Waits struct {
	Close     time.Duration // for the quit that was asked for; a stuck network service needs 10.1 s
	Interrupt time.Duration // more for SIGINT, which a page with beforeunload can veto
	Rest      time.Duration // for the other processes, once the root has ended
	Kill      time.Duration // until a pass finds nothing more to kill
}

// DefaultWaits are right for a real Chrome.
var DefaultWaits = Waits{15 * time.Second, 3 * time.Second, 500 * time.Millisecond, 2 * time.Second}

// askAgain is how long Chrome may take to quit before SIGINT asks it once
// more. One that was told to make a tab while it was quitting closes its
// windows and stays (7 of 20 that were told so all the time); asked again, it
// quits in half a second. One that is only slow goes on quitting, and keeps
// its logins.
const askAgain = 5 * time.Second

// quit is how long Chrome may take to quit, first as it was asked and then
// with a SIGINT.
func (w Waits) quit() (asked, again time.Duration) {
	asked = min(w.Close, askAgain)
	return asked, w.Close - asked + w.Interrupt
}

// Order is what the proxy sends: first a Spec, then at most a stop.
type Order struct {
	Spec *Spec `json:"spec,omitempty"`
	Stop bool  `json:"stop,omitempty"`
}

// Report is what the keeper sends whenever something has changed.
type Report struct {
	State   State              `json:"state,omitempty"`
	WS      string             `json:"ws,omitempty"`      // once ready
	Root    int                `json:"root,omitempty"`    // pid of Chrome
	Stages  []lifecycle.Stage  `json:"stages,omitempty"`  // of the start
	Failure *lifecycle.Failure `json:"failure,omitempty"` // why it did not start
	Receipt *lifecycle.Receipt `json:"receipt,omitempty"` // with Ended
	Tail    []string           `json:"tail,omitempty"`    // with Ended: the last lines that Chrome printed
	Line    string             `json:"line,omitempty"`    // without a State: Chrome printed this, and nothing has changed
}

// State is how far a browser is.
type State string

// An Ended browser that is not verified gone is one whose cleanup is pending.
const (
	Starting State = "starting"
	Ready    State = "ready"
	Ended    State = "ended"
)

// Record is what the next proxy needs to know of an incarnation: written
// before there is a process, and again as soon as there is one.
type Record struct {
	ID       string    `json:"id"`
	Boot     string    `json:"boot"`
	Host     string    `json:"host"`
	Keeper   proc.ID   `json:"keeper"`
	Root     proc.ID   `json:"root"`
	Profile  string    `json:"profile"`
	TMPDIR   string    `json:"tmpdir"`
	Cgroup   string    `json:"cgroup,omitempty"`
	Socket   string    `json:"socket,omitempty"`
	Upstream string    `json:"upstream,omitempty"`
	Started  time.Time `json:"started"`

	// Receipt says that the browser ended although nobody asked for it, or
	// that it is not verified gone.
	Receipt *lifecycle.Receipt `json:"receipt,omitempty"`
}

// ReadRecord returns nil without an error when there is no record.
func ReadRecord(path string) (*Record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || path == "" {
		return nil, nil
	}
	rec := &Record{}
	if err == nil {
		err = json.Unmarshal(data, rec)
	}
	return rec, err
}

func (r *Record) write(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return lifecycle.WriteFile(path, append(data, '\n'))
}
