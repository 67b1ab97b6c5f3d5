package main_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"cdpmux/proxy/proxytest"
)

// Three agents on one task, each through the wrapper with the real browser-use,
// at once: each has a tab of its own and is a client of its own. Nobody gets
// into another store.
func TestWrapper(t *testing.T) {
	t.Parallel()
	a := startAgents(t)
	site := proxytest.StartSite(t)

	drivers := map[string][]string{"main": nil, "one": {"--worker", "1"}, "two": {"--worker=2"}}
	var wait sync.WaitGroup
	for token, args := range drivers {
		wait.Go(func() {
			got := a.run(t.Context(), task, fmt.Sprintf("new_tab(%q); wait_for_load(); print(js('location.search'))", site.URL+"/title?t="+token), args...)
			mustEqual(t, "page of "+token, "?t="+token+"\n", got.ok(t))
		})
	}
	wait.Wait()
	for token, args := range drivers {
		wait.Go(func() {
			got := a.run(t.Context(), task, "print(js('location.search')); print(len([x for x in list_tabs() if '/title' in x['url']]))", args...)
			mustEqual(t, "the same page again, and tabs seen, of "+token, "?t="+token+"\n1\n", got.ok(t))
		})
	}
	wait.Wait()
	want := []string{task, task + "-w1", task + "-w2"}
	if got := a.clients(t); !slices.Equal(got, want) {
		t.Errorf("clients at the proxy: want %q, got %q", want, got)
	}

	refused := func(path, word string, args ...string) {
		t.Helper()
		got := a.runOn(t.Context(), path, task, "print('ran')", args...)
		if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "ERROR: ") || !strings.Contains(got.stderr, word) {
			t.Errorf("%v: want exit 1 with %q, got %v", args, word, got)
		}
	}
	refused(a.path, "from 1 to 3", "--worker", "99")
	refused(a.path, "'t-aux'", "--session", "mall-aux")
	mall := a.otherStore(t, "mall", freeAddr(t))
	refused(mall, "'mall-aux'", "--session", "t-aux")
	refused(mall, "'mall-aux'", "--session", "t-1a2b3c4d")
	// On the port that was mall's there is the proxy of t by now.
	mall = a.otherStore(t, "mall", a.mux.addr)
	refused(mall, "is the proxy of t/")
	refused(mall, "is the proxy of t/", "--session", "mall-aux")
	if got := a.clients(t); !slices.Equal(got, want) {
		t.Errorf("clients after what was refused: want %q, got %q", want, got)
	}

	got := a.run(t.Context(), task, "print(len([x for x in list_tabs() if '/title' in x['url']]))", "--session", "t-aux")
	mustEqual(t, "tabs of the drivers that aux sees", "0\n", got.ok(t))
	if got, want := a.clients(t), append(want, "aux"); !slices.Equal(got, want) {
		t.Errorf("clients with aux: want %q, got %q", want, got)
	}

	got = a.run(t.Context(), task, "print('stuck'); raise SystemExit(7)")
	mustEqual(t, "status of browser-use", 7, got.code)
	mustEqual(t, "its output", "stuck\n", got.stdout)
}
