package routing

import "strconv"

// Span is a byte range of a message; the zero Span is "absent".
type Span struct{ Start, End int }

// Of returns the bytes of the span.
func (s Span) Of(text []byte) []byte { return text[s.Start:s.End] }

// Present reports whether there is anything at all.
func (s Span) Present() bool { return s.End > s.Start }

// Envelope is what routing reads of one message: its top-level members, and of
// a command's params the three members that name something of somebody's.
// Byte slices alias the scanned text unless an escape had to be undone; the
// methods of [Message] that edit the text set them to nil and keep the spans true.
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

// Scan reads one message of the browser, a trusted peer: it finds where the
// top-level members begin and end and checks nothing else. It reports false
// for a text that is no object, or none that Chrome would write.
func Scan(text []byte, env *Envelope) bool {
	return scanEnds(text, env) || scanAll(text, env)
}

func scanAll(text []byte, env *Envelope) bool {
	*env = Envelope{}
	m := members{text: text}
	for m.next() {
		ok := true
		switch value := m.value.Of(text); string(m.name.Of(text)) {
		case `"id"`:
			id, err := strconv.ParseInt(string(value), 10, 32)
			env.ID, env.IDSpan, ok = int32(id), m.value, err == nil
		case `"method"`:
			env.Method, ok = Unquote(value)
		case `"sessionId"`:
			env.Session, ok = Unquote(value)
			if len(env.Session) == 0 {
				env.Session = nil
			}
			env.Member = Span{m.name.Start, m.value.End}
		case `"params"`:
			env.Params = m.value
		case `"error"`:
			env.Error = m.value
		case `"result"`:
			env.Result = m.value
		}
		if !ok {
			return false
		}
	}
	return m.closed && skipSpace(text, m.pos) == len(text)
}
