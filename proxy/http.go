package proxy

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/proxy/access"
)

// ServeHTTP answers as Chrome's DevTools server does, for the view of the
// client that the path names.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.bodies.Bound(w, r, s.limits.body)()
	// The path as it was sent: Chrome neither decodes nor cleans it.
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if isDashboard(r, path) {
		w.Header().Set(challenge, askForToken)
	}
	v, ok := s.letIn(w, r, path)
	if !ok {
		return
	}
	path = v.path
	a, err := parseAddress(path)
	if err != nil {
		sendText(w, http.StatusBadRequest, err.Error())
		return
	}
	a.base, a.digest, a.guarded = v.base+s.clientPath(v, a), v.digest, v.guarded
	if a.client != "" && !s.enters(a) {
		sendUnauthenticated(w)
		return
	}
	upgrade := websocket.IsWebSocketUpgrade(r)
	if !upgrade && v.level != access.Admin && !isHealth(path) {
		defer s.answering.Add(-1)
		if s.answering.Add(1) > int32(s.limits.answering) {
			s.sendProblem(w, crowded)
			return
		}
	}
	switch {
	case a.page != "" && upgrade:
		s.servePage(w, r, a)
	case a.socket && upgrade:
		s.serveClient(w, r, a)
	case upgrade:
		send(w, http.StatusNotFound, htmlType, "")
	case isDashboard(r, path):
		s.serveDashboard(w, r, path)
	case a.path == "/" && a.prefix == "":
		w.Header().Set("X-Frame-Options", "DENY")
		send(w, http.StatusOK, htmlType+"; charset=UTF-8", "")
	case a.socket || a.page != "":
		sendText(w, http.StatusUpgradeRequired, "This address is for WebSocket connections.")
	case strings.HasPrefix(a.path, "/json"):
		s.serveJSON(w, r, a, query)
	case path == "/healthz":
		sendText(w, http.StatusOK, "ok")
	case path == "/readyz":
		s.serveReady(w)
	case s.cfg.Leases != nil && isSessionsPath(path):
		s.serveSessions(w, r, v)
	case strings.HasPrefix(path, "/v1/"):
		s.serveControl(w, r, path)
	case path == "/metrics":
		s.serveMetrics(w, r)
	case path == "/status":
		s.serveStatus(w, r)
	default:
		send(w, http.StatusNotFound, htmlType, "")
	}
}

// isHealth reports whether a path is open to all, and answered at once.
func isHealth(path string) bool { return path == "/healthz" || path == "/readyz" }

// crowded is the answer to one request too many, while others wait for the browser.
var crowded = problem{
	Text: "too many requests wait for an answer", Kind: "capacity_unavailable", Retryable: true,
	Next: "try again when some of them are answered", status: http.StatusServiceUnavailable,
}

// address is what the path of a request names.
type address struct {
	prefix    string // "/client-<id>", or "" at the root; what opens it does not stand here
	client    string // client id; "" is the HTTP owner
	path      string // what follows the prefix
	socket    bool   // a client's WebSocket
	anonymous bool   // it named no client
	page      string // target id of a page socket
	base      string // what the addresses begin with that discovery gives out
	digest    string // of the lease whose capability opened it; "": none did
	guarded   bool   // addresses that are given out must have a capability
}

// parseAddress reads a path. Its errors are texts for the user.
func parseAddress(path string) (address, error) {
	a := address{path: path}
	if rest, ok := strings.CutPrefix(path, "/client-"); ok {
		id, rest, slash := strings.Cut(rest, "/")
		a = address{prefix: "/client-" + id, client: id, path: rest}
		if slash {
			a.path = "/" + rest
		}
		a.socket = rest == ""
	} else if id, ok := strings.CutPrefix(path, "/devtools/browser/"); ok && id != "" {
		a.client, a.socket = id, true
	} else if path == "/" || path == "/devtools/browser" || path == "/devtools/browser/" {
		a.client, a.socket, a.anonymous = randomID(), true, true
	}
	if id, ok := strings.CutPrefix(a.path, "/devtools/page/"); ok {
		a.page = id
	}
	if (a.socket || a.prefix != "") && !validID(a.client) {
		return a, fmt.Errorf("client id %q: 1 to 64 characters of A-Z a-z 0-9 _ - are allowed", a.client)
	}
	return a, nil
}

const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, idAlphabet) == ""
}

// randomID is the client id of a connection that names none: 132 random bits.
func randomID() string {
	id := make([]byte, 22)
	_, _ = rand.Read(id) // never fails
	for i, b := range id {
		id[i] = idAlphabet[b%64]
	}
	return string(id)
}

var errLeft = errors.New("processes of the last browser are left: see the log, and run cdpmux stop when they are gone")

// serveReady says whether a client that came now would have a browser: one
// that is not up may be started at any time.
func (s *Server) serveReady(w http.ResponseWriter) {
	err := s.refused()
	s.mu.Lock()
	switch {
	case s.closing:
		err = errShutdown
	case err == nil && s.cleanup:
		err = errLeft
	case err == nil && s.redial.on:
		err = errLost
	}
	s.mu.Unlock()
	if err != nil {
		sendText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	sendText(w, http.StatusOK, "ready")
}

const (
	jsonType = "application/json; charset=UTF-8"
	htmlType = "text/html"
)

// sendTime is how long a client may take to read an answer.
const sendTime = time.Minute

// send answers with Chrome's headers and no others.
func send(w http.ResponseWriter, status int, contentType, body string) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sendTime)) // a recorder of tests has none
	h := w.Header()
	h["Date"] = nil
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func sendText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	send(w, status, "text/plain; charset=UTF-8", text)
}
