package access

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Peer is who sent a request and how it was sent, as far as that can be
// believed.
type Peer struct {
	Addr netip.Addr // the zero Addr: over a Unix socket
	Host string     // what it knows us by
	TLS  bool
}

// Proxies are the networks of reverse proxies whose X-Forwarded-* headers are
// believed. Headers of anybody else are not looked at.
type Proxies []netip.Prefix

// Peer says who sent r.
func (p Proxies) Peer(r *http.Request) Peer {
	peer := Peer{Host: r.Host, TLS: r.TLS != nil}
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		peer.Addr = from.Addr().Unmap()
	}
	if !p.trust(peer.Addr) {
		return peer
	}
	if proto := last(r.Header["X-Forwarded-Proto"]); proto != "" {
		peer.TLS = strings.EqualFold(proto, "https") || strings.EqualFold(proto, "wss")
	}
	if host := last(r.Header["X-Forwarded-Host"]); host != "" {
		peer.Host = host
	}
	// Each proxy appends whom it heard from: the last one that is no proxy of
	// ours is as far as it can be believed.
	for _, text := range slices.Backward(list(r.Header["X-Forwarded-For"])) {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			break
		}
		if peer.Addr = addr.Unmap(); !p.trust(peer.Addr) {
			break
		}
	}
	return peer
}

// Forwarded reports whether a request says that another proxy has sent it on:
// then whoever made it may be on any machine.
func Forwarded(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" || name == "Via" || name == "X-Real-Ip" {
			return true
		}
	}
	return false
}

func (p Proxies) trust(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// list are the members of a header that may have come in several lines.
func list(values []string) (members []string) {
	for _, v := range values {
		for m := range strings.SplitSeq(v, ",") {
			members = append(members, strings.TrimSpace(m))
		}
	}
	return members
}

// last is what the proxy next to us has set.
func last(values []string) string {
	if members := list(values); len(members) > 0 {
		return members[len(members)-1]
	}
	return ""
}

// IP is the IP address of a TCP connection's end; the zero Addr is that of a
// Unix socket.
func IP(end net.Addr) netip.Addr {
	if tcp, ok := end.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
