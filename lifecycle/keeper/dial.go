package keeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"
)

// Prove checks that a browser answers at ws: a port alone may be a stranger's.
func Prove(ctx context.Context, ws string) error {
	u, err := url.Parse(ws)
	if err != nil || ws == "" {
		return errors.New("no address")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if u.Scheme == unixScheme {
		return proveUnix(ctx, u.Path)
	}
	var d websocket.Dialer // Proxy is nil: the environment has no say
	conn, _, err := d.DialContext(ctx, ws, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"id":1,"method":"Browser.getVersion"}`)); err != nil {
		return err
	}
	var reply struct {
		Error *struct{ Message string }
	}
	if err := conn.ReadJSON(&reply); err != nil {
		return err
	}
	if reply.Error != nil {
		return fmt.Errorf("Browser.getVersion: %s", reply.Error.Message)
	}
	return nil
}

// proveUnix asks the keeper, which relays Chrome's pipe on a socket.
func proveUnix(ctx context.Context, socket string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/", nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}).RoundTrip(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("Browser.getVersion: %s", resp.Status)
	}
	return nil
}
