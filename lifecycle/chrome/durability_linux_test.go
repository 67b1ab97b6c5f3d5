package chrome

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/keeper"
)

// site logs a browser in: its page sets a cookie that lasts and one that ends
// with the session. The cookies of each request for the page come in got.
type site struct {
	*httptest.Server
	got  chan string // the Cookie header of a request for /look
	seen chan string // names of logins whose page has run; restored ones, too
}

func newSite(t *testing.T) *site {
	s := &site{got: make(chan string, 1), seen: make(chan string, 100)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name := strings.TrimPrefix(r.URL.Path, "/"); {
		case strings.HasPrefix(name, "seen/"):
			s.seen <- strings.TrimPrefix(name, "seen/")
		case name == "look":
			s.got <- r.Header.Get("Cookie")
		case strings.HasPrefix(name, "login"):
			http.SetCookie(w, &http.Cookie{Name: name, Value: "1", MaxAge: 3600})
			http.SetCookie(w, &http.Cookie{Name: "s" + name, Value: "1"})
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<script>fetch('/seen/%s'); addEventListener('beforeunload', e => e.preventDefault())</script>", name)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// login opens the page that sets the cookies name and "s" + name.
func (s *site) login(d *driver, name string) (tab string) {
	d.t.Helper()
	tab = d.open(s.URL + "/" + name)
	for <-s.seen != name {
	}
	return tab
}

// driver is a connection to a browser.
type driver struct {
	t    *testing.T
	conn *websocket.Conn
	id   int
}

func drive(t *testing.T, ws string) *driver {
	t.Helper()
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), ws, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &driver{t: t, conn: conn}
}

// call sends one command, to the tab with this session if it is not empty,
// and returns its result.
func (d *driver) call(session, method, params string) (result struct{ TargetID, SessionID string }) {
	d.t.Helper()
	d.id++
	msg := map[string]any{"id": d.id, "method": method, "params": json.RawMessage(params)}
	if session != "" {
		msg["sessionId"] = session
	}
	_ = d.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if err := d.conn.WriteJSON(msg); err != nil {
		d.t.Fatal(err)
	}
	for {
		var reply struct {
			ID     int
			Result *struct{ TargetID, SessionID string }
			Error  json.RawMessage
		}
		if err := d.conn.ReadJSON(&reply); err != nil || reply.Error != nil {
			d.t.Fatalf("%s: %s %v", method, reply.Error, err)
		}
		if reply.ID == d.id && reply.Result != nil {
			return *reply.Result
		}
	}
}

func (d *driver) open(url string) (tab string) {
	d.t.Helper()
	return d.call("", "Target.createTarget", fmt.Sprintf(`{"url":%q}`, url)).TargetID
}

func (d *driver) close(tab string) {
	d.t.Helper()
	d.call("", "Target.closeTarget", fmt.Sprintf(`{"targetId":%q}`, tab))
}

// A stop right after a login must not lose it, though Chrome writes cookies
// only every 30 s. Each path is one way of ending the browser; the next start
// looks for the cookies.
func TestLoginsOutliveStop(t *testing.T) {
	type path struct {
		name     string
		end      func(t *testing.T, c *Chrome, d *driver, tab string)
		graceful bool
	}
	closed := func(d *driver, tab string) { d.close(tab) } // as the proxy does before every stop
	wantReceipt := func(t *testing.T, r lifecycle.Receipt, risk bool) {
		t.Helper()
		if !r.Verified || r.DataRisk != risk || risk == (r.Method == lifecycle.MethodGraceful) {
			t.Errorf("receipt %+v, want data risk %v", r, risk)
		}
	}
	paths := []path{
		{"stop", func(t *testing.T, c *Chrome, d *driver, tab string) {
			closed(d, tab)
			wantReceipt(t, c.Stop(t.Context()), false)
		}, true},
		{"proxy gone for good", func(t *testing.T, c *Chrome, d *driver, tab string) {
			closed(d, tab)
			rec := record(t, c)
			c.Leave()
			eventually(t, "the end of the keeper", func() bool { return !rec.Keeper.Alive() })
		}, true},
		{"keeper killed", func(t *testing.T, c *Chrome, d *driver, tab string) {
			closed(d, tab)
			_ = record(t, c).Keeper.Signal(syscall.SIGKILL)
		}, true},
		{"keeper told to end", func(t *testing.T, c *Chrome, d *driver, tab string) {
			closed(d, tab)
			rec := record(t, c)
			_ = rec.Keeper.Signal(syscall.SIGTERM)
			eventually(t, "the end of the keeper", func() bool { return !rec.Keeper.Alive() })
		}, true},
		{"renderers stopped", func(t *testing.T, c *Chrome, d *driver, tab string) {
			for _, p := range ofKind(t, record(t, c), "--type=renderer") {
				_ = p.Signal(syscall.SIGSTOP)
			}
			closed(d, tab)
			wantReceipt(t, c.Stop(t.Context()), false)
		}, true},
		{"beforeunload, tab left open", func(t *testing.T, c *Chrome, d *driver, tab string) {
			d.gesture(tab)
			wantReceipt(t, c.Stop(t.Context()), false)
		}, true},
		{"open dialog", func(t *testing.T, c *Chrome, d *driver, tab string) {
			d.dialog(tab)
			closed(d, tab)
			wantReceipt(t, c.Stop(t.Context()), false)
		}, true},
		{"hung browser", func(t *testing.T, c *Chrome, d *driver, tab string) {
			_ = record(t, c).Root.Signal(syscall.SIGSTOP)
			wantReceipt(t, c.Stop(t.Context()), true)
		}, false},
	}
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			s := newSite(t)
			cfg := testConfig(t)
			if !p.graceful {
				cfg.Waits = keeper.Waits{Close: 300 * time.Millisecond, Interrupt: 300 * time.Millisecond}
			}
			kept, session, n := 0, 0, scaled(t, 20)
			for i := range n + 1 {
				c := newChrome(t, cfg)
				d := drive(t, start(t, c))
				if i > 0 {
					tab := d.open(s.URL + "/look")
					got := <-s.got
					d.close(tab)
					if strings.Contains(got+";", fmt.Sprintf(" login%d=", i-1)) || strings.HasPrefix(got, fmt.Sprintf("login%d=", i-1)) {
						kept++
					}
					if strings.Contains(got, fmt.Sprintf("slogin%d=", i-1)) {
						session++
					}
				}
				if i == n {
					break
				}
				tab := s.login(d, fmt.Sprint("login", i))
				if i%2 == 1 {
					time.Sleep(2 * time.Second) // the other half of the stops comes at once
				}
				p.end(t, c, d, tab)
			}
			t.Logf("kept %d/%d, session cookies %d/%d", kept, n, session, n)
			if p.graceful && (kept < n || session < n) {
				t.Errorf("logins were lost")
			}
		})
	}
}

// gesture makes the page one that asks before it closes.
func (d *driver) gesture(tab string) {
	session := d.call("", "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, tab)).SessionID
	d.call(session, "Runtime.evaluate", `{"expression":"1","userGesture":true}`)
}

// dialog opens an alert, which blocks the page.
func (d *driver) dialog(tab string) {
	session := d.call("", "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, tab)).SessionID
	d.call(session, "Page.enable", `{}`)
	d.call(session, "Runtime.evaluate", `{"expression":"setTimeout(() => alert(1))"}`)
	_ = d.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		var event struct{ Method string }
		if err := d.conn.ReadJSON(&event); err != nil {
			d.t.Fatal(err)
		}
		if event.Method == "Page.javascriptDialogOpening" {
			return
		}
	}
}

// Without the wish to keep sessions, a clean stop ends them.
func TestForgottenSessionCookies(t *testing.T) {
	s := newSite(t)
	cfg := testConfig(t)
	cfg.ForgetSessionCookies = true
	c := newChrome(t, cfg)
	d := drive(t, start(t, c))
	tab := s.login(d, "login")
	d.close(tab)
	stopped(t, c)
	drive(t, start(t, c)).open(s.URL + "/look")
	if got := <-s.got; got != "login=1" {
		t.Errorf("cookies %q, want the lasting one only", got)
	}
}
