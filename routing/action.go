package routing

// ConnID names one downstream connection for its whole life. It is never used
// again. Identity is the connection, not the client id in its path.
type ConnID uint64

// Kind says what an [Action] asks of the caller.
type Kind uint8

const (
	// ToBrowser: queue Msg for the browser. The message's buffer goes with it.
	ToBrowser Kind = iota + 1
	// ToClient: queue Msg for Conn. The message's buffer goes with it.
	ToClient
	// Opened: Conn has its root; what it sent while it waited follows as further Actions.
	Opened
	// Close: write what is queued for Conn, then end it as Reason says. The
	// Router has forgotten the connection already.
	Close
	// Answer: the HTTP request that was given Token is done; Result holds its outcome.
	Answer
	// Save: Chrome has finished Download; put the file where it belongs and
	// call [Router.Saved].
	Save
	// Discard: Chrome has finished Download, which nobody wants.
	Discard
	// Aborted: Chrome gave Download up, and nobody asked it to.
	Aborted
	// Note: Text is for the log.
	Note
	// Audited: Decision was made. Comes with Config.Audit only.
	Audited
)

// Action is one verdict for the caller to carry out, in the order given.
type Action struct {
	Kind   Kind
	Conn   ConnID
	Msg    *Message
	Reason Reason
	Token  uint64
	Result Result
	Text   string

	Download *Download
	Decision *Decision
}

// Result is the outcome of an HTTP request that needed the browser.
type Result struct {
	TargetID string // of the tab that was made
	Picture  string // that was taken, in base64
	Err      string // why not, in Chrome's words; empty when it worked
	Refused  bool   // the policy, not Chrome, says so
}

// Reason is why the Router ends a connection. Package proxy has the close
// code, log level and metric label of each.
type Reason uint8

const (
	// ReasonBrowserClose: the client sent Browser.close.
	ReasonBrowserClose Reason = iota + 1
	// ReasonTakenOver: a newer connection claimed the client id.
	ReasonTakenOver
	// ReasonBrowserLost: the upstream connection ended.
	ReasonBrowserLost
	// ReasonStartFailed: the browser could not be started.
	ReasonStartFailed
	// ReasonShutdown: the proxy ends.
	ReasonShutdown
	// ReasonBrowserStopped: the browser is stopped, and the next client starts another one.
	ReasonBrowserStopped
	// ReasonOperator: the operator ended the client.
	ReasonOperator
	// ReasonSessionClosed: the session that the client belongs to was closed.
	ReasonSessionClosed
	// ReasonTargetClosed: the page of a page socket is gone.
	ReasonTargetClosed
	// ReasonNoTarget: a page socket asked for a page that is not the client's.
	ReasonNoTarget
)
