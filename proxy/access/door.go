package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Door refuses what a web page could send: loopback is no boundary for a
// browser on this machine.
type Door struct {
	Hosts   []string // names and IP addresses that a Host header may have besides our own
	Origins []string // values that an Origin header may have; none are allowed otherwise
}

// Refusal is why a request may not come in. The zero Refusal is none.
type Refusal struct {
	Status int
	Text   string
}

// Refuse looks at the headers of a request, of which host is the Host. local is
// the address that it came to; the zero Addr is a Unix socket's.
func (d Door) Refuse(h http.Header, host string, local netip.Addr) Refusal {
	if !d.allows(host, local) {
		if _, ok := literal(hostName(host)); ok || outside(local) {
			return Refusal{http.StatusInternalServerError, "Host header is not the address that this request came to. Use the command line flag --allow-host=NAME to allow a name."}
		}
		return Refusal{http.StatusInternalServerError, "Host header is specified and is not an IP address or localhost."}
	}
	for _, origin := range h["Origin"] { // an empty one counts
		if !slices.Contains(d.Origins, origin) {
			return Refusal{http.StatusForbidden, fmt.Sprintf("Rejected a request from the %s origin. "+
				"Use the command line flag --allow-origin=%[1]s to allow requests from this origin.", origin)}
		}
	}
	// A browser counts all ports of this machine as one site: a page of another
	// server on it is no better than one from elsewhere, unless it is listed.
	listed := len(h["Origin"]) > 0
	for _, site := range h["Sec-Fetch-Site"] {
		own := strings.EqualFold(site, "none") || strings.EqualFold(site, "same-origin")
		if !own && !(listed && strings.EqualFold(site, "same-site")) {
			return Refusal{http.StatusForbidden, "Rejected a request that another web site made."}
		}
	}
	return Refusal{}
}

// outside reports whether another machine can have come this way.
func outside(local netip.Addr) bool { return local.IsValid() && !local.IsLoopback() }

// allows reports whether a Host header cannot be a name that an attacker
// points to this machine (DNS rebinding). Within the machine it is absent, an
// IP literal or a localhost, as Chrome demands too; from outside it is the very
// address that was connected to. A listed name or address is always allowed.
func (d Door) allows(host string, local netip.Addr) bool {
	name := hostName(host)
	if addr, ok := literal(name); ok {
		// Behind port forwarding, as of a container, it is not the address of this end.
		return !outside(local) && !misleads(addr) || addr == local || slices.ContainsFunc(d.Hosts, func(h string) bool { return names(h, addr) })
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if slices.ContainsFunc(d.Hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return true
	}
	return !outside(local) && (host == "" || name == "localhost" || strings.HasSuffix(name, ".localhost"))
}

// misleads reports whether an address leads to loopback but is not taken for it
// by browsers: to 0.0.0.0 and [::ffff:127.0.0.1] a page's request goes without
// Sec-Fetch-Site, and that of an image without Origin, too.
func misleads(addr netip.Addr) bool { return addr.IsUnspecified() || addr.Is4In6() }

// names reports whether a listed name is an IP address, with brackets or without.
func names(listed string, addr netip.Addr) bool {
	a, err := netip.ParseAddr(strings.Trim(listed, "[]"))
	return err == nil && a == addr
}

// literal reads an IP address as a URL has it: IPv6 in brackets, IPv4 without.
func literal(name string) (netip.Addr, bool) {
	v6, bracketed := strings.CutPrefix(name, "[")
	if bracketed {
		v6, bracketed = strings.CutSuffix(v6, "]")
		addr, err := netip.ParseAddr(v6)
		return addr.WithZone(""), err == nil && bracketed
	}
	addr, err := netip.ParseAddr(name)
	return addr, err == nil && addr.Is4()
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
