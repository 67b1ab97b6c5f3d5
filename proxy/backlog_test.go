package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
)

const (
	bigCommands = 64
	bigCommand  = 256 << 10
	fewBytes    = 1 << 20 // the mark in these tests
)

// sendBig sends commands of 256 KiB without waiting, ids 1 to 64.
func sendBig(c *proxytest.Client) (sent <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for id := 1; id <= bigCommands; id++ {
			text := fmt.Sprintf(`{"id":%d,"method":"Browser.getVersion","params":{"x":"`, id)
			c.Send(text + strings.Repeat("x", bigCommand-len(text)-3) + `"}}`)
		}
	}()
	return done
}

func awaitBig(c *proxytest.Client) {
	for id := 1; id <= bigCommands; id++ {
		c.Await(func(m proxytest.Msg) bool { return m.ID == fmt.Sprint(id) })
	}
}

// What a client sends before it has its root is bounded: it is not read on.
func TestHeldCommandsAreBounded(t *testing.T) {
	release := make(chan struct{})
	s := startServer(t, func(s *testServer) {
		s.limits.held = fewBytes
		s.address = func(context.Context) (string, error) {
			<-release
			return s.browser.URL(), nil
		}
	})
	c := proxytest.Dial(t, s.ws("/client-a"))
	sent := sendBig(c)
	const most = fewBytes/bigCommand + 1
	await(t, "held commands", func() bool { return s.Stats().Held >= fewBytes/bigCommand })
	if n := s.Stats().Held; n > most {
		t.Errorf("%d commands held, want at most %d", n, most)
	}
	close(release)
	<-sent
	awaitBig(c)
}

// A browser that does not read makes its clients wait, not the memory grow.
func TestBacklogOfTheBrowserIsBounded(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.limits.Backlog = fewBytes })
	a, b := proxytest.Dial(t, s.ws("/client-a")), proxytest.Dial(t, s.ws("/client-b"))
	a.Call("", "Browser.getVersion", nil)
	b.Call("", "Browser.getVersion", nil)
	up, err := s.Server.browser(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	waiting := up.Queued

	s.browser.Pause()
	sentA, sentB := sendBig(a), sendBig(b)
	await(t, "backlog", func() bool { return waiting() > fewBytes })
	if n := waiting(); n > fewBytes+2*2*bigCommand {
		t.Errorf("%d bytes wait, want about %d", n, fewBytes)
	}
	s.browser.Resume()
	<-sentA
	<-sentB
	for id := 2; id <= bigCommands; id++ { // id 1 was used before
		a.Await(func(m proxytest.Msg) bool { return m.ID == fmt.Sprint(id) })
		b.Await(func(m proxytest.Msg) bool { return m.ID == fmt.Sprint(id) })
	}
	await(t, "empty outbox", func() bool { return waiting() == 0 })
}
