package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// flood sends that many commands ahead, which the browser does not answer.
func flood(s *testServer, c *proxytest.Client, n int) (sent <-chan struct{}) {
	s.browser.Fault("Storage.getUsageAndQuota", proxytest.Fault{Ignore: true})
	done := make(chan struct{})
	go func() {
		defer close(done)
		pad := strings.Repeat("x", 1000)
		for id := range n {
			c.Send(fmt.Sprintf(`{"id":%d,"method":"Storage.getUsageAndQuota","params":{"origin":%q}}`, id+1000, pad))
		}
	}()
	return done
}

func reached(s *testServer) (n int) {
	for _, cmd := range s.browser.Received() {
		if cmd.Method == "Storage.getUsageAndQuota" {
			n++
		}
	}
	return n
}

// What one client sends far ahead of the replies stays with it: at the browser
// it would stand before everybody's next command.
func TestClientFarAheadWaits(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.limits.pause = time.Hour })
	a, b := proxytest.Dial(t, s.ws("/client-a")), proxytest.Dial(t, s.ws("/client-b"))
	a.Call("", "Browser.getVersion", nil)
	flood(s, a, 1000)
	await(t, "a full share", func() bool { return reached(s) >= s.limits.ahead })
	for range 100 {
		b.Call("", "Browser.getVersion", nil)
	}
	if n := reached(s); n >= s.limits.ahead+batchMost {
		t.Errorf("%d commands at the browser, want less than %d", n, s.limits.ahead+batchMost)
	}
}

// Commands that hang hold up those behind them for a moment only.
func TestClientFarAheadGoesOn(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.limits.pause = time.Millisecond })
	a := proxytest.Dial(t, s.ws("/client-a"))
	a.Call("", "Browser.getVersion", nil)
	<-flood(s, a, 1000)
	a.Call("", "Browser.getVersion", nil)
	if n := reached(s); n != 1000 {
		t.Errorf("%d commands at the browser, want all 1000", n)
	}
}

// Whoever is answered is read on, without a pause that runs out.
func TestAnsweredClientIsReadOn(t *testing.T) {
	s := startServer(t, func(s *testServer) { s.limits.pause = time.Hour })
	a := proxytest.Dial(t, s.ws("/client-a"))
	var open []*proxytest.Pending
	for i := range 2000 {
		method := "Browser.getVersion" // the browser answers
		if i%2 == 0 {
			method = "Target.setDiscoverTargets" // the proxy itself refuses: params are missing
		}
		open = append(open, a.Go("", method, nil))
	}
	for _, p := range open {
		p.Reply()
	}
}
