package routing

import (
	"bytes"
	"strconv"
)

var (
	replyStart = []byte(`{"id":`)
	resultNext = []byte(`,"result":`)
	eventStart = []byte(`{"method":"`)
	paramsNext = []byte(`","params":`)
	sessionKey = []byte(`,"sessionId":"`)
)

// sessionIDLen is the length of Chrome's session ids.
const sessionIDLen = 32

// scanEnds reads a message of the form in which Chrome writes what belongs to
// a session: id or method first, then result or params, the sessionId last. In
// one JSON object the last brace is its own, so that the sessionId before it
// is, too; and inside a string its quotes would be escaped. What lies between
// is not looked at: a third of all that is done with a large reply, or with a
// burst of events, would be to find where their strings end. It reports false
// for any other form, which [Scan] reads as a whole.
func scanEnds(text []byte, env *Envelope) bool {
	session := len(text) - len(`"}`) - sessionIDLen
	member := session - len(sessionKey)
	if member < len(eventStart) || !bytes.Equal(text[member:session], sessionKey) || string(text[len(text)-2:]) != `"}` {
		return false
	}
	name := text[session : session+sessionIDLen]
	if bytes.IndexByte(name, '"') >= 0 || bytes.IndexByte(name, '\\') >= 0 {
		return false
	}
	if head := text[:member]; bytes.HasPrefix(head, eventStart) {
		end := len(eventStart) + max(0, bytes.IndexByte(head[len(eventStart):], '"'))
		method := head[len(eventStart):end]
		if !bytes.HasPrefix(head[end:], paramsNext) || bytes.IndexByte(method, '\\') >= 0 {
			return false
		}
		*env = Envelope{Method: method, Params: Span{end + len(paramsNext), member}}
	} else if bytes.HasPrefix(head, replyStart) {
		end := len(replyStart)
		for end < member && '0' <= head[end] && head[end] <= '9' {
			end++
		}
		id, err := strconv.ParseInt(string(head[len(replyStart):end]), 10, 32)
		if err != nil || !bytes.HasPrefix(head[end:], resultNext) {
			return false
		}
		*env = Envelope{ID: int32(id), IDSpan: Span{len(replyStart), end}, Result: Span{end + len(resultNext), member}}
	} else {
		return false
	}
	env.Session, env.Member = name, Span{member + 1, len(text) - 1}
	return true
}
