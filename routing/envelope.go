package routing

// Span is a byte range of a message; the zero Span is "absent".
type Span struct{ Start, End int }

// Of returns the bytes of the span.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Present reports whether there is anything at all.
func (s Span) Present() bool { return s.End > s.Start }

// Envelope is what routing reads of one message: its top-level members, and of
// a command's params the three members that name something of somebody's.
// Byte slices alias the scanned text unless an escape had to be undone.
type Envelope struct {
	ID      int32
	IDSpan  Span   // the id's value; absent in an event
	Method  []byte // nil in a response
	Session []byte // value of sessionId; nil when absent or empty
	Member  Span   // the whole member `"sessionId":"…"`, without commas
	Params  Span   // value of params
	Error   Span   // value of error, in a response
	Result  Span   // value of result, in a response

	// Members of params, set by ScanCommand alone, unescaped: what Chrome
	// itself would read there. nil when absent or not a string.
	TargetID  []byte // params.targetId
	ChildID   []byte // params.sessionId
	ContextID []byte // params.browserContextId
}

// Refusal is what Chrome answers to a text that is no usable command.
type Refusal struct {
	Code    int
	Message string
	HasID   bool // Chrome puts the id into some of these errors only
	ID      int32
}

// ScanCommand reads one command of a client, strictly.
func ScanCommand(text []byte, env *Envelope) *Refusal { panic("not yet") }

// Scan reads one message of the browser, a trusted peer.
func Scan(text []byte, env *Envelope) bool { panic("not yet") }
