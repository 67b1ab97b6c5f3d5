package proxy

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
	"cdpmux/proxy/wire"
)

// 64 MiB are on their way to a client that vanishes: nothing of it stays.
func TestClientVanishesWithMuchInFlight(t *testing.T) {
	s := startServer(t, nil)
	neighbour := proxytest.Dial(t, s.ws("/client-n"))
	page := neighbour.NewPage("about:blank")
	shot := json.RawMessage(`{"data":"` + strings.Repeat("x", 8<<20) + `"}`)
	s.browser.Handle("Page.captureScreenshot", func(proxytest.Command) proxytest.Reply { return proxytest.Reply{Result: shot} })
	vanish := func() {
		c := proxytest.Dial(t, s.ws("/client-a"))
		p := c.NewPage("about:blank")
		c.StopReading()
		for range 8 {
			c.Go(p.Session, "Page.captureScreenshot", nil)
		}
		await(t, "64 MiB for the client", func() bool {
			for _, cl := range s.Status().Clients {
				if cl.ID == "a" && cl.Pending == 0 && cl.QueuedBytes > 50<<20 {
					return true
				}
			}
			return false
		})
		c.Drop()
		await(t, "its end", func() bool { return s.Stats().Conns == 1 && len(s.linksNow()) == 2 })
	}
	vanish() // what is made once is made
	goroutines, files, heap := runtime.NumGoroutine(), openFiles(t), heapInUse()
	vanish()
	await(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
	await(t, "as many open files as before", func() bool { return openFiles(t) <= files })
	if now := heapInUse(); now > heap+8<<20 {
		t.Errorf("heap: %d MiB, was %d MiB", now>>20, heap>>20)
	}
	page.Call("Page.enable", nil)
}

func (s *Server) linksNow() (ls []*wire.Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links {
		ls = append(ls, l)
	}
	return ls
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held is freed by the second one
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
