package ziniao

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gorilla/websocket"
)

// ready waits for both gates: the browser names its WebSocket, and its pages
// are live.
func (z *Ziniao) ready(ctx context.Context, port int) (ws string, err error) {
	for look := range looks {
		if look > 0 {
			pause(ctx, z.cfg.Timing.Pause)
		}
		if ws, err = z.version(ctx, port); err != nil {
			continue
		}
		if err = z.live(ctx, port); err == nil {
			return ws, nil
		}
	}
	return "", err
}

// version asks for the browser's WebSocket. Whatever host it names, it is the
// one that the API runs on.
func (z *Ziniao) version(ctx context.Context, port int) (ws string, err error) {
	var version struct {
		WS string `json:"webSocketDebuggerUrl"`
	}
	if err := z.get(ctx, port, "/json/version", &version); err != nil {
		return "", err
	}
	return z.pin(version.WS, port)
}

// live asks the first http page whether it is driven by the client alone: a
// stale launch shows webdriver there. Any other answer, or none, passes.
func (z *Ziniao) live(ctx context.Context, port int) error {
	var pages []struct{ Type, URL, WebSocketDebuggerURL string }
	if err := z.get(ctx, port, "/json/list", &pages); err != nil {
		return err
	}
	for _, p := range pages {
		if p.Type != "page" || !strings.HasPrefix(p.URL, "http") {
			continue
		}
		ws, err := z.pin(p.WebSocketDebuggerURL, port)
		if err != nil {
			return nil
		}
		if driven, err := z.webdriver(ctx, ws); err == nil && driven {
			return errors.New("its page is not live: navigator.webdriver is true")
		}
		return nil
	}
	return nil
}

func (z *Ziniao) webdriver(ctx context.Context, ws string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, z.cfg.Timing.Try)
	defer cancel()
	var d websocket.Dialer
	conn, _, err := d.DialContext(ctx, ws, nil)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	const ask = `{"id":1,"method":"Runtime.evaluate","params":{"expression":"navigator.webdriver","returnByValue":true}}`
	if err := conn.WriteMessage(websocket.TextMessage, []byte(ask)); err != nil {
		return false, err
	}
	var reply struct {
		Result struct{ Result struct{ Value any } }
	}
	err = conn.ReadJSON(&reply)
	return reply.Result.Result.Value == true, err
}

func (z *Ziniao) get(ctx context.Context, port int, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, z.cfg.Timing.Try)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+z.host(port)+path, nil)
	if err != nil {
		return err
	}
	resp, err := z.api.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, resp.Status)
	}
	return json.Unmarshal(data, out)
}

// pin puts our host and port into an address of the browser's.
func (z *Ziniao) pin(ws string, port int) (string, error) {
	u, err := url.Parse(ws)
	if err != nil {
		return "", err
	}
	if u.Path == "" {
		return "", errors.New("it names no WebSocket")
	}
	return "ws://" + z.host(port) + u.RequestURI(), nil
}

func (z *Ziniao) host(port int) string {
	host, _, err := net.SplitHostPort(z.cfg.Addr)
	if err != nil {
		host = z.cfg.Addr
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
