package main_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// What Chrome wrote is what arrives: a lone surrogate, a zero, a line
// separator and an umlaut, spelled as Chrome spells them.
func TestBytesAreChromes(t *testing.T) {
	m := serve(t)
	reply := func(c *proxytest.Client) string {
		session := c.NewPage("about:blank").Session
		c.Send(`{"id":7000,"method":"Runtime.evaluate","params":{"expression":"'a\\ud83cb\\u0000\\u2028é'"},"sessionId":"` + session + `"}`)
		return unpadded(strings.Replace(string(await(c, "7000").Raw), session, "(session)", 1))
	}
	got := reply(m.dial(t, "a"))
	if want := reply(m.dialBrowser(t)); got != want {
		t.Errorf("reply of a string with a lone surrogate:\nwant %q\ngot  %q", want, got)
	}
}

// big is how many bytes a big reply's value has.
const big = 60 << 20

// bigValue is an expression whose value is big bytes of letters without a pattern.
var bigValue = fmt.Sprintf(`(() => {
	const letters = new Uint8Array(%d);
	for (let i = 0; i < letters.length; i++) letters[i] = 97 + (Math.imul(i, 2654435761) >>> 13) %% 26;
	return new TextDecoder().decode(letters);
})()`, big)

// askBig asks for a big value and does not wait for it.
func askBig(c *proxytest.Client, session string) *proxytest.Pending {
	return c.Go(session, "Runtime.evaluate", params{"expression": bigValue})
}

// mustBeBig checks the value of a big reply byte for byte.
func mustBeBig(t *testing.T, reply proxytest.Msg) {
	t.Helper()
	value := bytes.TrimSuffix(bytes.TrimPrefix(reply.Result, []byte(`{"result":{"type":"string","value":"`)), []byte(`"}}`))
	want := make([]byte, big)
	for i := range want {
		want[i] = byte('a' + uint32(i)*2654435761>>13%26)
	}
	if !bytes.Equal(value, want) {
		t.Errorf("big reply: want %d bytes with SHA-256 %x, got %d with %x: %s", big, sha256.Sum256(want), len(value), sha256.Sum256(value), reply)
	}
}

// A reply of 60 MiB arrives whole, and the neighbour is served meanwhile.
func TestBigReply(t *testing.T) {
	m := serve(t)
	c := proxytest.Dial(t, m.ws("/client-a"), proxytest.WithTimeout(60*time.Second))
	neighbour := m.dial(t, "b")
	p, beside := c.NewPage("about:blank"), neighbour.NewPage("about:blank")
	pending := askBig(c, p.Session)
	served := 0
	for ; !pending.Answered(); served++ {
		mustBeAlive(t, "the neighbour", beside)
	}
	mustBeBig(t, pending.Reply())
	if served < 10 {
		t.Errorf("evaluates of the neighbour beside a big reply: want at least 10 answered, got %d", served)
	}
}

// Three big replies at once are no reason to close a client that reads them.
func TestReaderAtFullSpeedStays(t *testing.T) {
	m := serveBinary(t, plainBinary(t), tempHome(t))
	c := proxytest.Dial(t, m.ws("/client-a"), proxytest.WithTimeout(60*time.Second))
	p := c.NewPage("about:blank")
	for _, pending := range []*proxytest.Pending{askBig(c, p.Session), askBig(c, p.Session), askBig(c, p.Session)} {
		mustBeBig(t, pending.Reply())
	}
	mustBeAlive(t, "the client", p)
}

// A client that stops reading is closed, and costs its neighbour nothing.
func TestReaderThatStops(t *testing.T) {
	for name, each := range map[string]struct {
		replies int
		hangs   bool // below 256 MiB it has 10 s to read on
	}{
		"over 64 MiB for 10 s": {3, true},
		"over 256 MiB":         {5, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := serveBinary(t, plainBinary(t), tempHome(t))
			c := proxytest.Dial(t, m.ws("/client-a"), proxytest.WithTimeout(30*time.Second))
			neighbour := m.dial(t, "b")
			p, beside := c.NewPage("about:blank"), neighbour.NewPage("about:blank")
			watcher := proxytest.Dial(t, m.browserURL(t), proxytest.WithTimeout(30*time.Second)).Attach(p.TargetID)
			latency(beside, 1) // warm
			quiet := latency(beside, 10)
			before := m.memory(t, "VmRSS")

			c.StopReading()
			begun := time.Now()
			for range each.replies {
				askBig(c, p.Session)
			}
			closed := func() bool { return strings.Contains(m.stderr.String(), "slow consumer") }
			if each.hangs {
				watcher.Eval("0") // the renderer is done with what came before
				loud := latency(beside, 10)
				// Below 2 ms a percentile is the machine's noise.
				if most := 3 * max(quiet, 2*time.Millisecond); loud > most {
					t.Errorf("neighbour's p99 beside one that hangs: want at most %v, got %v", most, loud)
				}
			}
			eventually(t, 30*time.Second, "log line about a slow consumer", closed)
			if took := time.Since(begun); each.hangs && took < 10*time.Second {
				t.Errorf("closed %v after it stopped reading: want at least 10 s", took)
			}
			if log := m.stderr.String(); !strings.Contains(log, "4008") {
				t.Errorf("log: want the close code 4008 in it, got:\n%s", log)
			}
			c.ResumeReading()
			// The close frame reaches only those who take what lies before it.
			if code, text := c.CloseStatus(); code != 4008 && code != 1006 {
				t.Errorf("close code of the one that stopped reading: want 4008, or 1006 when TCP was dropped, got %d %q", code, text)
			}
			if grown := (m.memory(t, "VmHWM") - before) >> 20; grown > 320 {
				t.Errorf("peak memory above the start: want at most 320 MiB, got %d MiB", grown)
			}
			mustBeAlive(t, "the neighbour", beside)
		})
	}
}

// latency is the p99 of evaluates, one after the other: the median over
// batches of 100, so that a burst of the machine's own work does not count.
func latency(p proxytest.Page, batches int) time.Duration {
	var worst []time.Duration
	for range batches {
		var took []time.Duration
		for range 100 {
			begun := time.Now()
			p.Eval("1")
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		worst = append(worst, took[98])
	}
	slices.Sort(worst)
	return worst[len(worst)/2]
}
