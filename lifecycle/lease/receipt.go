package lease

import "cdpmux/lifecycle"

// Receipt is what was seen of a lease's start or end.
type Receipt struct {
	Action      string            `json:"action"` // start, adopt (the browser was there) or stop
	Incarnation string            `json:"incarnation,omitempty"`
	Ownership   string            `json:"ownership"` // retained: the browser outlives the lease
	Stages      []lifecycle.Stage `json:"stages,omitempty"`
	ElapsedMS   int64             `json:"elapsed_ms"`
	ColdStart   bool              `json:"cold_start"`
	Cleanup     *Cleanup          `json:"cleanup,omitempty"` // of a stop
}

// What a Receipt says was done, and whose the browser is.
const (
	ActionStart = "start"
	ActionAdopt = "adopt"
	ActionStop  = "stop"

	Retained = "retained"
)

// Cleanup is what was seen of an end.
type Cleanup struct {
	Method    string   `json:"method"` // graceful or forced
	Escalated bool     `json:"escalated"`
	RootExit  string   `json:"root_exit,omitempty"`
	ExitType  string   `json:"exit_type,omitempty"`
	Killed    int      `json:"killed"`
	Survivors int      `json:"survivors"`
	Removed   []string `json:"removed,omitempty"`
	Verified  bool     `json:"verified"`
	DataRisk  bool     `json:"data_risk"`
}

// CleanupOf is the browser's own end as a part of a lease's.
func CleanupOf(r lifecycle.Receipt) *Cleanup {
	return &Cleanup{
		Method: r.Method, Escalated: r.Escalated, RootExit: r.RootExit, ExitType: r.ExitType,
		Killed: r.Killed, Survivors: r.Survivors, Removed: r.Removed, Verified: r.Verified, DataRisk: r.DataRisk,
	}
}

// noReceipt is that of a session which is not remembered: one that is closed
// looks like one that never was.
type noReceipt struct{}
