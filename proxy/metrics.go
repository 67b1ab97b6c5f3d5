package proxy

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cdpmux/proxy/admin"
)

// serveMetrics answers GET /metrics, to who has the admin token.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet:
		sendText(w, http.StatusMethodNotAllowed, "GET only")
	case s.admin(w, r):
		s.metrics().ServeHTTP(w, r)
	}
}

func (s *Server) newMetrics() http.Handler {
	return promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{ErrorLog: errorLog{s}})
}

// registry has this server's own metrics, and those of the process.
func (s *Server) registry() *prometheus.Registry { return admin.Registry(s.snapshot) }

type errorLog struct{ s *Server }

func (l errorLog) Println(v ...any) { l.s.log.Error().Msgf("metrics: %v", v) }

// snapshot is what a scrape reads of the server.
func (s *Server) snapshot() admin.Snapshot {
	st := s.Status()
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := admin.Snapshot{
		Status: st, Totals: s.totals.Clone(), Routed: s.router.Totals(), Closed: s.closed.count, WrongCredentials: s.wrong.Load(),
	}
	for l, p := range s.links {
		snap.Totals.Carried[p].Add(l)
	}
	if s.up != nil {
		snap.BrowserQueue = s.up.Queued()
	}
	return snap
}

// uptime is for how long the browser's connection is up; 0 when it is not.
func (s *Server) uptime(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.up == nil {
		return 0
	}
	return now.Sub(s.since)
}
