package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"cdpmux/lifecycle"
)

// adminAPI talks to the proxy of one store, over its control API.
type adminAPI struct {
	slug  string
	at    lifecycle.Holder
	token string
}

// answerLimit bounds a question whose answer is there at once.
const answerLimit = 10 * time.Second

// notServed says that no proxy serves a store.
type notServed struct{ slug string }

func (e notServed) Error() string { return fmt.Sprintf("store %s is not served", e.slug) }
func (e notServed) Next() string  { return "cdpmux ensure --store " + e.slug }

// openAdmin finds the proxy that serves a store. The error is a notServed when
// there is none.
func openAdmin(home *lifecycle.Home, slug string) (*adminAPI, error) {
	at, err := holderOf(home, slug)
	if err != nil {
		return nil, err
	}
	token, err := home.AdminToken(slug)
	if err != nil {
		return nil, fmt.Errorf("admin token of %s: %w", slug, err)
	}
	return &adminAPI{slug, at, token}, nil
}

// holderOf is who serves a store, and where.
func holderOf(home *lifecycle.Home, slug string) (lifecycle.Holder, error) {
	if _, err := home.Store(slug); errors.Is(err, fs.ErrNotExist) {
		return lifecycle.Holder{}, fmt.Errorf("store %s was never served from %s; see cdpmux stores list", slug, home.Dir())
	} else if err != nil {
		return lifecycle.Holder{}, err
	}
	at, held, err := home.Holder(slug)
	switch {
	case err != nil:
		return at, err
	case !held:
		return at, notServed{slug}
	case at.Addr == "": // it is still to listen, or only holds the store for a moment
		return at, &lifecycle.Failure{Kind: lifecycle.CleanupPending, Text: fmt.Sprintf("the proxy of %s starts or ends just now", slug), Hint: "try again"}
	}
	return at, nil
}

// refusal is a problem that the proxy told us of.
type refusal struct {
	Text      string `json:"error"`
	Kind      string `json:"failure_kind"`
	Retryable bool   `json:"retryable"`
	Step      string `json:"next"`

	status int
}

func (r *refusal) Error() string { return r.Kind + ": " + r.Text }
func (r *refusal) Next() string  { return r.Step }

// unreachable says that nothing answered, as a proxy that starts or ends does.
type unreachable struct {
	addr string
	err  error
}

func (e *unreachable) Error() string { return fmt.Sprintf("no answer at %s: %v", e.addr, e.err) }
func (e *unreachable) Unwrap() error { return e.err }

// call sends in, if there is any, and reads the answer into out. The error is
// a *refusal when the proxy gave one, an *unreachable when none answered.
func (a *adminAPI) call(ctx context.Context, method, path string, in, out any) error {
	body, err := a.ask(ctx, method, path, in)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s at %s is not an answer of cdpmux: %w", path, a.at.Addr, err)
	}
	return nil
}

// brief is call for what is answered at once.
func (a *adminAPI) brief(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return a.call(ctx, method, path, in, out)
}

// ask is call for the answer as it came.
func (a *adminAPI) ask(ctx context.Context, method, path string, in any) ([]byte, error) {
	answer, err := a.open(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	body, err := io.ReadAll(answer)
	if err != nil {
		return nil, &unreachable{a.at.Addr, err}
	}
	return body, nil
}

// open is ask for an answer to be read while it comes.
func (a *adminAPI) open(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	var content io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.url(path), content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	transport, err := a.transport()
	if err != nil {
		return nil, err
	}
	client := http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &unreachable{a.at.Addr, errors.Unwrap(err)} // without the URL
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, &unreachable{a.at.Addr, err}
	}
	problem := &refusal{status: resp.StatusCode}
	if json.Unmarshal(body, problem) != nil || problem.Kind == "" {
		return nil, fmt.Errorf("HTTP %s for %s at %s: is that the proxy of store %s?", resp.Status, path, a.at.Addr, a.slug)
	}
	return nil, problem
}

// start has the browser up, and sees that it is this store's. It takes as long
// as ctx allows.
func (a *adminAPI) start(ctx context.Context, id string) (product string, err error) {
	if err := a.call(ctx, http.MethodPost, "/v1/browser/start", nil, nil); err != nil {
		return "", err
	}
	var version struct {
		Product string `json:"Browser"`
		Store   string `json:"Cdpmux-Store"`
	}
	if err := a.call(ctx, http.MethodGet, "/json/version", nil, &version); err != nil {
		return "", err
	}
	// A slug can be given anew, an id cannot.
	if version.Store != a.slug+"/"+id {
		return "", fmt.Errorf("%s answers for store %q, not for %s/%s: end what listens there, or choose another address: cdpmux ensure --store %s -- --listen ADDR",
			a.at.Addr, version.Store, a.slug, id, a.slug)
	}
	return version.Product, nil
}
