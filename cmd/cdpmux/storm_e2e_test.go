package main_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// shortLived makes a browser that is killed a second after each start, and
// returns its path, and how often it was started.
func shortLived(t *testing.T) (path string, starts func() int) {
	t.Helper()
	dir := tempHome(t)
	count, path := filepath.Join(dir, "count"), filepath.Join(dir, "chrome")
	real, err := proxytest.FindChromium()
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho x >>" + count + "\nexec timeout -s KILL 1 " + real + " \"$@\"\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path, func() int {
		text, _ := os.ReadFile(count)
		return bytes.Count(text, []byte("x"))
	}
}

// A browser that dies again and again is not started for ever.
func TestStormIsBroken(t *testing.T) {
	t.Parallel()
	fake, launches := shortLived(t)
	m := serve(t, "--chrome", fake, "--relaunch-max", "2")
	var refusal *http.Response
	eventually(t, 60*time.Second, "refusal by the breaker", func() bool {
		c, resp, err := proxytest.DialErr(t.Context(), m.ws("/client-a"), nil)
		if err == nil {
			c.Timeout = time.Minute // it stays through all the launches
			c.Go("", "Browser.getVersion", nil)
			c.CloseStatus()
			return false
		}
		refusal = resp
		return resp != nil && resp.StatusCode == 503
	})
	if refusal.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	status, answer, _ := m.control(t, "POST", "/v1/browser/start", nil)
	if status != 503 || !strings.Contains(string(answer), `"breaker_open"`) {
		t.Errorf("start with the breaker open: got %d %s", status, answer)
	}
	if n := launches(); n > 3 {
		t.Errorf("launches: want 3 at most, got %d", n)
	}
	if _, answer, _ := m.control(t, "GET", "/v1/browser", nil); !strings.Contains(string(answer), `"refused"`) {
		t.Errorf("state with the breaker open: got %s", answer)
	}
}

// A store whose browser dies again and again is no burden to its neighbour:
// what the neighbour's commands take in quiet and beside the storm, by turns.
// A few turns on a busy machine are no measurement, so only the full counts
// are held to the mark.
func TestStormsNeighbour(t *testing.T) {
	t.Parallel()
	fake, launches := shortLived(t)
	stormy := serveBinary(t, plainBinary(t), tempHome(t), "--chrome", fake, "--relaunch-max", "0")
	m := serveBinary(t, plainBinary(t), tempHome(t))
	page := m.dial(t, "a").NewPage("about:blank")
	const phase = 3 * time.Second
	p99 := func() time.Duration {
		var took []time.Duration
		for end := time.Now().Add(phase); time.Now().Before(end); {
			began := time.Now()
			page.Eval("1")
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	var quiet, storm []time.Duration
	turns := scaled(t, 20)
	for range turns {
		quiet = append(quiet, p99())
		c := proxytest.Dial(t, stormy.ws("/client-a")) // while it is there, the browser is launched again and again
		storm = append(storm, p99())
		c.Drop()
		stormy.control(t, "POST", "/v1/browser/stop", params{"force": true})
	}
	slices.Sort(quiet)
	slices.Sort(storm)
	a, b := quiet[turns/2], storm[turns/2]
	t.Logf("%d launches in %d turns; p99 of evaluate, median of the turns: quiet %v, storm %v, ratio %.2f", launches(), turns, a, b, float64(b)/float64(a))
	if launches() < turns {
		t.Errorf("%d launches in %d turns: no storm", launches(), turns)
	}
	if turns >= 20 && b > 3*a {
		t.Errorf("p99 beside the storm is %v, in quiet %v: want 3 times that at most", b, a)
	}
}
