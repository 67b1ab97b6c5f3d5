package wire

import (
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"net/http"
)

// go-rod sends the literal "nil" as its Sec-WebSocket-Key and checks the
// accept value over that literal. It panics on pings, pongs and on a close
// frame with a payload, so such a client gets none of them.
const rodKey = "nil"

// acceptFix corrects the accept value of a handshake whose key gorilla refuses
// and which was therefore replaced. The zero acceptFix changes nothing.
type acceptFix struct{ wrong, right []byte }

// fixRodKey puts a valid key in the place of go-rod's and returns what has to
// be corrected in the answer. ok is false for every other client.
func fixRodKey(h http.Header) (fix acceptFix, ok bool) {
	if h.Get("Sec-Websocket-Key") != rodKey {
		return acceptFix{}, false
	}
	valid := base64.StdEncoding.EncodeToString(make([]byte, 16))
	h.Set("Sec-Websocket-Key", valid)
	return acceptFix{wrong: acceptValue(valid), right: acceptValue(rodKey)}, true
}

func (f acceptFix) apply(p []byte) []byte {
	if f.wrong == nil {
		return p
	}
	return bytes.Replace(p, f.wrong, f.right, 1)
}

// acceptValue is the Sec-WebSocket-Accept of a key (RFC 6455, 4.2.2).
func acceptValue(key string) []byte {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return []byte(base64.StdEncoding.EncodeToString(sum[:]))
}
