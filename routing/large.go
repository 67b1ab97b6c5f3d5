package routing

import (
	"bytes"
	"strconv"
)

// largeReply is the size from which on a reply is read by its two ends: to look
// through 64 MiB for the end of a screenshot takes a third of all that the
// proxy does with it, and every other client waits for that.
const largeReply = 256 << 10

var (
	replyStart   = []byte(`{"id":`)
	replyResult  = []byte(`,"result":`)
	replySession = []byte(`,"sessionId":"`)
)

// sessionIDLen is the length of Chrome's session ids.
const sessionIDLen = 32

// scanLarge reads a reply of the form in which Chrome writes one on a session:
// id first, then the result, the sessionId last. In one JSON object the last
// brace is its own, so that the sessionId before it is, too; and inside a
// string its quotes would be escaped. It reports false for any other form,
// which [Scan] reads as a whole.
func scanLarge(text []byte, env *Envelope) bool {
	idStart := len(replyStart)
	session := len(text) - len(`"}`) - sessionIDLen
	member := session - len(replySession)
	if member < idStart || !bytes.HasPrefix(text, replyStart) || !bytes.HasSuffix(text, []byte(`"}`)) ||
		!bytes.Equal(text[member:session], replySession) || bytes.ContainsAny(text[session:len(text)-2], `"\`) {
		return false
	}
	idEnd := idStart
	for idEnd < member && '0' <= text[idEnd] && text[idEnd] <= '9' {
		idEnd++
	}
	id, err := strconv.ParseInt(string(text[idStart:idEnd]), 10, 32)
	if err != nil || !bytes.HasPrefix(text[idEnd:member], replyResult) {
		return false
	}
	*env = Envelope{
		ID: int32(id), IDSpan: Span{idStart, idEnd},
		Session: text[session : session+sessionIDLen], Member: Span{member + 1, len(text) - 1},
		Result: Span{idEnd + len(replyResult), member},
	}
	return true
}
