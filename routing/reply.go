package routing

import (
	"bytes"
	"strconv"
)

// Chrome's error codes and words.
const (
	codeParams  = -32602
	codeServer  = -32000
	codeMethod  = -32601
	codeSession = -32001

	textNoSession  = "Session with given id not found."
	textNoChild    = "No session with given id"
	textClosed     = "Inspected target navigated or closed"
	textCrashed    = "Target crashed"
	textNotAllowed = "Not allowed"
)

// reply answers a command of a client ourselves; body is `"result":{…}` or
// `"error":{…}`.
func (r *Router) reply(s *session, id int32, body string) {
	buf := make([]byte, Headroom, Headroom+len(body)+80)
	buf = append(buf, `{"id":`...)
	buf = strconv.AppendInt(buf, int64(id), 10)
	buf = append(buf, ',')
	buf = append(buf, body...)
	buf = appendSession(buf, s)
	if s.carrier != nil {
		r.ascend(s.carrier, &Message{Buf: append(buf, '}'), Start: Headroom})
	}
}

// refuse answers a command of a connection that has no session yet.
func (r *Router) refuse(c *conn, id int32, code int, text string) {
	r.out = append(r.out, Action{Kind: ToClient, Conn: c.id, Msg: NewMessage(errorText(id, code, text, ""))})
}

// Refuse answers a text that is no command, to its sender alone.
func (r *Router) Refuse(id ConnID, ref *Refusal, out []Action) []Action {
	r.out = out
	if c := r.conns[id]; c != nil {
		r.out = append(r.out, Action{Kind: ToClient, Conn: id, Msg: NewMessage(refusalText(ref))})
	}
	return r.out
}

// refusalText is Chrome's answer to an unusable text.
func refusalText(ref *Refusal) string {
	if ref.HasID {
		return errorText(ref.ID, ref.Code, ref.Message, "")
	}
	return "{" + errorBody(ref.Code, ref.Message) + "}"
}

func errorText(id int32, code int, text, session string) string {
	return `{"id":` + strconv.Itoa(int(id)) + `,` + errorBody(code, text) + session + `}`
}

func errorBody(code int, text string) string {
	return `"error":{"code":` + strconv.Itoa(code) + `,"message":` + string(AppendQuoted(nil, []byte(text))) + `}`
}

// unhide puts a foreign id back where Chrome's error repeats the one that was
// sent in its place.
func unhide(m *Message, hidden, foreign string) *Message {
	if !bytes.Contains(m.Text(), []byte(hidden)) {
		return m
	}
	return NewMessage(bytes.ReplaceAll(m.Text(), []byte(hidden), []byte(foreign)))
}
