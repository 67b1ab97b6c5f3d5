package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// protocolCache is the protocol description of one browser, fetched from it
// once. Its zero value is empty.
type protocolCache struct {
	mu   sync.Mutex
	body string // guarded by mu; empty until it was fetched
}

const (
	protocolTimeout = 10 * time.Second
	protocolLimit   = 64 << 20
)

// get returns the description, which is of 1.6 MB.
func (p *protocolCache) get(ctx context.Context, base string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.body != "" {
		return p.body, nil
	}
	body, err := fetch(ctx, base+"/json/protocol")
	if err == nil {
		p.body = body
	}
	return body, err
}

// fetch gets a small document from the browser itself, whatever proxies the
// environment names, and follows no redirect.
func fetch(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, protocolTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("HTTP %s", resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, protocolLimit))
	return string(body), err
}

func (s *Server) serveProtocol(w http.ResponseWriter, r *http.Request, a address) {
	if err := s.refusedTo(a); err != nil {
		s.sendProblem(w, problemOf(err))
		return
	}
	up, err := s.browser(r.Context())
	if err != nil {
		s.sendProblem(w, problemOf(err))
		return
	}
	if up.http == "" {
		sendText(w, http.StatusNotImplemented, "The browser opens no port (--upstream pipe), so it cannot be asked for its protocol: "+
			"take it from the npm package devtools-protocol, or serve with --upstream ws")
		return
	}
	body, err := up.protocol.get(r.Context(), up.http)
	if err != nil {
		s.log.Warn().Err(err).Msg("/json/protocol of the browser")
		sendText(w, http.StatusBadGateway, "The browser does not serve /json/protocol: the log of cdpmux says why")
		return
	}
	send(w, http.StatusOK, jsonType, body)
}
