package routing

import (
	"fmt"
	"slices"
	"strings"
)

// keepCap closes the tab that its client used least recently when newest is
// one too many; when tabs are refused instead, it closes newest, a popup.
func (r *Router) keepCap(newest *target) {
	most := r.capOf(newest.owner)
	if most == 0 || !newest.isTab() {
		return
	}
	tabs := r.tabs(newest.owner)
	for ; len(tabs) > most; tabs = r.tabs(newest.owner) {
		victim := newest
		if !r.rejectTabs {
			others := slices.DeleteFunc(tabs, func(t *target) bool { return t == newest })
			if len(others) == 0 {
				return
			}
			victim = others[0]
			if i := slices.IndexFunc(others, func(t *target) bool { return !t.busy() }); i >= 0 {
				victim = others[i]
			}
		}
		r.note(fmt.Sprintf("client %s has more than %d tabs (--tab-cap): closing %s, %s", ShortID(newest.owner.id), most, victim.id, whereabouts(victim.info.URL)))
		r.totals.Evictions++
		r.closeTarget(victim)
	}
}

// SetTabCap gives a client id a limit of its own, until Uncap; 0 is no limit.
// Tabs that it has already stay.
func (r *Router) SetTabCap(id string, most int) { r.caps[id] = most }

// Uncap takes it back.
func (r *Router) Uncap(id string) { delete(r.caps, id) }

// capOf is how many tabs a client may have.
func (r *Router) capOf(cl *client) int {
	if most, ok := r.caps[cl.id]; ok {
		return most
	}
	return r.tabCap
}

// tabs are a client's tabs that are not closing, oldest use first.
func (r *Router) tabs(cl *client) []*target {
	return slices.DeleteFunc(r.owned(cl), func(t *target) bool { return t.closing || !t.isTab() })
}

// busy reports whether somebody waits for something in a tab.
func (t *target) busy() bool {
	return t.dialog != nil || t.downloading > 0 || slices.ContainsFunc(t.sessions, func(s *session) bool { return s.conn != nil && s.first != nil })
}

// full reports whether a client may make no more tabs.
func (r *Router) full(cl *client) bool {
	most := r.capOf(cl)
	if most == 0 || !r.rejectTabs {
		return false
	}
	n := len(r.tabs(cl))
	for _, q := range r.creating {
		if q.client == cl {
			n++
		}
	}
	return n >= most
}

func (r *Router) fullText(cl *client) string {
	return fmt.Sprintf("This client has %d tabs, which is the limit (--tab-cap): close one first", r.capOf(cl))
}

// whereabouts is where a URL leads, for the log: without what may be a secret in it.
func whereabouts(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found { // data:, javascript:, about:
		scheme, _, _ = strings.Cut(address, ":")
		return scheme + ":"
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	host, path, _ := strings.Cut(rest, "/")
	return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path
}

// note is a line for the log.
func (r *Router) note(text string) {
	r.out = append(r.out, Action{Kind: Note, Text: text})
}
