package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
)

// call sends a call of the control API as the operator.
func (s *testServer) call(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

func TestControlRefusesWhatCannotBeMeant(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.AdminToken = "secret" })
	for _, c := range []struct {
		method, path, body string
		status             int
		kind               string
	}{
		{"POST", "/v1/hold", `{"ttl_s":-1}`, 400, "bad_request"},
		{"POST", "/v1/hold", `{"ttl_s":"x"}`, 400, "bad_request"},
		{"POST", "/v1/clients/a.b/close", ``, 400, "bad_request"},
		{"POST", "/v1/browser/stop", `{}`, 409, "browser_in_use"}, // not ours
		{"GET", "/v1/hold", ``, 405, "unknown_call"},
		{"POST", "/v1/clients/a/trace", ``, 405, "unknown_call"},
		{"POST", "/v1/clients/a/else", ``, 404, "unknown_call"},
		{"POST", "/v1/clients/{id}/else", ``, 404, "unknown_call"},
		{"GET", "/v1/sessions", ``, 404, "unknown_call"}, // there are none here
		{"GET", "/v1/", ``, 404, "unknown_call"},
	} {
		if status, answer := s.call(t, c.method, c.path, c.body); status != c.status || !strings.Contains(answer, c.kind) {
			t.Errorf("%s %s %s: want %d %s, got %d %s", c.method, c.path, c.body, c.status, c.kind, status, answer)
		}
	}
	_, header, body := s.get(t, "/v1/nothing")
	if !strings.Contains(body, `"next":"call one of these: GET /v1/browser, GET /v1/clients/{id}/trace, POST /v1/browser/start, `) || header.Get("Retry-After") != "" {
		t.Errorf("no such call: %v %s", header, body)
	}
	if _, header, body := s.get(t, "/v1/drain"); header.Get("Allow") != "POST" || !strings.Contains(body, `"next":"send it with POST"`) {
		t.Errorf("another method: %v %s", header, body)
	}
	if status, _, _ := s.get(t, "/v1/browser"); status != 401 {
		t.Errorf("without the token: want 401, got %d", status)
	}
}

// Who connects while the browser is being ended waits for the next one.
func TestConnectsDuringAStop(t *testing.T) {
	ending, end := make(chan struct{}), make(chan struct{})
	s := startServer(t, func(s *testServer) {
		s.cfg.Life.Stop = func(hung bool) (any, bool) {
			if hung {
				t.Error("ended as a browser that hangs")
			}
			close(ending)
			<-end
			return "receipt", true
		}
	})
	first := proxytest.Dial(t, s.ws("/client-a"))
	first.Call("", "Browser.getVersion", nil)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if _, _, err := s.StopBrowser(context.Background(), false); err == nil {
			t.Error("stopped although a client is connected")
		}
		if receipt, verified, err := s.StopBrowser(context.Background(), true); receipt != "receipt" || !verified || err != nil {
			t.Errorf("stop by force: got %v %v %v", receipt, verified, err)
		}
	}()
	<-ending
	if code, _ := first.CloseStatus(); code != 1012 {
		t.Errorf("client closed with %d, want 1012", code)
	}
	late := proxytest.Dial(t, s.ws("/client-late"))
	pending := late.Go("", "Browser.getVersion", nil)
	await(t, "held command", func() bool { return s.Stats().Held == 1 })
	if state := s.Status().Browser.State; state != "stopping" {
		t.Errorf("state: want stopping, got %s", state)
	}
	close(end)
	<-stopped
	if _, err := pending.Wait(); err != nil {
		t.Errorf("who came during the stop: got %v", err)
	}
}

// A browser that is not reached after the last attempt is ended as one that
// hangs, and another one is started.
func TestBrowserThatHangsIsReplaced(t *testing.T) {
	var hangs, replaced bool
	s := startServer(t, func(s *testServer) {
		quickRedials(s)
		s.cfg.Life.Stop = func(hung bool) (any, bool) {
			hangs, replaced = false, hung
			return nil, true
		}
		s.address = func(context.Context) (string, error) {
			if hangs {
				return "", io.ErrUnexpectedEOF
			}
			return s.browser.URL(), nil
		}
	})
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil)
	s.mu.Lock()
	hangs = true
	s.mu.Unlock()
	s.browser.Drop()
	await(t, "another browser", func() bool {
		_, err := c.CallErr("", "Browser.getVersion", nil)
		return err == nil
	})
	if !replaced {
		t.Error("not ended as a browser that hangs")
	}
}
