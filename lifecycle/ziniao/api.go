package ziniao

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"cdpmux/lifecycle"
)

// Account is who opens stores: every call names it.
type Account struct {
	Company  string `json:"company"`
	Username string `json:"username"`
	Password string `json:"password"`
}

func (a Account) check() error {
	if a.Company == "" || a.Username == "" || a.Password == "" {
		return errors.New("the Ziniao account needs company, username and password")
	}
	return nil
}

// ReadAccount reads an account from a JSON file that only its owner can read.
func ReadAccount(path string) (Account, error) {
	var a Account
	fi, err := os.Stat(path)
	if err != nil {
		return a, err
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return a, fmt.Errorf("%s can be read by others; chmod 600 it", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	if json.Unmarshal(data, &a) != nil { // its error could show the password
		return a, fmt.Errorf("%s: not JSON with company, username and password", path)
	}
	if err := a.check(); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// client speaks the API: each call is one POST of JSON to the same address.
type client struct {
	addr    string
	account Account
	http    *http.Client
}

func newClient(addr string, account Account) *client {
	return &client{addr, account, &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true}, // no proxy of the environment
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// browserInfo is one store of the list.
type browserInfo struct {
	OAuth    string `json:"browserOauth"`
	Number   loose  `json:"browserId"`
	Name     string `json:"browserName"`
	UserData string `json:"userData"`
}

// ID is the number of the store.
func (b browserInfo) ID() string { return string(b.Number) }

// loose is a number that the API gives as number or string, as it likes.
type loose string

func (l *loose) UnmarshalJSON(data []byte) error {
	*l = loose(strings.Trim(string(data), `"`))
	return nil
}

// apiError is a call that the client answered, but did not carry out.
type apiError struct {
	action, code, text string
}

// accessDenied is the code of a client without login or WebDriver permission.
const accessDenied = "-10003"

func (e *apiError) Error() string { return fmt.Sprintf("%s: code %s: %s", e.action, e.code, e.text) }

func (e *apiError) denied() bool { return e.code == accessDenied }

func (c *client) list(ctx context.Context) ([]browserInfo, error) {
	var out struct {
		BrowserList []browserInfo `json:"browserList"`
	}
	err := c.call(ctx, "getBrowserList", nil, &out)
	return out.BrowserList, err
}

// start opens a store and returns the port of its browser. One that is open
// already is replaced.
func (c *client) start(ctx context.Context, b browserInfo) (port int, err error) {
	var out struct {
		Port loose `json:"debuggingPort"`
	}
	if err := c.call(ctx, "startBrowser", &b, &out); err != nil {
		return 0, err
	}
	port, err = strconv.Atoi(string(out.Port))
	if err != nil || port <= 0 || port > 65535 {
		return 0, &apiError{"startBrowser", "0", fmt.Sprintf("it names no port: %q", string(out.Port))}
	}
	return port, nil
}

func (c *client) stop(ctx context.Context, b browserInfo) error {
	return c.call(ctx, "stopBrowser", &b, nil)
}

func (c *client) call(ctx context.Context, action string, b *browserInfo, out any) error {
	args := map[string]any{
		"action": action, "requestId": strconv.FormatInt(time.Now().UnixNano(), 36),
		"company": c.account.Company, "username": c.account.Username, "password": c.account.Password,
	}
	if b != nil {
		args["browserOauth"], args["browserId"] = b.OAuth, b.ID()
	}
	body, err := json.Marshal(args)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.addr, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	if err != nil {
		return err
	}
	var status struct {
		Code loose  `json:"statusCode"`
		Err  string `json:"err"`
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(data, &status) != nil {
		return fmt.Errorf("%s: %s is not an answer of the Ziniao client", action, resp.Status)
	}
	if status.Code != "0" {
		return &apiError{action, string(status.Code), status.Err}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// explain makes a failed call a Failure.
func explain(addr string, err error) error {
	var refused *apiError
	switch {
	case errors.As(err, &refused) && refused.denied():
		return &lifecycle.Failure{Kind: lifecycle.ZiniaoDenied, Text: "the Ziniao client refuses: " + refused.text}
	case errors.As(err, &refused):
		return &lifecycle.Failure{Kind: lifecycle.ZiniaoFailed, Text: "the Ziniao client: " + refused.Error()}
	}
	return &lifecycle.Failure{
		Kind: lifecycle.ZiniaoUnreachable,
		Text: fmt.Sprintf("no Ziniao client at %s: %v", addr, err),
	}
}

// Check says whether the client can be used: nil, or a Failure of kind
// ziniao_unreachable, ziniao_denied or ziniao_failed.
func Check(ctx context.Context, addr string, account Account) error {
	if _, err := newClient(addr, account).list(ctx); err != nil {
		return explain(addr, err)
	}
	return nil
}
