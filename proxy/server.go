// Package proxy carries out what package routing decides: it owns the sockets,
// the goroutines, the queues and the HTTP endpoints. Many clients connect to
// it; it connects to one browser, and starts it when somebody needs it.
//
// What needs no Server has a package of its own: wire is one WebSocket, access
// says who may come in, admin is what the operator sees, download moves files,
// proxytest is a browser for tests.
//
// Lock order: Server.mu, then the locks of package wire. None is held during I/O.
package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/proxy/access"
	"cdpmux/proxy/admin"
	"cdpmux/proxy/download"
	"cdpmux/proxy/wire"
	"cdpmux/routing"
)

// Config is what a Server is told once.
type Config struct {
	Store        string   // "<slug>/<id>" of the browser profile, shown by /json/version
	MaxClients   int      // client ids connected at once; 0 is no limit
	AllowHosts   []string // names and IP addresses that a Host header may have besides our own
	AllowOrigins []string // values that an Origin header may have; none are allowed otherwise
	Router       routing.Config
	Logger       zerolog.Logger

	Auth           Auth
	AdminToken     string         // opens everything; "" lets nobody in by it
	TrustedProxies access.Proxies // whose X-Forwarded-* headers are believed
	PublicURL      *url.URL       // http or https, what clients reach us by; nil: the address that they name
	TLS            *tls.Config    // as [access.TLSConfig] makes it; nil: none

	Grace            time.Duration   // tabs outlive their client by this; see [Server.graceOf] for those without a name
	StateFile        string          // where it is kept whose the tabs are; "" is nowhere
	KeepTabs         bool            // Shutdown leaves the tabs open for the next proxy of this browser
	Attached         bool            // the browser outlives the proxy: tabs of before are looked for at once
	Downloads        *download.Store // nil: they are left to Chrome
	ArchiveDownloads bool            // at the browser's start files of before are moved away
	Audit            *Audit          // of decisions on commands, closed by its opener after Wait; nil: none

	Leases       Leases // nil: there are none
	Life         Life
	StartTimeout time.Duration // of Life.Start and the connection; 0 is none
}

// Auth says what clients have to show.
type Auth struct {
	Token     string // the store token; "" lets nobody in by it
	Required  bool   // without a token or capability nobody is let in
	Forwarded bool   // nor is anything that another proxy has sent on
}

// Server is the proxy of one browser.
type Server struct {
	// static after New
	cfg     Config
	log     zerolog.Logger
	limits  limits
	started time.Time
	http    *http.Server
	ctx     context.Context // ends with Shutdown
	cancel  context.CancelFunc
	wg      sync.WaitGroup // all goroutines and connections

	metrics func() http.Handler // made when it is asked for

	lastBrowser string // its address; owned by the start under way

	guesses access.Guesses
	wrong   atomic.Int64 // credentials
	crowd   *access.Crowd
	bodies  access.Bodies

	answering atomic.Int32 // HTTP requests

	moves sync.WaitGroup // of staged files; begun by messages of the browser

	mu sync.Mutex // guards the rest

	router  *routing.Router
	actions []routing.Action // empty: the room for the Router's next actions

	closing   bool
	idle      chan struct{} // Shutdown waits for it to be closed; nil otherwise
	up        *upstream     // nil while there is no browser
	starting  *start        // nil while none is being started
	noBrowser string        // why the last start failed
	redial    redial
	stopping  *stopping // nil while the browser is not being ended
	cleanup   bool      // something of the last browser is left
	ends      int       // of browsers
	replaced  bool      // the browser that was lost has been ended since
	since     time.Time // when the browser's connection came up last
	draining  bool      // newcomers are turned away

	tenants   map[string]*tenant         // client ids that belong to a lease
	leaving   []*leaving                 // those that are being released
	clients   map[routing.ConnID]*client // those that the Router knows
	links     map[*wire.Link]admin.Peer  // every WebSocket that is not closed yet
	upgrading map[string]int             // handshakes under way, by client id
	requests  map[uint64]chan<- routing.Result
	lastToken uint64
	handed    handed               // client ids that /json/version gave out
	downloads admin.DownloadStatus // but for Active
	closed    closed               // connections that ended
	totals    admin.Totals
	pictures  pictures
	tracers   []*tracer

	timer   *time.Timer // ticks the Router
	timerAt time.Time   // when; zero is never

	state *stateFile // nil: none is kept
}

// New returns a Server. Call Serve, and Shutdown in the end.
func New(cfg Config) *Server {
	cfg.Router.SocketGrace = max(cfg.Grace, handedGrace)
	if cfg.Downloads != nil {
		cfg.Router.Staging = cfg.Downloads.Staging()
	}
	cfg.Router.Audit = cfg.Audit != nil
	s := &Server{
		cfg: cfg, log: cfg.Logger, limits: defaultLimits,
		router:    routing.New(cfg.Router),
		clients:   map[routing.ConnID]*client{},
		links:     map[*wire.Link]admin.Peer{},
		upgrading: map[string]int{},
		tenants:   map[string]*tenant{},
		started:   time.Now(),
		requests:  map[uint64]chan<- routing.Result{},
		crowd:     access.NewCrowd(mostWaiting),
		bodies:    access.Bodies{Most: mostWaiting},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.timer = stopped(s.tick)
	s.metrics = sync.OnceValue(s.newMetrics)
	s.redial.timer = stopped(s.redialNow)
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    60 << 10, // to which net/http adds 4 KiB
		ConnState:         s.crowd.Note,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ErrorLog:          log.New(serverLog{s.log}, "", 0),
	}
	if cfg.StateFile != "" {
		s.restore()
	}
	return s
}

// mostWaiting bounds each kind of connection that does nothing, see
// [access.Crowd] and [access.Bodies].
const mostWaiting = 256

// serverLog takes the lines of net/http. What a port scan makes it say would
// fill the log.
type serverLog struct{ log zerolog.Logger }

func (l serverLog) Write(line []byte) (int, error) {
	level := zerolog.WarnLevel
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = zerolog.DebugLevel
	}
	l.log.WithLevel(level).Msg(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// stopped is a timer that is not set yet.
func stopped(do func()) *time.Timer {
	timer := time.AfterFunc(time.Hour, do)
	timer.Stop()
	return timer
}

// Serve accepts connections until Shutdown, after which it returns nil.
func (s *Server) Serve(l net.Listener) error {
	if s.cfg.Attached {
		s.adopt()
	}
	if s.cfg.TLS != nil {
		l = wire.ListenTLS(l, s.cfg.TLS)
	}
	if err := s.http.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// Shutdown answers what is pending with an error, closes the clients (1001) and
// their tabs (unless Config.KeepTabs), the browser's connection and the
// listener, and returns when everything has ended. When ctx ends first, what
// is left is cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closeClients(ctx)
	s.mu.Lock()
	if s.up != nil {
		s.up.watch.Stop()
		s.up.Finish(wire.Ending{Reason: wire.ShuttingDown})
		s.up = nil
	}
	s.timer.Stop()
	s.redial.timer.Stop()
	s.mu.Unlock()

	defer context.AfterFunc(ctx, s.cut)()
	answering, cancel := context.WithTimeout(ctx, s.limits.CloseWait)
	defer cancel()
	_ = s.http.Shutdown(answering)
	_ = s.http.Close() // what has sent no request yet, or is half-way through one
	s.Wait()
	return ctx.Err()
}

// closeClients ends the clients and waits, for a moment, until Chrome has
// closed their tabs: a tab that stays would be nobody's at the next start.
func (s *Server) closeClients(ctx context.Context) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return
	}
	s.closing = true
	s.cancel()
	tabs := s.router.Tabs() // of before
	if s.cfg.KeepTabs {
		s.apply(s.router.DetachAll(time.Now(), errShutdown.Error(), s.actions))
		tabs = s.router.Tabs()
	} else {
		s.apply(s.router.CloseAll(time.Now(), errShutdown.Error(), routing.ReasonShutdown, s.actions))
	}
	s.failRequests(errShutdown.Error())
	s.awaitIdle(ctx)
	if s.up != nil && s.router.Idle() {
		tabs = nil
	}
	s.mu.Unlock()
	s.state.write(tabs) // what is left is for the next proxy to close
}

// awaitIdle waits, for a moment, until nothing of the clients' is left in the
// browser. The lock is held, but not while it waits.
func (s *Server) awaitIdle(ctx context.Context) {
	idle := make(chan struct{})
	s.idle = idle
	if s.up == nil {
		close(idle)
		s.idle = nil
	}
	s.noteIdle()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.limits.tabsWait)
	defer cancel()
	select {
	case <-idle:
	case <-ctx.Done():
		s.log.Warn().Msg("tabs of clients may be left open")
	}
	s.mu.Lock()
}

// Wait returns when everything that the server started has ended.
func (s *Server) Wait() { s.wg.Wait() }

// cut drops every WebSocket.
func (s *Server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		l.Close()
	}
}

// Stats counts the Router's tables.
func (s *Server) Stats() routing.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Stats()
}

// Check verifies the Router's tables.
func (s *Server) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.router.Check()
}
