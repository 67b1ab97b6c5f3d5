package main_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"cdpmux/proxy/proxytest"
)

// leaks is the isolation oracle. It looks in all that a client received for
// what is the neighbours', and in all that they received for what is the
// client's: ids, URLs and titles. site is where the client's pages come from.
func (n *neighbours) leaks(received string, site *proxytest.Site) (found []string) {
	own := idsIn(received)
	if len(own) == 0 || strings.Contains(received, "permessage-deflate") {
		return []string{"the oracle is blind: the client received no ids, or compressed messages"}
	}
	look := func(who, text, secret string) {
		if at := strings.Index(text, secret); at >= 0 {
			found = append(found, fmt.Sprintf("%s received %q: %q", who, secret, around(text, at)))
		}
	}
	for _, secret := range []string{neighbourMark, n.site.URL, n.site.Other} {
		look("the client", received, secret)
	}
	for _, one := range n.all {
		text := one.received()
		look("the neighbour "+one.name, text, site.URL)
		look("the neighbour "+one.name, text, site.Other)
		for id := range idsIn(text) {
			if own[id] && id != n.defaultContext {
				found = append(found, fmt.Sprintf("id %s came to the client and to the neighbour %s: %q and %q", id, one.name,
					around(received, strings.Index(received, id)), around(text, strings.Index(text, id))))
			}
		}
	}
	return found
}

// id matches the ids of targets, sessions, frames, loaders, contexts and downloads.
var id = regexp.MustCompile(`^([0-9A-F]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$`)

// idsIn finds the ids that stand in a text as words of their own. It looks at
// many megabytes, for which a regular expression alone would take minutes.
func idsIn(text string) map[string]bool {
	ids := map[string]bool{}
	for start := 0; start < len(text); {
		end := wordEnd(text, start)
		if end-start == 8 && end < len(text) && text[end] == '-' { // a UUID is five words
			if last := start + len("01234567-0123-0123-0123-"); last < len(text) {
				end = wordEnd(text, last)
			}
		}
		if word := text[start:end]; (len(word) == 32 || len(word) == 36) && id.MatchString(word) {
			ids[word] = true
			start = end
		} else {
			start = wordEnd(text, start)
		}
		start++
	}
	return ids
}

func wordEnd(text string, i int) int {
	for i < len(text) && (text[i] == '_' || '0' <= text[i] && text[i] <= '9' || 'A' <= text[i] && text[i] <= 'Z' || 'a' <= text[i] && text[i] <= 'z') {
		i++
	}
	return i
}

func around(text string, at int) string { return text[max(0, at-200):min(len(text), at+200)] }

// mustProveTheOracle lets a client see the browser as it is, past the proxy:
// the oracle must notice.
func mustProveTheOracle(t *testing.T, m *mux, n *neighbours) {
	t.Helper()
	host, path := m.browserAddress(t)
	recorder := record(t, host)
	sees := proxytest.Dial(t, "ws://"+recorder.addr+path)
	sees.Call("", "Target.setDiscoverTargets", params{"discover": true, "filter": everything})
	sees.Close()
	leaks := strings.Join(n.leaks(recorder.received(), n.site), "\n")
	for _, want := range []string{
		`the client received "` + neighbourMark,
		`the client received "` + n.site.URL,
		`the neighbour churner received "` + n.site.URL,
		"came to the client and to the neighbour holder",
		"came to the client and to the neighbour watcher",
		"came to the client and to the neighbour playwright",
	} {
		if !strings.Contains(leaks, want) {
			t.Errorf("leaks to a client that sees everything: want %q among them, got:\n%s", want, leaks)
		}
	}
}
