package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Attach is the backend for a browser that somebody else runs. It never starts
// or stops one.
type Attach struct{ endpoint *url.URL }

// NewAttach takes http://host:port, where the browser is asked for its
// address, or ws://host:port/path, which is used as it is.
func NewAttach(endpoint string) (*Attach, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "ws" || u.Host == "" {
		return nil, errors.New("--endpoint: give it as http://HOST:PORT or ws://HOST:PORT/PATH") // what was given may have a token in it
	}
	return &Attach{u}, nil
}

// String is where the browser is, without the user, path and query, which may
// be secret.
func (a *Attach) String() string { return a.endpoint.Scheme + "://" + a.endpoint.Host }

// Start returns the browser's address, always on the host and port that were
// given, whatever the browser says of itself.
func (a *Attach) Start(ctx context.Context) (Endpoint, error) {
	address, err := a.find(ctx)
	if err != nil {
		return Endpoint{}, &Failure{
			Kind: BrowserUnreachable,
			Text: fmt.Sprintf("no browser at %s: %v", a.endpoint.Host, err),
			Hint: "start that browser with a debugging port, or correct --endpoint",
		}
	}
	return Endpoint{WS: address}, nil
}

// Stop leaves the browser alone.
func (a *Attach) Stop(context.Context) Receipt {
	return Receipt{Method: MethodNone, Verified: true}
}

// Probe looks for the browser.
func (a *Attach) Probe(ctx context.Context) error {
	_, err := a.find(ctx)
	return err
}

// find returns the address, if somebody is there. A WebSocket is only knocked
// at: a browser may ask its user before it lets one in.
func (a *Attach) find(ctx context.Context) (address string, err error) {
	if a.endpoint.Scheme == "ws" {
		return a.endpoint.String(), a.knock(ctx)
	}
	path, err := a.ask(ctx)
	return "ws://" + a.endpoint.Host + path, err
}

func (a *Attach) knock(ctx context.Context) error {
	host := a.endpoint.Host
	if a.endpoint.Port() == "" {
		host = net.JoinHostPort(a.endpoint.Hostname(), "80")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	return conn.Close()
}

// ask gets the path of the browser's WebSocket from /json/version. Neither a
// redirect nor a proxy of the environment may lead elsewhere.
func (a *Attach) ask(ctx context.Context) (path string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.endpoint.JoinPath("json/version").String(), nil)
	if err != nil {
		return "", err
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", errors.Unwrap(err) // without the URL, which the caller names
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		line, _, _ := strings.Cut(string(body), "\n")
		return "", fmt.Errorf("%s: %.200s", resp.Status, line)
	}
	var version struct {
		WebSocketDebuggerURL string `json:"webSocketDebuggerUrl"`
	}
	if err := json.Unmarshal(body, &version); err != nil {
		return "", fmt.Errorf("its answer is not a browser's: %w", err)
	}
	ws, err := url.Parse(version.WebSocketDebuggerURL)
	if err != nil {
		return "", err
	}
	if ws.Path == "" {
		return "", errors.New("it names no WebSocket")
	}
	return ws.RequestURI(), nil
}
