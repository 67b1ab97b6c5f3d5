package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
)

// command sends one browser-level command over a connection of its own and
// waits for what comes back: the answer, or the end of the connection.
func command(ctx context.Context, ws, method string) error {
	var d websocket.Dialer // Proxy is nil: the environment has no say
	conn, _, err := d.DialContext(ctx, ws, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.WriteJSON(map[string]any{"id": 1, "method": method}); err != nil {
		return err
	}
	var reply struct {
		Error *struct{ Message string }
	}
	if err := conn.ReadJSON(&reply); err != nil {
		return err
	}
	if reply.Error != nil {
		return fmt.Errorf("%s: %s", method, reply.Error.Message)
	}
	return nil
}

// prove checks that a browser answers at ws: a port alone may be a stranger's.
func prove(ctx context.Context, ws string) error {
	if ws == "" {
		return errors.New("no address")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return command(ctx, ws, "Browser.getVersion")
}
