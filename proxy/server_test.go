package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/proxy/proxytest"
)

// testServer is a Server before a fake browser.
type testServer struct {
	*Server
	addr    string
	browser *proxytest.Browser
	address func(context.Context) (string, error) // of the browser
	ending  chan struct{}                         // closed when the first browser is known to end
	starts  atomic.Int32
}

// startServer serves until the test ends. setup may change the server before.
func startServer(t *testing.T, setup func(*testServer)) *testServer {
	t.Helper()
	s := &testServer{browser: proxytest.Start(t)}
	s.Server = New(Config{Store: "demo/1a2b3c4d", MaxClients: 16, Logger: zerolog.Nop()})
	s.address = func(context.Context) (string, error) { return s.browser.URL(), nil }
	if setup != nil {
		setup(s)
	}
	s.cfg.Life.Start = func(ctx context.Context) (Place, error) {
		first := s.starts.Add(1) == 1
		address, err := s.address(ctx)
		place := Place{Address: address}
		if first && s.ending != nil {
			place.Ending = s.ending
		}
		return place, err
	}
	listener := listen(t)
	s.addr = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	t.Cleanup(func() {
		if err := s.Check(); err != nil {
			t.Errorf("tables: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

func (s *testServer) ws(path string) string { return "ws://" + s.addr + path }

func (s *testServer) get(t *testing.T, path string) (int, http.Header, string) {
	t.Helper()
	return s.do(t, http.MethodGet, path)
}

func (s *testServer) do(t *testing.T, method, path string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+s.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(body)
}

func TestCommandsSentWhileTheBrowserStartsAreAnsweredInOrder(t *testing.T) {
	release := make(chan struct{})
	s := startServer(t, func(s *testServer) {
		s.address = func(context.Context) (string, error) {
			<-release
			return s.browser.URL(), nil
		}
	})
	early := proxytest.Dial(t, s.ws("/client-early"))
	early.Drop() // its leaving stops nothing
	a, b := proxytest.Dial(t, s.ws("/client-a")), proxytest.Dial(t, s.ws("/devtools/browser/b"))
	var pending []*proxytest.Pending
	for range 100 {
		pending = append(pending, a.Go("", "Browser.getVersion", nil))
	}
	await(t, "held commands", func() bool { return s.Stats().Held == 100 })
	if n := len(a.Transcript()); n > 0 {
		t.Fatalf("%d messages before the browser was up", n)
	}
	close(release)
	for _, p := range pending {
		if _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range a.Transcript() {
		if want := fmt.Sprint(i + 1); m.ID != want {
			t.Fatalf("reply %d has id %s", i+1, m.ID)
		}
	}
	b.Call("", "Browser.getVersion", nil)
	if n := s.starts.Load(); n != 1 {
		t.Errorf("%d starts, want 1", n)
	}
}

// noSandbox is a failure with a kind, as package lifecycle has them.
type noSandbox struct{}

func (noSandbox) Error() string       { return "chrome: no usable sandbox" }
func (noSandbox) FailureKind() string { return "launch_sandbox" }
func (noSandbox) Next() string        { return "run it as another user" }
func (noSandbox) Status() int         { return 503 }
func (noSandbox) Retryable() bool     { return false }

func TestFailedStartIsToldAndTriedAgain(t *testing.T) {
	held := make(chan struct{})
	s := startServer(t, func(s *testServer) {
		s.address = func(context.Context) (string, error) {
			<-held
			return "", noSandbox{}
		}
	})
	c := proxytest.Dial(t, s.ws("/client-a"))
	p := c.Go("", "Browser.getVersion", nil)
	await(t, "held command", func() bool { return s.Stats().Held == 1 })
	close(held)
	_, err := p.Wait()
	if err == nil || !strings.Contains(err.Message, "launch_sandbox") || !strings.Contains(err.Message, "run it as another user") {
		t.Errorf("held command answered with %v", err)
	}
	if code, text := c.CloseStatus(); code != 1013 || !strings.HasPrefix(text, "launch_sandbox: ") {
		t.Errorf("closed with %d %q", code, text)
	}
	status, header, body := s.get(t, "/json/version")
	var got problem
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("body %q: %v", body, err)
	}
	want := problem{Text: "chrome: no usable sandbox", Kind: "launch_sandbox", Next: "run it as another user"}
	if status != 503 || header.Get("Retry-After") == "" || got != want {
		t.Errorf("HTTP %d, %v, %+v", status, header, got)
	}
	if n := s.starts.Load(); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

// Who is told that the browser is not reached is not told where it listens.
func TestAddressOfTheBrowserIsNotTold(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	s := startServer(t, func(s *testServer) {
		s.address = func(context.Context) (string, error) { return "ws://" + address + "/devtools/browser/u", nil }
	})
	if status, _, body := s.get(t, "/json/version"); status != 503 || strings.Contains(body, address) || !strings.Contains(body, "dial browser: connect: ") {
		t.Errorf("HTTP %d %s", status, body)
	}
}

func TestStartTimeout(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		s.cfg.StartTimeout = 50 * time.Millisecond
		s.address = func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
	})
	if status, _, body := s.get(t, "/json/list"); status != 504 || !strings.Contains(body, `"launch_timeout"`) {
		t.Errorf("HTTP %d %s", status, body)
	}
}

func TestBrowserLost(t *testing.T) {
	s := startServer(t, nil)
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil)
	s.browser.Fault("Storage.getCookies", proxytest.Fault{Ignore: true})
	p := c.Go("", "Storage.getCookies", nil)
	s.browser.AwaitCommand(func(cmd proxytest.Command) bool { return cmd.Method == "Storage.getCookies" })
	s.browser.Drop()
	if _, err := p.Wait(); err == nil {
		t.Error("the pending command succeeded")
	}
	await(t, "the browser again", func() bool { _, err := c.CallErr("", "Browser.getVersion", nil); return err == nil })
	if n := s.starts.Load(); n != 2 {
		t.Errorf("%d starts, want 2", n)
	}
}

func TestNewestConnectionOfAnIDWins(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.MaxClients = 1 })
	old := proxytest.Dial(t, s.ws("/client-a"))
	old.Call("", "Browser.getVersion", nil)
	newer := proxytest.Dial(t, s.ws("/devtools/browser/a"))
	if code, text := old.CloseStatus(); code != 4409 || text != "client id claimed by a newer connection" {
		t.Errorf("closed with %d %q", code, text)
	}
	newer.Call("", "Browser.getVersion", nil)
}

func TestClientTooMany(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.cfg.MaxClients = 2 })
	a := proxytest.Dial(t, s.ws("/client-a"))
	proxytest.Dial(t, s.ws("/"))
	_, resp, err := proxytest.DialErr(context.Background(), s.ws("/client-c"), nil)
	if err == nil || resp == nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Fatalf("the third client: %v, %+v", err, resp)
	}
	body, _ := io.ReadAll(resp.Body)
	if !strings.Contains(string(body), `"capacity_unavailable"`) {
		t.Errorf("body %s", body)
	}
	a.Close()
	await(t, "place", func() bool { return s.Stats().Clients == 1 })
	proxytest.Dial(t, s.ws("/client-c")).Call("", "Browser.getVersion", nil)
}

// What Chrome would drop the shared connection for ends its sender alone.
func TestForbiddenFrames(t *testing.T) {
	s := startServer(t, nil)
	neighbour := proxytest.Dial(t, s.ws("/client-n"))
	neighbour.Call("", "Browser.getVersion", nil)
	for name, tc := range map[string]struct {
		send func(*proxytest.Client)
		code int
	}{
		"binary":           {func(c *proxytest.Client) { c.SendBinary([]byte(`{"id":1,"method":"Browser.getVersion"}`)) }, 1003},
		"100 MiB":          {func(c *proxytest.Client) { c.SendBytes([]byte{0x81, 0xff, 0, 0, 0, 0, 6, 0x40, 0, 0, 1, 2, 3, 4}) }, 1009},
		"reserved bit":     {func(c *proxytest.Client) { c.SendBytes([]byte{0xc1, 0x80, 0, 0, 0, 0}) }, 1002},
		"unmasked":         {func(c *proxytest.Client) { c.SendBytes([]byte{0x81, 0x01, 'x'}) }, 1002},
		"100 MiB in parts": {sendInParts, 1009},
	} {
		t.Run(name, func(t *testing.T) {
			c := proxytest.Dial(t, s.ws("/client-a"))
			c.Call("", "Browser.getVersion", nil)
			tc.send(c)
			if code, text := c.CloseStatus(); code != tc.code {
				t.Errorf("closed with %d %q, want %d", code, text, tc.code)
			}
		})
	}
	neighbour.Call("", "Browser.getVersion", nil)
	if n := s.browser.Conns(); n != 1 || s.starts.Load() != 1 {
		t.Errorf("%d connections to the browser after %d starts", n, s.starts.Load())
	}
}

// sendInParts announces 100 MiB in two fragments, the second by its header.
func sendInParts(c *proxytest.Client) {
	c.SendBytes([]byte{0x01, 0x81, 0, 0, 0, 0, 'x'})
	c.SendBytes([]byte{0x80, 0xff, 0, 0, 0, 0, 6, 0x3f, 0xff, 0xff, 1, 2, 3, 4})
}

func TestTheLargestTextIsRead(t *testing.T) {
	s := startServer(t, nil)
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil)
	c.Send(strings.Repeat("x", 100<<20-1)) // no JSON, which is soon found out
	c.Await(func(m proxytest.Msg) bool { return m.ID == "" && m.Err().Code == -32700 })
}

func TestShutdown(t *testing.T) {
	s := startServer(t, nil)
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil)
	s.browser.Fault("Storage.getCookies", proxytest.Fault{Ignore: true})
	p := c.Go("", "Storage.getCookies", nil)
	s.browser.AwaitCommand(func(cmd proxytest.Command) bool { return cmd.Method == "Storage.getCookies" })
	idle := handshakeNothing(t, s.addr)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if _, err := p.Wait(); err == nil || err.Message != "proxy is shutting down" {
		t.Errorf("pending command answered with %v", err)
	}
	if code, _ := c.CloseStatus(); code != 1001 {
		t.Errorf("closed with %d, want 1001", code)
	}
	if _, err := idle.Read(make([]byte, 1)); err == nil {
		t.Error("a silent connection is still open")
	}
	if n := s.browser.Conns(); n != 0 {
		t.Errorf("%d connections to the browser", n)
	}
}

func TestShutdownDuringAStart(t *testing.T) {
	s := startServer(t, func(s *testServer) {
		s.address = func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
	})
	answer := make(chan int, 1)
	go func() {
		defer close(answer)
		status, _, _ := s.get(t, "/json/version")
		answer <- status
	}()
	await(t, "start", func() bool { return s.starts.Load() == 1 })
	c := proxytest.Dial(t, s.ws("/client-a"))
	await(t, "client", func() bool { return s.Stats().Conns == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if code, _ := c.CloseStatus(); code != 1001 {
		t.Errorf("closed with %d, want 1001", code)
	}
	if status := <-answer; status != 503 {
		t.Errorf("HTTP %d, want 503", status)
	}
}

// A browser that hangs and a client that does not read must not hold it up.
func TestShutdownIsCutOff(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.limits.CloseWait = time.Hour })
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil)
	c.StopReading()
	s.browser.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v, want the context's error", err)
	}
	s.browser.Resume()
}
