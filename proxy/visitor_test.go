package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// hostRefused are the answers to a name and to an address that are not ours.
var hostRefused = []string{
	"Host header is specified and is not an IP address or localhost.",
	"Host header is not the address that this request came to. Use the command line flag --allow-host=NAME to allow a name.",
}

// upgradeHeaders make a request a WebSocket handshake.
const upgradeHeaders = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// raw sends a request as it stands and reads the answer. A connection that is
// closed without one has status 0.
func (s *testServer) raw(t *testing.T, request string) (status int, body string) {
	t.Helper()
	conn := handshakeNothing(t, s.addr)
	defer conn.Close()
	fmt.Fprint(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == io.ErrUnexpectedEOF {
		return 0, ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp.StatusCode, ""
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// each tries headers on HTTP and on the upgrade.
func (s *testServer) each(t *testing.T, version, headers string, check func(t *testing.T, upgrade bool, status int, body string)) {
	t.Helper()
	status, body := s.raw(t, "GET /json/version HTTP/"+version+"\r\n"+headers+"\r\n")
	check(t, false, status, body)
	status, body = s.raw(t, "GET /client-a HTTP/"+version+"\r\n"+headers+upgradeHeaders+"\r\n")
	check(t, true, status, body)
}

func TestHosts(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.AllowHosts = []string{"chrome.internal"} })
	for host, want := range map[string]int{
		"":                   200,
		"127.0.0.1":          200,
		"127.0.0.1:1":        200,
		"8.8.8.8":            200,
		"[::1]":              200,
		"[::1]:9400":         200,
		"localhost":          200,
		"LOCALHOST:80":       200,
		"localhost.":         200,
		"a.localhost":        200,
		"a.b.localhost:9":    200,
		"chrome.internal":    200,
		"Chrome.Internal:80": 200,

		"0.0.0.0:9400":         500, // this and the next two lead to 127.0.0.1, too
		"[::]":                 500,
		"[::ffff:127.0.0.1]":   500,
		"::1":                  500,
		"example.com":          500,
		"my-host":              500,
		"host.docker.internal": 500,
		"x.chrome.internal":    500,
		"127.0.0.1.nip.io":     500,
		"localhost.evil.com":   500,
		"notlocalhost":         500,
		"evil.com:127.0.0.1":   500,
		"[evil.com]":           500,
		"user@127.0.0.1":       400,
		"127.0.0.1, evil.com":  400,
		"2130706433":           500, // Chrome takes these two for IP addresses; nobody writes them in good faith
		"0x7f.1":               500,
		"a\tb":                 400, // not a Host at all, as net/http knows it
		"127.0.0.1\r\nHost: a": 400,
		"a\r\nHost: 127.0.0.1": 400,
		"a b":                  400,
	} {
		t.Run(host, func(t *testing.T) {
			s.each(t, "1.1", "Host: "+host+"\r\n", func(t *testing.T, upgrade bool, status int, body string) {
				want := want
				if upgrade && want == 200 {
					want = 101
				}
				if status != want || (want == 500 && !slices.Contains(hostRefused, body)) {
					t.Errorf("upgrade %v: %d %q, want %d", upgrade, status, body, want)
				}
			})
		})
	}
	t.Run("absent", func(t *testing.T) {
		s.each(t, "1.1", "", func(t *testing.T, upgrade bool, status int, body string) {
			if status != 400 { // net/http demands one, as RFC 9112 does
				t.Errorf("upgrade %v: %d %q, want 400", upgrade, status, body)
			}
		})
	})
	t.Run("HTTP/1.0", func(t *testing.T) {
		for headers, want := range map[string]int{"": 200, "Host: localhost\r\n": 200, "Host: example.com\r\n": 500} {
			if status, body := s.raw(t, "GET /json/version HTTP/1.0\r\n"+headers+"\r\n"); status != want {
				t.Errorf("%q: %d %q, want %d", headers, status, body, want)
			}
		}
	})
	t.Run("absolute form", func(t *testing.T) {
		if status, _ := s.raw(t, "GET http://127.0.0.1/json/version HTTP/1.1\r\nHost: example.com\r\n\r\n"); status != 404 {
			t.Errorf("HTTP %d, want 404", status)
		}
	})
}

func TestOrigins(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.AllowOrigins = []string{"https://good.example"} })
	for headers, allowed := range map[string]bool{
		"Origin: https://good.example\r\n":                               true,
		"Origin:\r\n":                                                    false,
		"Origin: null\r\n":                                               false,
		"Origin: http://" + s.addr + "\r\n":                              false,
		"Origin: http://localhost\r\n":                                   false,
		"Origin: devtools://devtools\r\n":                                false,
		"Origin: https://good.example.evil\r\n":                          false,
		"Origin: HTTPS://GOOD.EXAMPLE\r\n":                               false,
		"Origin: https://good.example\r\nOrigin: http://evil\r\n":        false,
		"Sec-Fetch-Site: none\r\n":                                       true,
		"Sec-Fetch-Site: same-origin\r\n":                                true,
		"Sec-Fetch-Site: cross-site\r\n":                                 false,
		"Sec-Fetch-Site: same-site\r\n":                                  false,
		"Origin: https://good.example\r\nSec-Fetch-Site: same-site\r\n":  true,
		"Sec-Fetch-Site: Cross-Site\r\n":                                 false,
		"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n":         false,
		"Origin: https://good.example\r\nSec-Fetch-Site: cross-site\r\n": false,
	} {
		t.Run(strings.TrimSpace(headers), func(t *testing.T) {
			s.each(t, "1.1", "Host: "+s.addr+"\r\n"+headers, func(t *testing.T, upgrade bool, status int, body string) {
				want := map[bool]int{false: 200, true: 101}[upgrade]
				if !allowed {
					want = 403
				}
				if status != want {
					t.Errorf("upgrade %v: %d %q, want %d", upgrade, status, body, want)
				}
			})
		})
	}
}

// The check comes before everything else: a refused request changes nothing.
func TestRefusedRequestDoesNotWakeTheBrowser(t *testing.T) {
	s := startServer(t, nil)
	s.raw(t, "PUT /json/new HTTP/1.1\r\nHost: example.com\r\n\r\n")
	s.raw(t, "PUT /json/new HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n")
	if n := s.starts.Load(); n != 0 {
		t.Errorf("%d starts", n)
	}
}
