package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// neighbours are noisy clients of one proxy. Their pages come from a site of
// their own and bear neighbourMark in their titles and URLs.
type neighbours struct {
	site           *proxytest.Site
	defaultContext string // the only id that all clients share
	all            []*neighbour

	done    chan struct{} // closed to end them
	running sync.WaitGroup
}

type neighbour struct {
	name     string
	received func() string // all that it got until now
	rounds   int           // how many it did; valid once it runs no more
}

const neighbourMark = "neighbour-"

// startNeighbours starts four, who go on until stop: one that holds its popups
// paused, one that watches and attaches to whatever it can see, one that opens
// and closes tabs at full count nearly without pause, and a Playwright.
func startNeighbours(t *testing.T, m *mux) *neighbours {
	t.Helper()
	n := &neighbours{site: proxytest.StartSite(t), done: make(chan struct{})}
	var contexts struct{ DefaultBrowserContextID string }
	decode(t, m.dial(t, "asks").Call("", "Target.getBrowserContexts", nil), &contexts)
	n.defaultContext = contexts.DefaultBrowserContextID

	n.start(t, m, "holder", time.Second, n.holder)
	n.start(t, m, "watcher", 500*time.Millisecond, n.watcher)
	n.start(t, m, "churner", time.Second/time.Duration(scaled(t, 60)), n.churner)
	n.startPlaywright(t, m)
	t.Cleanup(n.end)
	return n
}

// start dials, and repeats the rounds of one neighbour until the end of all.
func (n *neighbours) start(t *testing.T, m *mux, name string, pause time.Duration, rounds func(*proxytest.Client) func()) {
	t.Helper()
	c := m.dial(t, neighbourMark+name)
	one := &neighbour{name: name, received: func() string {
		var all strings.Builder
		for _, message := range c.Transcript() {
			all.Write(message.Raw)
		}
		return all.String()
	}}
	n.all = append(n.all, one)
	round := rounds(c)
	n.running.Go(func() {
		for {
			round()
			one.rounds++
			select {
			case <-n.done:
				return
			case <-time.After(pause):
			}
		}
	})
}

func (n *neighbours) url(name string) string { return n.site.URL + "/title?t=" + neighbourMark + name }

// holder waits for a debugger in each of its tabs, and never lets a popup run.
func (n *neighbours) holder(c *proxytest.Client) (round func()) {
	c.Call("", "Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
	opener := c.NewPage("about:blank")
	// The session that the auto-attach made is the one that holds the tab.
	opener.Session = c.AwaitEvent("", "Target.attachedToTarget").Param("sessionId")
	opener.Call("Runtime.runIfWaitingForDebugger", nil)
	opener.Navigate(n.url("holder"))
	open := params{
		"expression":  `void window.open("` + n.url("held") + `", "", "noopener")`,
		"userGesture": true, // else it is blocked as a pop-up
	}
	return func() {
		opener.Call("Runtime.evaluate", open)
		var event struct{ TargetInfo target }
		c.Await(func(m proxytest.Msg) bool {
			return m.Is("", "Target.attachedToTarget") && m.Into(&event) == nil && event.TargetInfo.TargetID != opener.TargetID
		})
		c.Call("", "Target.closeTarget", params{"targetId": event.TargetInfo.TargetID})
	}
}

// watcher asks for all that a client can ask for, at two roots.
func (n *neighbours) watcher(c *proxytest.Client) (round func()) {
	c.NewPage(n.url("watcher"))
	nested := proxytest.Msg{Params: c.Call("", "Target.attachToBrowserTarget", nil)}.Param("sessionId")
	for _, root := range []string{"", nested} {
		c.Call(root, "Target.setDiscoverTargets", params{"discover": true, "filter": everything})
		c.Call(root, "Target.setAutoAttach", params{
			"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true,
			"filter": []params{{"type": "tab", "exclude": true}, {}},
		})
	}
	return func() {
		var seen struct{ TargetInfos []target }
		_ = json.Unmarshal(c.Call("", "Target.getTargets", params{"filter": everything}), &seen)
		for _, each := range seen.TargetInfos {
			attached, err := c.CallErr("", "Target.attachToTarget", params{"targetId": each.TargetID, "flatten": true})
			if err == nil {
				c.Call("", "Target.detachFromTarget", attached)
			}
		}
	}
}

// churner opens tabs and closes them.
func (n *neighbours) churner(c *proxytest.Client) (round func()) {
	return func() {
		p := c.NewPage(n.url("churner"))
		p.Eval("document.title")
		p.Close()
	}
}

// startPlaywright starts testdata/clients/playwright/neighbour.mjs.
func (n *neighbours) startPlaywright(t *testing.T, m *mux) {
	t.Helper()
	recorder := record(t, m.addr)
	one := &neighbour{name: "playwright", received: recorder.received}
	n.all = append(n.all, one)

	cmd := exec.Command("node", "neighbour.mjs", "ws://"+recorder.addr+"/client-"+neighbourMark+"playwright", n.site.URL)
	cmd.Dir = filepath.Join(clientsDir(t), "playwright")
	var stderr output
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	_, _ = lines.ReadString('\n') // it has opened its page
	n.running.Go(func() {
		<-n.done
		_ = stdin.Close() // tells it to stop
		_, _ = fmt.Fscan(lines, &one.rounds)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the Playwright neighbour: %v\n%s", err, tail(stderr.String(), 20))
		}
	})
}

// end stops the neighbours and waits for them.
func (n *neighbours) end() {
	select {
	case <-n.done:
	default:
		close(n.done)
	}
	n.running.Wait()
}

// stop ends the neighbours and checks that each of them did something, and
// that they have not heard of each other.
func (n *neighbours) stop(t *testing.T) {
	t.Helper()
	n.end()
	owner := map[string]string{}
	for _, one := range n.all {
		t.Logf("the neighbour %s did %d rounds", one.name, one.rounds)
		if one.rounds == 0 {
			t.Errorf("the neighbour %s did nothing", one.name)
		}
		for id := range idsIn(one.received()) {
			if other, known := owner[id]; known && id != n.defaultContext {
				t.Errorf("id %s came to the neighbours %s and %s", id, one.name, other)
			}
			owner[id] = one.name
		}
	}
}
