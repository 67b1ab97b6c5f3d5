package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// writeSize is above nearly every command: Chrome takes fragments, but a
	// single frame is masked and sent in one go.
	writeSize = 1 << 20
	readSize  = 64 << 10
	// readLimit is above what Chrome can send (256 MiB).
	readLimit   = 512 << 20
	dialTimeout = 10 * time.Second
)

// Dial connects to a browser's WebSocket address, in 10 s at most. One of
// ws+unix:///PATH is served on a Unix socket. base is where the browser answers
// HTTP, without a path; "" for a Unix socket, behind which it does not.
func Dial(ctx context.Context, address string, lim Limits) (l *Link, base string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", fmt.Errorf("dial browser: %w", why(err))
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	network, place := "tcp", hostPort(u)
	if u.Scheme == "ws+unix" {
		network, place = "unix", u.Path
		u = &url.URL{Scheme: "ws", Host: "localhost"}
	}
	socket, err := new(net.Dialer).DialContext(ctx, network, place)
	if err != nil {
		return nil, "", fmt.Errorf("dial browser: %w", why(err))
	}
	conn := &corkConn{Conn: socket}
	frames := &frameConn{Conn: conn}
	endpoint := url.URL{Scheme: "http", Host: socket.RemoteAddr().String()}
	header := http.Header{"Host": {endpoint.Host}} // Chrome refuses most names
	switch {
	case network == "unix":
		endpoint = url.URL{}
		header.Set("Host", u.Host)
	case u.Scheme == "wss":
		endpoint.Scheme, endpoint.Host = "https", u.Host
		header.Set("Host", u.Host)
	}
	dialer := websocket.Dialer{
		NetDialContext:  func(context.Context, string, string) (net.Conn, error) { return frames, nil },
		ReadBufferSize:  readSize,
		WriteBufferSize: writeSize,
	}
	ws, resp, err := dialer.DialContext(ctx, u.String(), header)
	if err != nil {
		socket.Close()
		if resp != nil {
			return nil, "", fmt.Errorf("dial browser: HTTP %s", resp.Status)
		}
		return nil, "", fmt.Errorf("dial browser: %w", why(err))
	}
	ws.SetReadLimit(readLimit)
	frames.on = u.Scheme == "ws" // Chrome says nothing before it is asked
	l = &Link{ws: ws, frames: frames, conn: conn, limits: lim, trusted: math.MaxInt}
	l.begin()
	return l, endpoint.String(), nil
}

// why is an error without the address in it: clients hear of it, and could go
// past us to the browser.
func why(err error) error {
	var dialed *net.OpError
	var parsed *url.Error
	switch {
	case errors.As(err, &dialed):
		return dialed.Err
	case errors.As(err, &parsed):
		return parsed.Err
	}
	return err
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"ws": "80", "wss": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
