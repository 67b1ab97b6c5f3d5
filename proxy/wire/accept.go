package wire

import (
	"bufio"
	"net"
	"net/http"

	"github.com/gorilla/websocket"
)

// maxCommand is the payload for which Chrome drops the connection.
const maxCommand = 100 << 20

// trusted is what a client may announce of a message's length without sending
// any of it.
const trusted = 1 << 20

// Accept answers a client's handshake. It returns nil when that cannot be: then
// refuse has told the client why, with a status and a text. Who may come in is
// decided before.
func Accept(w http.ResponseWriter, r *http.Request, lim Limits, slow SlowLimit, refuse func(w http.ResponseWriter, status int, text string)) *Link {
	fix, rod := fixRodKey(r.Header)
	h := &hijacker{ResponseWriter: w, fix: fix}
	upgrader := websocket.Upgrader{
		CheckOrigin: func(*http.Request) bool { return true },
		Error: func(w http.ResponseWriter, _ *http.Request, status int, err error) {
			w.Header().Set("Sec-Websocket-Version", "13")
			refuse(w, status, err.Error())
		},
	}
	ws, err := upgrader.Upgrade(h, r, nil)
	if err != nil {
		return nil
	}
	ws.SetReadLimit(maxCommand - 1)
	h.frames.on = true // a client says nothing before the handshake's end
	l := &Link{ws: ws, frames: h.frames, conn: h.conn, limits: lim, slow: slow, trusted: trusted, strict: true, mute: rod}
	l.begin()
	return l
}

// hijacker puts a frameConn and a corkConn under the WebSocket.
type hijacker struct {
	http.ResponseWriter
	fix    acceptFix
	frames *frameConn
	conn   *corkConn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &corkConn{Conn: conn, accept: h.fix, tls: under(conn)}
	h.frames = &frameConn{Conn: h.conn}
	return h.frames, rw, nil
}
