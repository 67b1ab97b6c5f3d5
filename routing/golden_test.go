package routing

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the Router does now into the transcripts")

// TestTranscripts replays testdata/transcripts: a step a line, what came of it
// in the lines below. Steps:
//
//	start                 the browser is up and has answered the proxy's set-up
//	open c1 alice         client alice connects as c1 and has its root ROOT-c1
//	connect c1 alice      … connects only
//	page c1 alice T1      … opens a page socket on T1
//	gone c1               its socket is gone
//	ready | lost WHY      the upstream connection came up, ended
//	new TOKEN CLIENT URL  PUT /json/new; CLIENT - is the HTTP owner
//	c1> TEXT   b> TEXT    a message of a client, of the browser
//
// What came of it: `>b TEXT`, `>c1 TEXT`, `opened c1`, `close c1 REASON`,
// `answer TOKEN ID ERR`.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := &player{t: t, r: New(Config{}), names: map[ConnID]string{}, conns: map[string]ConnID{}}
			var got strings.Builder
			for _, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
				if isOutcome(line) {
					continue
				}
				got.WriteString(line + "\n")
				if line != "" && !strings.HasPrefix(line, "#") {
					for _, o := range p.step(line) {
						got.WriteString("    " + o + "\n")
					}
					if err := p.r.Check(); err != nil {
						t.Fatalf("after %q: %v", line, err)
					}
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got.String() != string(raw) {
				t.Errorf("%s: the Router does otherwise now; it did\n%s\nread the difference, then -update", file, firstDifference(string(raw), got.String()))
			}
		})
	}
}

func isOutcome(line string) bool { return strings.HasPrefix(line, "    ") }

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

// player drives a Router by the lines of a transcript.
type player struct {
	t     *testing.T
	r     *Router
	names map[ConnID]string
	conns map[string]ConnID
}

func (p *player) step(line string) []string {
	now := time.Unix(0, 0)
	if from, text, ok := strings.Cut(line, "> "); ok && !strings.Contains(from, " ") {
		if from == "b" {
			return p.show(p.browser(text))
		}
		m := NewMessage(text)
		var env Envelope
		if ref := ScanCommand(m.Text(), &env); ref != nil {
			return p.show(p.r.Refuse(p.conns[from], ref, nil))
		}
		return p.show(p.r.FromClient(now, p.conns[from], m, &env, nil))
	}
	f := strings.Fields(line)
	switch f[0] {
	case "start":
		as := p.r.BrowserReady(now, nil)
		for i, result := range []string{`{}`, `{"browserContextIds":[],"defaultBrowserContextId":"DEFAULT"}`, `{"product":"Chrome/1"}`} {
			p.browser(fmt.Sprintf(`{"id":%d,"result":%s}`, p.idOf(as[i]), result))
		}
		return p.show(as[3:])
	case "ready":
		return p.show(p.r.BrowserReady(now, nil))
	case "lost":
		return p.show(p.r.BrowserLost(now, ReasonBrowserLost, strings.Join(f[1:], " "), nil))
	case "connect":
		return p.show(p.connect(f[1], f[2]))
	case "page":
		id, out := p.r.ConnectPage(now, f[2], f[3], nil)
		p.conns[f[1]], p.names[id] = id, f[1]
		return p.show(out)
	case "open":
		out := p.connect(f[1], f[2])
		var rest []Action
		for _, a := range out {
			if a.Kind != ToBrowser || !strings.Contains(string(a.Msg.Text()), "attachToBrowserTarget") {
				rest = append(rest, a)
				continue
			}
			p.browser(`{"method":"Target.attachedToTarget","params":{"sessionId":"ROOT-` + f[1] + `","targetInfo":{"targetId":"browser-` + f[1] + `","type":"browser","title":"","url":"","attached":true,"canAccessOpener":false},"waitingForDebugger":false}}`)
			p.browser(`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"browser-` + f[1] + `","type":"browser","title":"","url":"","attached":true,"canAccessOpener":false}}}`)
			p.browser(fmt.Sprintf(`{"id":%d,"result":{"sessionId":"ROOT-%s"}}`, p.idOf(a), f[1]))
		}
		return p.show(rest)
	case "gone":
		return p.show(p.r.Disconnect(now, p.conns[f[1]], nil))
	case "new":
		var token uint64
		fmt.Sscan(f[1], &token)
		return p.show(p.r.NewTab(now, strings.TrimPrefix(f[2], "-"), f[3], false, token, nil))
	}
	p.t.Fatalf("no such step: %s", line)
	return nil
}

func (p *player) connect(name, client string) []Action {
	id, out := p.r.Connect(time.Unix(0, 0), client, nil)
	p.conns[name], p.names[id] = id, name
	return out
}

func (p *player) browser(text string) []Action {
	m := NewMessage(text)
	var env Envelope
	if !Scan(m.Text(), &env) {
		p.t.Fatalf("the browser says %s", text)
	}
	return p.r.FromBrowser(time.Unix(0, 0), m, &env, nil)
}

func (p *player) idOf(a Action) int32 {
	var env Envelope
	if !Scan(a.Msg.Text(), &env) {
		p.t.Fatalf("we say %s", a.Msg.Text())
	}
	return env.ID
}

func (p *player) show(as []Action) []string {
	var out []string
	for _, a := range as {
		switch a.Kind {
		case ToBrowser:
			out = append(out, ">b "+string(a.Msg.Text()))
		case ToClient:
			out = append(out, ">"+p.names[a.Conn]+" "+string(a.Msg.Text()))
		case Opened:
			out = append(out, "opened "+p.names[a.Conn])
		case Close:
			out = append(out, fmt.Sprintf("close %s %d", p.names[a.Conn], a.Reason))
		case Answer:
			out = append(out, fmt.Sprintf("answer %d %s %s", a.Token, a.Result.TargetID, a.Result.Err))
		}
	}
	return out
}
