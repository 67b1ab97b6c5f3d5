package access

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// The Host rule within the machine is tested through the proxy, by TestHosts.
func TestHostsFromOutside(t *testing.T) {
	d := Door{Hosts: []string{"cdp.example.com", "198.51.100.9", "2001:db8::9", "[2001:db8::a]"}}
	for _, tc := range []struct {
		local, host string
		allowed     bool
	}{
		{"192.0.2.7", "192.0.2.7:9400", true},
		{"192.0.2.7", "192.0.2.7", true},
		{"192.0.2.7", "CDP.example.com.:443", true},
		{"2001:db8::7", "[2001:db8::7]:9400", true},
		{"2001:db8::7", "[2001:DB8:0::7]", true},
		{"192.0.2.7", "198.51.100.9:9400", true},
		{"192.0.2.7", "[2001:db8::9]:443", true},
		{"192.0.2.7", "[2001:db8::a]", true},
		{"192.0.2.7", "192.0.2.8:9400", false},
		{"192.0.2.7", "127.0.0.1:9400", false},
		{"192.0.2.7", "[::1]", false},
		{"192.0.2.7", "localhost", false},
		{"192.0.2.7", "", false},
		{"192.0.2.7", "evil.example", false},
		{"192.0.2.7", "192.0.2.7.nip.io", false},
		{"192.0.2.7", "cdp.example.com.evil", false},
		{"192.0.2.7", "[::ffff:192.0.2.7]", false},
		{"192.0.2.7", "[::ffff:198.51.100.9]", false},
		{"2001:db8::7", "2001:db8::7", false},
		{"127.0.0.1", "192.0.2.7", true}, // an address is no name
		{"127.0.0.1", "198.51.100.9:9400", true},
		{"127.0.0.1", "[::1]:9400", true},
		{"127.0.0.1", "[::ffff:127.0.0.1]:9400", false},
		{"127.0.0.1", "0.0.0.0:9400", false},
		{"::1", "[::]:9400", false},
		{"127.0.0.1", "localhost", true},
		{"127.0.0.1", "cdp.example.com", true},
		{"127.0.0.1", "evil.example", false},
	} {
		r := d.Refuse(nil, tc.host, netip.MustParseAddr(tc.local))
		if allowed := r.Status == 0; allowed != tc.allowed {
			t.Errorf("Host %q to %s: %d %s", tc.host, tc.local, r.Status, r.Text)
		}
	}
	for host, allowed := range map[string]bool{"": true, "localhost": true, "127.0.0.1": true, "cdp.example.com": true, "evil.example": false, "0.0.0.0": false} {
		if r := d.Refuse(nil, host, IP(&net.UnixAddr{Name: "/s"})); (r.Status == 0) != allowed {
			t.Errorf("Host %q to a Unix socket: %d", host, r.Status)
		}
	}
}

func TestPeer(t *testing.T) {
	proxies := Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	forwarded := http.Header{
		"X-Forwarded-For": {"203.0.113.9, 198.51.100.4", "10.1.1.1"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"a.example, cdp.example.com"},
	}
	believed := Peer{netip.MustParseAddr("198.51.100.4"), "cdp.example.com", true}
	for _, tc := range []struct {
		remote string
		header http.Header
		want   Peer
	}{
		{"10.2.3.4:5", forwarded, believed},
		{"[::ffff:10.2.3.4]:5", forwarded, believed},
		{"[::1]:5", forwarded, believed},
		{"127.0.0.1:5", forwarded, Peer{netip.MustParseAddr("127.0.0.1"), "me", false}},
		{"11.0.0.1:5", forwarded, Peer{netip.MustParseAddr("11.0.0.1"), "me", false}},
		{"@", forwarded, Peer{netip.Addr{}, "me", false}},
		{"", forwarded, Peer{netip.Addr{}, "me", false}},
		{"10.2.3.4:5", nil, Peer{netip.MustParseAddr("10.2.3.4"), "me", false}},
		{"10.2.3.4:5", http.Header{"X-Forwarded-Proto": {"http"}, "X-Forwarded-For": {"nonsense, unknown"}}, Peer{netip.MustParseAddr("10.2.3.4"), "me", false}},
		{"10.2.3.4:5", http.Header{"X-Forwarded-For": {"10.9.9.9"}}, Peer{netip.MustParseAddr("10.9.9.9"), "me", false}},
	} {
		r := &http.Request{Host: "me", RemoteAddr: tc.remote, Header: tc.header}
		if got := proxies.Peer(r); got != tc.want {
			t.Errorf("%s with %v: %+v, want %+v", tc.remote, tc.header, got, tc.want)
		}
	}
	r := &http.Request{Host: "me", RemoteAddr: "10.2.3.4:5", Header: forwarded}
	if got := (Proxies)(nil).Peer(r); got.Host != "me" || got.TLS {
		t.Errorf("without a trusted proxy: %+v", got)
	}
}
