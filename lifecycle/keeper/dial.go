package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
)

// Prove checks that a browser answers at ws: a port alone may be a stranger's.
func Prove(ctx context.Context, ws string) error {
	if ws == "" {
		return errors.New("no address")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
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
