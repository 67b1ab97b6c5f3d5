package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// guard refuses what a web page could send: loopback is no boundary for a
// browser on this machine. It answers and returns false.
func (s *Server) guard(w http.ResponseWriter, r *http.Request) bool {
	if !s.allowedHost(r.Host) {
		sendText(w, http.StatusInternalServerError, "Host header is specified and is not an IP address or localhost.")
		return false
	}
	for _, origin := range r.Header["Origin"] { // an empty one counts
		if !slices.Contains(s.cfg.AllowOrigins, origin) {
			sendText(w, http.StatusForbidden, fmt.Sprintf("Rejected a request from the %s origin. "+
				"Use the command line flag --allow-origin=%[1]s to allow requests from this origin.", origin))
			return false
		}
	}
	for _, site := range r.Header["Sec-Fetch-Site"] {
		if strings.EqualFold(site, "cross-site") {
			sendText(w, http.StatusForbidden, "Rejected a request that another web site made.")
			return false
		}
	}
	return true
}

// allowedHost reports whether a Host header cannot be a name that an attacker
// points to this machine (DNS rebinding): it is absent, an IP literal or a
// localhost, as Chrome demands too, or listed.
func (s *Server) allowedHost(host string) bool {
	if host == "" {
		return true
	}
	name := hostName(host)
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		_, err := netip.ParseAddr(name[1 : len(name)-1])
		return err == nil
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.Is4()
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost") ||
		slices.ContainsFunc(s.cfg.AllowHosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// hostName is a Host header without its port. An IPv6 literal keeps its brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		if strings.HasPrefix(host, "[") {
			return "[" + name + "]"
		}
		return name
	}
	return host
}
