package routing

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what the Router does now into the transcripts")

// TestTranscripts replays testdata/transcripts: a step a line, what came of it
// in the lines below. Steps:
//
//	staging DIR           from here on downloads are the proxy's
//	rules JSON            the operator's policy file, called policy.json, says so
//	audit                 decisions are told
//	start                 the browser is up and has answered the proxy's set-up
//	open c1 alice         client alice connects as c1 and has its root ROOT-c1
//	connect c1 alice      … connects only
//	page c1 alice T1      … opens a page socket on T1
//	gone c1               its socket is gone
//	ready | lost WHY      the upstream connection came up, ended for good
//	settle                it has answered the proxy's set-up, after ready
//	gap WHY               … ended, and another is sought
//	saved GUID PATH       a download is where it belongs; without PATH it could not be saved
//	silent WHY            … says nothing, and what is open is given up
//	vain WHY              an attempt to get it back was in vain
//	detach WHY            the proxy ends and another one follows
//	new TOKEN CLIENT URL  PUT /json/new; CLIENT - is the HTTP owner
//	c1> TEXT   b> TEXT    a message of a client, of the browser
//	b< METHOD "result":…  the browser answers the oldest open METHOD
//	tick 5s               so much time passes
//
// What came of it, with # for the proxy's ids: `>b TEXT`, `>c1 TEXT`, `opened c1`, `close c1 REASON`,
// `answer TOKEN ID ERR`, `save`, `discard` or `aborted` with the download, `note TEXT`,
// `audited CLIENT METHOD TARGET KIND WHY`.
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
			p := newPlayer(t)
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
	now   time.Time
	grace time.Duration
	open  []Envelope // what the browser has not answered, as it came
}

func newPlayer(t *testing.T) *player {
	return &player{t: t, r: New(Config{SocketGrace: 30 * time.Second}), names: map[ConnID]string{}, conns: map[string]ConnID{}}
}

func (p *player) step(line string) []string {
	now := p.now
	if rest, ok := strings.CutPrefix(line, "b< "); ok {
		method, body, _ := strings.Cut(rest, " ")
		return p.show(p.answer(method, body))
	}
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
	case "staging":
		p.r.staging = f[1]
		return nil
	case "rules":
		rules, err := ParseRules("policy.json", []byte(strings.TrimPrefix(line, "rules ")))
		if err != nil {
			p.t.Fatal(err)
		}
		p.r.rules = rules
		return nil
	case "audit":
		p.r.audit = true
		return nil
	case "saved":
		path := strings.Join(f[2:], " ")
		return p.show(p.r.Saved(now, f[1], path, path == "", nil))
	case "start":
		out := p.note(p.r.BrowserReady(now, false, nil))
		setUp := 4
		if p.r.staging != "" {
			setUp++
		}
		return p.render(append(out[setUp:], p.settle()...))
	case "ready": // what it discovers follows, then settle; "ready started" is a browser of ours
		return p.show(p.r.BrowserReady(now, len(f) > 1, nil))
	case "settle":
		return p.render(p.settle())
	case "lost":
		return p.show(p.r.BrowserLost(now, ReasonBrowserLost, strings.Join(f[1:], " "), nil))
	case "gap":
		p.open = nil
		return p.show(p.r.BrowserGone(now, strings.Join(f[1:], " "), nil))
	case "silent":
		return p.show(p.r.Silent(now, strings.Join(f[1:], " "), nil))
	case "vain":
		return p.show(p.r.StillGone(now, strings.Join(f[1:], " "), nil))
	case "detach":
		return p.show(p.r.DetachAll(now, strings.Join(f[1:], " "), nil))
	case "connect":
		return p.show(p.connect(f[1], f[2]))
	case "page":
		id, out := p.r.ConnectPage(now, f[2], f[3], nil)
		p.conns[f[1]], p.names[id] = id, f[1]
		return p.show(out)
	case "open":
		out := p.connect(f[1], f[2])
		p.note(out)
		p.root(f[1], "ROOT-"+f[1])
		return p.render(out[1:])
	case "tick":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			p.t.Fatal(err)
		}
		p.now = now.Add(d)
		return p.show(p.r.Tick(p.now, nil))
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
	id, out := p.r.Connect(p.now, client, p.grace, nil)
	p.conns[name], p.names[id] = id, name
	return out
}

func (p *player) browser(text string) []Action {
	m := NewMessage(text)
	var env Envelope
	if !Scan(m.Text(), &env) {
		p.t.Fatalf("the browser says %s", text)
	}
	return p.r.FromBrowser(p.now, m, &env, nil)
}

// settle answers the proxy's set-up.
func (p *player) settle() []Action {
	out := p.note(p.answer("Target.setDiscoverTargets", `"result":{}`))
	p.answer("Target.getBrowserContexts", `"result":{"browserContextIds":["CTX1"],"defaultBrowserContextId":"DEFAULT"}`)
	p.answer("Browser.getVersion", `"result":{"product":"Chrome/1"}`)
	if p.r.staging != "" {
		p.answer("Browser.setDownloadBehavior", `"result":{}`)
	}
	p.root("hub", "HUB")
	p.answer("Target.setAutoAttach", `"result":{}`)
	p.answer("Target.setAutoAttach", `"result":{}`)
	return out
}

// root lets the browser attach to a browser target of its own.
func (p *player) root(name, session string) {
	info := `{"targetId":"browser-` + name + `","type":"browser","title":"","url":"","attached":true,"canAccessOpener":false}`
	p.browser(`{"method":"Target.attachedToTarget","params":{"sessionId":"` + session + `","targetInfo":` + info + `,"waitingForDebugger":false}}`)
	p.browser(`{"method":"Target.targetCreated","params":{"targetInfo":` + info + `}}`)
	p.note(p.answer("Target.attachToBrowserTarget", `"result":{"sessionId":"`+session+`"}`))
}

// answer lets the browser answer the oldest open command of a method.
func (p *player) answer(method, body string) []Action {
	for i, env := range p.open {
		if string(env.Method) == method {
			p.open = append(p.open[:i:i], p.open[i+1:]...)
			text := fmt.Sprintf(`{"id":%d,%s`, env.ID, body)
			if env.Session != nil {
				text += `,"sessionId":"` + string(env.Session) + `"`
			}
			return p.browser(text + "}")
		}
	}
	p.t.Fatalf("no %s is open", method)
	return nil
}

// note keeps what the browser is asked.
func (p *player) note(as []Action) []Action {
	for _, a := range as {
		if a.Kind == ToBrowser {
			var env Envelope
			if !Scan(bytes.Clone(a.Msg.Text()), &env) {
				p.t.Fatalf("we say %s", a.Msg.Text())
			}
			p.open = append(p.open, env)
		}
	}
	return as
}

var reasonNames = [...]string{
	ReasonBrowserClose: "browser close", ReasonTakenOver: "taken over", ReasonBrowserLost: "browser lost",
	ReasonStartFailed: "start failed", ReasonShutdown: "shutdown", ReasonTargetClosed: "target closed", ReasonNoTarget: "no target",
}

var ourID = regexp.MustCompile(`"id":1[0-9]{9}`)

func (p *player) show(as []Action) []string { return p.render(p.note(as)) }

func (p *player) render(as []Action) []string {
	var out []string
	for _, a := range as {
		switch a.Kind {
		case ToBrowser:
			out = append(out, ">b "+ourID.ReplaceAllString(string(a.Msg.Text()), `"id":#`))
		case ToClient:
			out = append(out, ">"+p.names[a.Conn]+" "+string(a.Msg.Text()))
		case Opened:
			out = append(out, "opened "+p.names[a.Conn])
		case Close:
			out = append(out, "close "+p.names[a.Conn]+" "+reasonNames[a.Reason])
		case Answer:
			out = append(out, fmt.Sprintf("answer %d %s %s", a.Token, a.Result.TargetID, a.Result.Err))
		case Save, Discard, Aborted:
			kind := map[Kind]string{Save: "save", Discard: "discard", Aborted: "aborted"}[a.Kind]
			out = append(out, fmt.Sprintf("%s %+v", kind, *a.Download))
		case Audited:
			d := a.Decision
			out = append(out, strings.TrimRight(fmt.Sprintf("audited %s %s %s %s %s", cmp.Or(d.Client, "-"), d.Method, cmp.Or(d.Target, "-"), d.Kind, d.Why), " "))
		case Note:
			out = append(out, "note "+a.Text)
		}
	}
	return out
}
