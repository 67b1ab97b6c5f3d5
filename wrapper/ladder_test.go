package wrapper

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ladderRow is one row of testdata/ladder.json: calls one after another.
type ladderRow struct {
	Name  string
	Calls []struct {
		Do      string // what browser-use does
		Args    []string
		Counter string // written before the call
		Exit    int
		Stderr  string
		Left    string // counter file afterwards
	}
	Reloads string // sessions that were reloaded, in order
}

// The wedge ladder: one time-out ends the daemon, the next gives up, anything
// else proves that the browser was reachable.
func TestLadder(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/ladder.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []ladderRow
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, func(s *Script) { s.Timeout = 3 * time.Second }) // a busy machine needs some for what does not hang
			env, runs := p.env, 0
			for i, call := range row.Calls {
				session := "shop"
				if len(call.Args) > 0 {
					session += "-w" + call.Args[1]
				}
				counter := filepath.Join(p.script.Home, "run", "wedge-"+session+".n")
				if call.Counter != "" {
					if err := replace(counter, []byte(call.Counter), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				p.env = append(env, "STUB_DO="+call.Do)
				got := p.call(t, call.Args...)
				if got.code != call.Exit || got.stderr != call.Stderr {
					t.Errorf("call %d: want exit %d with %q, got %v", i+1, call.Exit, call.Stderr, got)
				}
				left, _ := os.ReadFile(counter)
				mustEqual(t, "counter", call.Left, strings.TrimSpace(string(left)))
				runs++
			}
			mustEqual(t, "calls of browser-use: none is repeated", strings.Repeat("run\n", runs), p.note(t, "calls"))
			var reloads []string
			for line := range strings.Lines(p.note(t, "reloads")) {
				session, endpoint, _ := strings.Cut(strings.TrimSpace(line), " ")
				if !strings.HasPrefix(endpoint, "ws://127.0.0.1:9400/client-") {
					t.Errorf("the reload has endpoint %q", endpoint)
				}
				reloads = append(reloads, session)
			}
			mustEqual(t, "reloads", row.Reloads, strings.Join(reloads, " "))
		})
	}
}

// A tool that does not heed TERM is killed, and a reload that fails or is noisy
// changes nothing.
func TestLadderStubborn(t *testing.T) {
	t.Parallel()
	p := newPost(t, func(s *Script) { s.Timeout = time.Second })
	p.env = append(p.env, "STUB_DO=exec perl -e '$SIG{TERM} = sub {}; sleep 1 while 1'", "STUB_RELOAD=echo noise; echo noise >&2; kill -9 $$")
	got := p.call(t)
	if got.code != 142 || got.stdout != "" || got.stderr != "timed out (1s) on 'shop' (consecutive: 1)\n" || got.took > 20*time.Second {
		t.Errorf("want 142 within 20 s, got %v", got)
	}
	mustEqual(t, "counter", "1\n", read(t, filepath.Join(p.script.Home, "run", "wedge-shop.n")))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
