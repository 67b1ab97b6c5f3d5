package proxy

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/proxy/admin"
	"cdpmux/routing"
)

// isDashboard reports whether a request is for the operator's page or what
// belongs to it. At "/" programs get what Chrome answers there.
func isDashboard(r *http.Request, path string) bool {
	return strings.HasPrefix(path, dashboardPath) ||
		path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html") && !websocket.IsWebSocketUpgrade(r)
}

const (
	dashboardPath = "/dashboard/"
	askForToken   = `Basic realm="cdpmux: any user name, the admin token as password", charset="UTF-8"`
)

// ownPost reports whether a browser vouches for it that the operator's page
// sent a request. Its Origin, which is our own, is then let through to
// serveDashboard, which wants the admin token.
func (s *Server) ownPost(r *http.Request, path, host, origin string) bool {
	if s.cfg.PublicURL != nil {
		host = s.cfg.PublicURL.Host
	}
	_, from, _ := strings.Cut(origin, "://")
	return r.Method == http.MethodPost && strings.HasPrefix(path, dashboardPath) && sameOrigin(r) && from == host
}

// sameOrigin reports whether a browser vouches for it that our own page sent a request.
func sameOrigin(r *http.Request) bool {
	sites := r.Header["Sec-Fetch-Site"]
	return len(sites) == 1 && sites[0] == "same-origin"
}

// serveDashboard serves the operator's page, and does what its buttons ask for.
// A browser asks for the admin token by itself and sends it with everything
// from then on: so a button counts only if the browser vouches that it was
// pressed on our own page.
func (s *Server) serveDashboard(w http.ResponseWriter, r *http.Request, path string) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; connect-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with none, a form would be sent with Origin: null
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.admin(w, r) {
		return
	}
	h.Del(challenge)
	post, known := dashboardPosts[path]
	switch {
	case known && r.Method != http.MethodPost, !known && r.Method != http.MethodGet && r.Method != http.MethodHead:
		sendText(w, http.StatusMethodNotAllowed, "Not by "+r.Method)
	case known && !sameOrigin(r):
		sendText(w, http.StatusForbidden, "Only a browser that shows the page over https, or on this machine, can press its buttons.")
	case known:
		r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
		post(s, w, r)
	case path == "/":
		s.sendDashboard(w, r)
	case path == dashboardPath+"style.css":
		send(w, http.StatusOK, "text/css; charset=UTF-8", admin.Style)
	case path == dashboardPath+"script.js":
		send(w, http.StatusOK, "text/javascript; charset=UTF-8", admin.Script)
	default:
		send(w, http.StatusNotFound, htmlType, "")
	}
}

func (s *Server) sendDashboard(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	page := admin.Page{Status: s.Status(), Now: now, Up: s.uptime(now), Notice: notices[r.URL.Query().Get("notice")]}
	var body bytes.Buffer
	if err := admin.Write(&body, page); err != nil {
		s.log.Error().Err(err).Msg("the dashboard cannot be written")
		sendText(w, http.StatusInternalServerError, err.Error())
		return
	}
	send(w, http.StatusOK, htmlType+"; charset=UTF-8", body.String())
}

// notices are what the page may be told to say.
var notices = map[string]string{
	"tab-closed":  "The tab was told to close.",
	"tab-gone":    "That tab is not there any more.",
	"tab-stays":   "The browser did not close that tab. Its state says more; try again, or release the client.",
	"released":    "The client was ended, and its tabs are being closed.",
	"client-gone": "That client is not there any more.",
}

// back shows the page again, with what came of a button. Without a script the
// browser goes there itself; to load the page again presses nothing twice.
func back(w http.ResponseWriter, notice string) {
	w.Header().Set("Location", "../?notice="+notice)
	send(w, http.StatusSeeOther, htmlType, "")
}

var dashboardPosts = map[string]func(*Server, http.ResponseWriter, *http.Request){
	dashboardPath + "close-tab": (*Server).postCloseTab,
	dashboardPath + "release":   (*Server).postRelease,
	dashboardPath + "picture":   (*Server).postPicture,
}

func (s *Server) postCloseTab(w http.ResponseWriter, r *http.Request) {
	client, tab := r.PostFormValue("client"), r.PostFormValue("tab")
	result, err := s.outcome(r, func(token uint64) []routing.Action {
		return s.router.EndTab(time.Now(), client, tab, token, s.actions)
	})
	switch {
	case err != nil:
		back(w, "tab-stays")
	case strings.HasPrefix(result.Err, "No such target id: "):
		back(w, "tab-gone")
	case result.Err != "":
		back(w, "tab-stays")
	default:
		s.log.Info().Str("client", routing.ShortID(client)).Str("target", tab).Msg("the operator closed a tab")
		back(w, "tab-closed")
	}
}

func (s *Server) postRelease(w http.ResponseWriter, r *http.Request) {
	id := r.PostFormValue("client")
	s.mu.Lock()
	known := validID(id) && s.router.Knows(id)
	s.mu.Unlock()
	if !known {
		back(w, "client-gone")
		return
	}
	if _, err := s.closeClient(id, s.router.CloseClient); err != nil {
		s.sendProblem(w, problemOf(err))
		return
	}
	s.log.Info().Str("client", routing.ShortID(id)).Msg("the operator released a client")
	back(w, "released")
}

// pictures keeps the operator from keeping the browser busy: one picture at a
// time, and one a second. Guarded by Server.mu.
type pictures struct {
	busy bool
	next time.Time // not before
}

const pictureEvery = time.Second

// begin takes the turn, or returns false.
func (p *pictures) begin(now time.Time) bool {
	if p.busy || now.Before(p.next) {
		return false
	}
	p.busy, p.next = true, now.Add(pictureEvery)
	return true
}

// postPicture answers with a picture of a tab.
func (s *Server) postPicture(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	turn := s.pictures.begin(time.Now())
	s.mu.Unlock()
	if !turn {
		s.sendProblem(w, problem{
			Text: "one picture at a time, and one a second", Kind: "capacity_unavailable", Retryable: true,
			Next: "try again in a second", status: http.StatusTooManyRequests, after: pictureEvery,
		})
		return
	}
	defer func() {
		s.mu.Lock()
		s.pictures.busy = false
		s.mu.Unlock()
	}()
	tab := r.PostFormValue("tab")
	result, err := s.outcome(r, func(token uint64) []routing.Action {
		return s.router.Picture(time.Now(), tab, token, s.actions)
	})
	if err == nil && result.Err != "" {
		err = noPicture(result.Err)
	}
	if err != nil {
		s.sendProblem(w, problemOf(err))
		return
	}
	image, err := base64.StdEncoding.DecodeString(result.Picture)
	kind := http.DetectContentType(image)
	if err != nil || !strings.HasPrefix(kind, "image/") {
		s.sendProblem(w, problemOf(noPicture("the browser sent no picture")))
		return
	}
	send(w, http.StatusOK, kind, string(image))
}

// noPicture is why there is none of a tab.
type noPicture string

func (e noPicture) Error() string     { return string(e) }
func (noPicture) FailureKind() string { return "no_picture" }
func (noPicture) Next() string {
	return "show the tab in its window, or try again when its page is quiet"
}
func (noPicture) Status() int     { return http.StatusBadGateway }
func (noPicture) Retryable() bool { return true }
