package main_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// clicker is a script that joins the round that a folder is and clicks until all
// three drivers have been in it for a second. It says how often it clicked, how
// often the page says it was clicked, in which tab, and from when to when.
const clicker = `
import json, os, time
folder, driver = %q, %q
if "/form" not in (current_tab().get("url") or ""):
    new_tab(%q)
    wait_for_load()
x, y = js("(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('#count').getBoundingClientRect())")
open(os.path.join(folder, driver), "w").close()
sent, began, full = 0, time.time(), None
while full is None or time.time() < full + 1:
    click_at_xy(x, y)
    sent += 1
    if full is None and len(os.listdir(folder)) == 3:
        full = time.time()
    if time.time() > began + 40:
        raise SystemExit("the others did not come")
print(json.dumps({"sent": sent, "count": int(js("document.querySelector('#count').textContent")),
    "tab": current_tab()["targetId"], "began": began, "ended": time.time()}))
`

type clicked struct {
	Sent, Count  int
	Tab          string
	Began, Ended float64 // s
}

// Three drivers of one task click for three minutes (scaled), at once: each
// page has been clicked as often as its own driver did.
func TestWrapperClicks(t *testing.T) {
	t.Parallel()
	a := startAgents(t)
	site := proxytest.StartSite(t)
	drivers := []string{"main", "worker 1", "worker 2"}
	flags := [][]string{nil, {"--worker", "1"}, {"--worker", "2"}}
	var sent [3]int
	var tabs [3]string
	together, rounds := 0.0, 0
	for end := time.Now().Add(time.Duration(scaled(t, 180)) * time.Second); rounds == 0 || time.Now().Before(end); rounds++ {
		round := t.TempDir()
		var got [3]clicked
		var wait sync.WaitGroup
		for i, name := range drivers {
			wait.Go(func() {
				out := a.run(t.Context(), task, fmt.Sprintf(clicker, round, name, site.URL+"/form"), flags[i]...)
				if err := json.Unmarshal([]byte(out.ok(t)), &got[i]); err != nil {
					t.Errorf("%s: %v: %v", name, err, out)
				}
			})
		}
		wait.Wait()
		if t.Failed() {
			return
		}
		for i, name := range drivers {
			sent[i] += got[i].Sent
			mustEqual(t, "clicks that the page of "+name+" counts", sent[i], got[i].Count)
			if rounds > 0 && tabs[i] != got[i].Tab {
				t.Errorf("%s: another tab in round %d", name, rounds+1)
			}
			tabs[i] = got[i].Tab
		}
		began, ended := max(got[0].Began, got[1].Began, got[2].Began), min(got[0].Ended, got[1].Ended, got[2].Ended)
		if ended <= began {
			t.Errorf("round %d: the drivers did not click at the same time", rounds+1)
		}
		together += ended - began
	}
	if tabs[0] == tabs[1] || tabs[1] == tabs[2] || tabs[0] == tabs[2] {
		t.Errorf("drivers share a tab: %q", tabs)
	}
	t.Logf("%d rounds, clicks of %q: %d, all three at the same time for %.1f s", rounds, drivers, sent, together)
}
