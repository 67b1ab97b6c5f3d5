package main_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// Many clients that open, navigate and close tabs leave nothing behind.
func TestLoad(t *testing.T) {
	m := serve(t)
	site := proxytest.StartSite(t)
	var clients []*proxytest.Client
	for i := range 16 {
		c := proxytest.Dial(t, m.ws(fmt.Sprint("/client-", i)), proxytest.WithTimeout(30*time.Second))
		switch i % 3 { // all kinds beside each other
		case 1:
			autoAttach(c, "", true)
		case 2:
			discover(c)
		}
		settle(c) // its root is there
		clients = append(clients, c)
	}
	before := census(t, m)

	var run []func()
	tabs := scaled(t, 50)
	for i, c := range clients {
		run = append(run, func() {
			var open []proxytest.Page
			for range tabs {
				var p proxytest.Page
				if i%3 == 1 {
					p = beginPage(t, c)
				} else {
					p = c.NewPage("about:blank")
				}
				p.Navigate(site.URL + "/plain")
				if open = append(open, p); len(open) == 3 {
					open[0].Close()
					open = open[1:]
				}
			}
			for _, p := range open {
				p.Close()
			}
		})
	}
	together(run...)

	for i, c := range clients {
		eventually(t, 5*time.Second, fmt.Sprintf("end of the tabs of client %d", i), func() bool { return len(pages(t, c)) == 0 })
		mustBeAnswered(t, c)
	}
	mustCount(t, m, before)
	for _, c := range clients {
		c.Close()
	}
	before["browser"] -= len(clients)
	mustCount(t, m, before)
}

// mustCount waits until the browser has these targets.
func mustCount(t *testing.T, m *mux, want map[string]int) {
	t.Helper()
	eventually(t, 10*time.Second, fmt.Sprintf("return of the browser's targets to %v", want), func() bool {
		return maps.Equal(census(t, m), want)
	})
}

// mustBeAnswered checks that each command got one reply: ids count up from 1.
func mustBeAnswered(t *testing.T, c *proxytest.Client) {
	t.Helper()
	last := c.Go("", "Browser.getVersion", nil)
	last.Wait()
	for id := 1; fmt.Sprint(id) != last.ID; id++ {
		if got := c.Replies(fmt.Sprint(id)); len(got) != 1 {
			t.Errorf("replies to command %d: want one, got %v", id, got)
		}
	}
}

// census counts the browser's own targets by type, as one who looks past the
// proxy discovers them; those of type browser are its sessions at browser level.
func census(t *testing.T, m *mux) map[string]int {
	t.Helper()
	browser := m.dialBrowser(t)
	discover(browser)
	count := map[string]int{}
	for _, message := range browser.Transcript() {
		if message.Method == "Target.targetCreated" {
			count[typeOf(t, message)]++
		}
	}
	browser.Drop()
	return count
}
