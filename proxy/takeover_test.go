package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"cdpmux/proxy/proxytest"
)

// scaled shrinks a repeat count by CDPMUX_TEST_SCALE, never below 2.
func scaled(t *testing.T, n int) int {
	t.Helper()
	text := os.Getenv("CDPMUX_TEST_SCALE")
	if text == "" {
		return n
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale <= 0 {
		t.Fatalf("CDPMUX_TEST_SCALE=%q: want a number above 0", text)
	}
	return max(2, int(float64(n)*scale))
}

// Connections of one name come while others of it are at work. One is left,
// and what it is answered is its own, although all use the same ids.
func TestTakeoverRace(t *testing.T) {
	s := startServer(t, nil)
	echo := func(cmd proxytest.Command) proxytest.Reply {
		return proxytest.Reply{Result: json.RawMessage(fmt.Sprintf(`{"usage":0,"echo":%s}`, cmd.Params))}
	}
	s.browser.Handle("Storage.getUsageAndQuota", echo)
	for round := range scaled(t, 1000) {
		const rivals = 3
		var clients [rivals]*proxytest.Client
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				c, _, err := proxytest.DialErr(context.Background(), s.ws("/client-a"), nil)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				clients[i] = c
				for id := 1; id <= 5; id++ {
					c.Send(fmt.Sprintf(`{"id":%d,"method":"Storage.getUsageAndQuota","params":{"origin":"%d of %d in %d"}}`, id, id, i, round))
				}
			})
		}
		all.Wait()
		if t.Failed() {
			return
		}
		await(t, "one survivor", func() bool {
			ended := 0
			for _, c := range clients {
				if c.Ended() {
					ended++
				}
			}
			return ended == rivals-1 && s.Stats().Conns == 1
		})
		for i, c := range clients {
			if code, _ := closeCode(c); code != 0 && code != 4409 && code != 1006 {
				t.Errorf("round %d: closed with %d", round, code)
			}
			if !c.Ended() {
				await(t, "replies of the survivor", func() bool { return len(c.Transcript()) >= 5 })
			}
			for _, m := range c.Transcript() {
				if c.Ended() && m.Err() != nil { // it was to be answered when its connection was taken over
					continue
				}
				if want := fmt.Sprintf(`{"usage":0,"echo":{"origin":"%s of %d in %d"}}`, m.ID, i, round); string(m.Result) != want {
					t.Fatalf("round %d, connection %d: got %s, want %s", round, i, m, want)
				}
				if n := len(c.Replies(m.ID)); n != 1 {
					t.Fatalf("round %d, connection %d: %d replies to id %s", round, i, n, m.ID)
				}
			}
			c.Drop()
		}
		await(t, "the end of the round", func() bool { return s.Stats().Conns == 0 })
	}
	if n := s.browser.Conns(); n != 1 || s.starts.Load() != 1 {
		t.Errorf("%d connections to the browser after %d starts", n, s.starts.Load())
	}
}

// closeCode is how a client's connection ended, 0 while it is open.
func closeCode(c *proxytest.Client) (int, string) {
	if !c.Ended() {
		return 0, ""
	}
	return c.CloseStatus()
}
