package main_test

import (
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// A dialog is heard and answered by its page's client, and by nobody else.
func TestDialogIsTheClientsOwn(t *testing.T) {
	m := serve(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	ofA, ofB := a.NewPage("about:blank"), b.NewPage("about:blank")
	ofA.Call("Page.enable", nil)
	ofB.Call("Page.enable", nil)
	asking := a.Go(ofA.Session, "Runtime.evaluate", params{"expression": "confirm('sure?')", "returnByValue": true})
	if got := a.AwaitEvent(ofA.Session, "Page.javascriptDialogOpening").Param("message"); got != "sure?" {
		t.Errorf("text of the dialog: want %q, got %q", "sure?", got)
	}
	if err := b.Go(ofB.Session, "Page.handleJavaScriptDialog", params{"accept": false}).Reply().Err(); err == nil {
		t.Error("b answers a dialog: want an error, got none")
	}
	mustBeAlive(t, "the neighbour", ofB)
	ofA.Call("Page.handleJavaScriptDialog", params{"accept": true})
	var answer struct{ Result struct{ Value bool } }
	decode(t, asking.Reply().Result, &answer)
	if !answer.Result.Value {
		t.Error("answer to the confirm: want true, got false")
	}
	mustBeStrangers(t, a, b)
}

// Whoever held a dialog and leaves takes it along, when the client stays.
func TestLeaversDialogIsDismissed(t *testing.T) {
	m := serve(t)
	for _, each := range []struct {
		name  string
		leave func(t *testing.T, holder *proxytest.Client)
	}{
		{"taken over", func(*testing.T, *proxytest.Client) {}},
		{"dropped", func(_ *testing.T, holder *proxytest.Client) { holder.Drop() }},
	} {
		for _, enabled := range []bool{true, false} {
			name := each.name + ", Page enabled"
			if !enabled {
				name = each.name + ", Page not enabled"
			}
			t.Run(name, func(t *testing.T) {
				a := m.dial(t, "a")
				p, other := a.NewPage("about:blank"), a.NewPage("about:blank")
				stays := proxytest.Dial(t, m.ws("/client-a/devtools/page/"+other.TargetID)) // keeps the client
				stays.Call("", "Runtime.evaluate", params{"expression": "1"})
				if enabled {
					p.Call("Page.enable", nil)
				}
				a.Go(p.Session, "Runtime.evaluate", params{"expression": "window.answer = confirm('sure?')"})
				if enabled {
					a.AwaitEvent(p.Session, "Page.javascriptDialogOpening")
				} else {
					settle(a)
				}
				each.leave(t, a)
				again := m.dial(t, "a")
				within(t, patience, "answer of the page that had a dialog", func() {
					p = again.Attach(p.TargetID)
					if got := string(p.Eval("window.answer")); got != "false" {
						t.Errorf("answer to the leaver's confirm: want false, got %s", got)
					}
				})
				again.Close()
				stays.Drop()
			})
		}
	}
}

// A dialog that nobody hears holds up nobody but its page, which can be closed.
func TestUnheardDialogHoldsUpNobody(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := m.dial(t, "a"), m.dial(t, "b")
	ofA, ofB := a.NewPage("about:blank"), b.NewPage("about:blank")
	ofA.Navigate(site.URL + "/plain")
	ofB.Navigate(site.URL + "/plain") // of the same site: they may share a process
	p := a.NewPage(site.URL + "/plain")
	never := a.Go(p.Session, "Runtime.evaluate", params{"expression": "alert('anybody?')"})
	for range scaled(t, 10) {
		work(t, b, ofB, site)
	}
	within(t, patience, "a's other page", func() { mustBeAlive(t, "a", ofA) })
	within(t, patience, "end of the page with the dialog", func() {
		p.Close()
		mustFail(t, p.Session, never)
	})
}

// Commands that need no page are answered at once while a page hangs.
func TestHungPageHoldsUpNobody(t *testing.T) {
	m := serve(t)
	a := m.dial(t, "a")
	p := a.NewPage("about:blank")
	hung := a.Go(p.Session, "Runtime.evaluate", params{"expression": "while (true);"})
	const limit = 3 * time.Second
	within(t, limit, "Browser.getVersion of the client whose page hangs", func() { a.Call("", "Browser.getVersion", nil) })
	within(t, limit, "Target.getTargets of the client whose page hangs", func() { targets(t, a, everything) })
	within(t, limit, "another client's connect and Browser.getVersion", func() { m.dial(t, "b").Call("", "Browser.getVersion", nil) })
	within(t, limit, "another client's new tab", func() { mustBeAlive(t, "c", m.dial(t, "c").NewPage("about:blank")) })
	within(t, limit, "takeover by a new connection", func() { a = m.dial(t, "a"); a.Call("", "Browser.getVersion", nil) })
	a.Call("", "Target.closeTarget", params{"targetId": p.TargetID})
	eventually(t, 5*time.Second, "end of the page that hangs", func() bool { return len(pages(t, a)) == 0 })
	if hung.Answered() && hung.Reply().Err() == nil {
		t.Error("reply to the endless loop: want none but an error")
	}
}
