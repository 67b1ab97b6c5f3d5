package proxy

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"cdpmux/proxy/access"
)

// visitor is who sent a request, and where the addresses that it is told begin.
type visitor struct {
	level   access.Level
	guarded bool   // it comes in by a credential alone
	path    string // as it was sent, without the capability
	key     string // what stood before it: "/t/<capability>", or nothing
	digest  string // of the lease that the capability is of
	base    string // "ws://host", or what Config.PublicURL says, without a "/" at the end
}

// letIn finds out who sent a request and whether it may be looked at. Otherwise
// it answers and returns false. All that lacks the right credential gets one
// answer, whatever there is behind the path.
func (s *Server) letIn(w http.ResponseWriter, r *http.Request, path string) (visitor, bool) {
	peer := s.cfg.TrustedProxies.Peer(r)
	v := visitor{path: path, base: s.base(r, peer)}
	v.guarded = s.cfg.Auth.Required || s.cfg.Auth.Forwarded && access.Forwarded(r.Header)
	door := s.door()
	if origin := r.Header.Get("Origin"); s.ownPost(r, path, peer.Host, origin) {
		door.Origins = append([]string{origin}, door.Origins...)
	}
	// What a proxy forwards counts besides what it sent: a page that had a name
	// point to this machine could forward, too.
	for _, host := range []string{r.Host, peer.Host} {
		if refusal := door.Refuse(r.Header, host, access.IP(localAddr(r))); refusal.Status != 0 {
			sendText(w, refusal.Status, refusal.Text)
			return v, false
		}
	}
	if isHealth(path) {
		return v, true
	}
	keys := s.keys()
	v.level = keys.Of(r.Header)
	if capability, rest, ok := access.Split(path); ok {
		v.path, v.key = rest, strings.TrimSuffix(path, rest)
		if v.level == access.Nobody {
			v.level = access.Client
		}
		if v.digest, ok = s.opens(keys, capability, rest); !ok {
			v.level = access.Wrong
		}
	}
	switch {
	case v.level == access.Wrong:
		s.wrongCredential(w, peer.Addr)
		return v, false
	case v.level == access.Nobody && s.cfg.Auth.Required:
		sendUnauthenticated(w)
		return v, false
	case v.level == access.Nobody && v.guarded:
		sendChallenge(w, forwarded)
		return v, false
	}
	return v, true
}

func (s *Server) keys() access.Keys {
	return access.Keys{Store: s.cfg.Auth.Token, Admin: s.cfg.AdminToken}
}

// opens reports whether a capability is that of the client whose path follows
// it, and the digest of the lease that the client belongs to.
func (s *Server) opens(keys access.Keys, capability, path string) (digest string, ok bool) {
	a, err := parseAddress(path)
	if err != nil || a.prefix == "" {
		return "", false
	}
	of := s.digestOf(a.client)
	if !keys.Opens(capability, a.client, of) {
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen(a.client)
	return string(of), true
}

// clientPath is the path of a client in the addresses that a visitor is told.
// Such an address is enough by itself: who sent a token with this request may
// send none with the next.
func (s *Server) clientPath(v visitor, a address) string {
	if v.key == "" && a.prefix != "" && v.guarded {
		return s.keys().Path(a.client, nil)
	}
	return v.key + a.prefix
}

// door has the names that we are known by.
func (s *Server) door() access.Door {
	d := access.Door{Hosts: s.cfg.AllowHosts, Origins: s.cfg.AllowOrigins}
	if u := s.cfg.PublicURL; u != nil {
		d.Hosts = append([]string{u.Hostname()}, d.Hosts...)
	}
	return d
}

// base is what the peer puts before a path of ours to open a WebSocket.
func (s *Server) base(r *http.Request, peer access.Peer) string {
	if s.cfg.PublicURL != nil {
		return SocketURL(s.cfg.PublicURL)
	}
	scheme, host := "ws://", peer.Host
	if peer.TLS {
		scheme = "wss://"
	}
	if host == "" {
		if host = localAddr(r).String(); !access.IP(localAddr(r)).IsValid() {
			host = "localhost"
		}
	}
	return scheme + host
}

// SocketURL is what a client puts before a path to open a WebSocket at u, an
// http or https address.
func SocketURL(u *url.URL) string {
	return strings.Replace(u.Scheme, "http", "ws", 1) + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/")
}

// unauthenticated is the one answer to who lacks the right credential.
var unauthenticated = problem{
	Text: "a credential is missing or wrong", Kind: "unauthenticated",
	Next:   "send Authorization: Bearer with what stands in run/STORE.token of the state directory, or use the address that cdpmux url prints",
	status: http.StatusUnauthorized,
}

// forwarded is the answer to who would be let in without a credential, were it
// known that no other machine is behind it.
var forwarded = problem{
	Text: "a reverse proxy has sent this on, perhaps for another machine: it needs a token", Kind: unauthenticated.Kind,
	Next:   "start cdpmux with --trusted-proxy and --public-url for that proxy, and use the address that cdpmux url prints",
	status: http.StatusUnauthorized,
}

func sendUnauthenticated(w http.ResponseWriter) { sendChallenge(w, unauthenticated) }

// challenge is the header by which a browser is told to ask for a password.
const challenge = "WWW-Authenticate"

// sendChallenge asks for a token. There is no Retry-After: waiting mends nothing.
func sendChallenge(w http.ResponseWriter, p problem) {
	body, _ := json.Marshal(p) // strings and a bool
	if h := w.Header(); h.Get(challenge) == "" {
		h.Set(challenge, "Bearer")
	}
	send(w, p.status, jsonType, string(body)+"\n")
}

// wrongCredential says so, but not as often as somebody who guesses would like.
func (s *Server) wrongCredential(w http.ResponseWriter, from netip.Addr) {
	s.wrong.Add(1)
	wait := s.guesses.Wrong(time.Now())
	if wait == 0 {
		e := s.log.Warn()
		if from.IsValid() {
			e.Stringer("from", from)
		}
		e.Msg("a wrong token or capability was refused")
		sendUnauthenticated(w)
		return
	}
	s.sendProblem(w, problem{
		Text: "too many wrong credentials", Kind: unauthenticated.Kind, Retryable: true,
		Next: "correct the credential: a right one is let in at once", status: http.StatusTooManyRequests, after: wait,
	})
}

// admin lets through who has the admin token. It answers and returns false.
func (s *Server) admin(w http.ResponseWriter, r *http.Request) bool {
	level := s.keys().Of(r.Header)
	if level == access.Admin {
		return true
	}
	p := problem{
		Text: "this shows what is everybody's: it needs the admin token", Kind: "admin_only",
		Next:   "send Authorization: Bearer with what stands in run/STORE.admin of the state directory, or use cdpmux status",
		status: http.StatusUnauthorized,
	}
	if level == access.Store && w.Header().Get(challenge) == "" { // a browser asks again after 401 alone
		p.status = http.StatusForbidden
	}
	sendChallenge(w, p)
	return false
}
