// Package ziniaotest is a double of the Ziniao client's local HTTP API, with
// the habits that callers have to live with: launches that do not work, a new
// port each time, an open store that is replaced when it is started again,
// status codes that are strings or numbers, and slow answers. It is made after
// descriptions of the API; the real client was not there to compare.
package ziniaotest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Server is the client with its stores.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	account [3]string // company, username, password
	stores  map[string]*store
	calls   map[string]int
	opened  int // browsers until now; their names
	denied  string
	delay   time.Duration
}

type store struct {
	id       int
	userData string
	launches []Launch
	browser  *httptest.Server // nil: closed
}

// Launch is how one start of a store goes.
type Launch int

const (
	Works   Launch = iota
	Refused        // the API answers with an error
	Silent         // a port is named, and nobody listens
	Stale          // the browser answers, and its page shows webdriver
	NoPage         // the browser answers and has no http page
)

// New returns a client that is logged in with this account.
func New(company, username, password string) *Server {
	s := &Server{
		account: [3]string{company, username, password},
		stores:  map[string]*store{}, calls: map[string]int{},
	}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Close ends the client and all its browsers.
func (s *Server) Close() {
	s.mu.Lock()
	for _, st := range s.stores {
		st.close()
	}
	s.mu.Unlock()
	s.Server.Close()
}

// Add makes a store. Its launches go as listed, and work after that.
func (s *Server) Add(oauth string, id int, userData string, launches ...Launch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores[oauth] = &store{id: id, userData: userData, launches: launches}
}

// Deny makes every call fail with -10003 and this text; "" allows them again.
func (s *Server) Deny(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = text
}

// Delay makes every answer wait.
func (s *Server) Delay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

// Calls is how often an action was called.
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

// Open reports whether a store's browser runs.
func (s *Server) Open(oauth string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stores[oauth].browser != nil
}

// Crash ends a store's browser without the client's doing.
func (s *Server) Crash(oauth string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores[oauth].close()
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Action, Company, Username, Password, BrowserOauth, RequestID string
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&q) != nil {
		http.Error(w, "POST JSON", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[q.Action]++
	out := map[string]any{"requestId": q.RequestID, "action": q.Action, "statusCode": s.code(0), "err": ""}
	fail := func(code int, text string) { out["statusCode"], out["err"] = s.code(code), text }
	st := s.stores[q.BrowserOauth]
	switch {
	case s.denied != "":
		fail(-10003, s.denied)
	case [3]string{q.Company, q.Username, q.Password} != s.account:
		fail(-10003, "login failed")
	case q.Action == "getBrowserList":
		out["browserList"] = s.list()
	case q.Action != "startBrowser" && q.Action != "stopBrowser":
		fail(-10000, "unknown action") // closeBrowser is one
	case st == nil:
		fail(-10001, "no such browser")
	case q.Action == "stopBrowser":
		st.close()
	default:
		s.opened++
		if port, text := st.start(s.opened); text != "" {
			fail(-10002, text)
		} else {
			out["debuggingPort"] = port
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// code is a status code as the client writes it: now a number, now a string.
func (s *Server) code(n int) any {
	total := 0
	for _, c := range s.calls {
		total += c
	}
	if total%2 == 0 {
		return fmt.Sprint(n)
	}
	return n
}

func (s *Server) list() []map[string]any {
	out := []map[string]any{}
	for oauth, st := range s.stores {
		out = append(out, map[string]any{"browserOauth": oauth, "browserId": st.id, "browserName": oauth, "userData": st.userData})
	}
	return out
}

// start opens the store anew; a browser that is open is replaced.
func (st *store) start(name int) (port int, fail string) {
	st.close()
	how := Works
	if len(st.launches) > 0 {
		how, st.launches = st.launches[0], st.launches[1:]
	}
	if how == Refused {
		return 0, "start failed"
	}
	browser := httptest.NewServer(handler(how, name))
	port = browser.Listener.Addr().(*net.TCPAddr).Port
	if how == Silent {
		browser.Close()
		return port, ""
	}
	st.browser = browser
	return port, ""
}

func (st *store) close() {
	if st.browser != nil {
		st.browser.CloseClientConnections()
		st.browser.Close()
		st.browser = nil
	}
}

// handler is a browser's debugging port.
func handler(how Launch, name int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /json/version", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"Browser":"Chrome/120","webSocketDebuggerUrl":"ws://localhost:1/devtools/browser/%d"}`, name)
	})
	mux.HandleFunc("GET /json/list", func(w http.ResponseWriter, r *http.Request) {
		if how == NoPage {
			fmt.Fprint(w, `[{"type":"page","url":"chrome://newtab/","webSocketDebuggerUrl":"ws://localhost:1/devtools/page/n"}]`)
			return
		}
		fmt.Fprint(w, `[{"type":"page","url":"https://shop.test/","webSocketDebuggerUrl":"ws://localhost:1/devtools/page/p"}]`)
	})
	mux.HandleFunc("GET /devtools/page/p", func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		var q struct{ ID int }
		if conn.ReadJSON(&q) == nil {
			_ = conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil,
				`{"id":%d,"result":{"result":{"type":"boolean","value":%v}}}`, q.ID, how == Stale))
		}
	})
	return mux
}
