package routing

import (
	"slices"
	"time"
)

// orphans are the tabs of clients that may come back with Chrome's session
// restore, since nobody was there to close them when the last browser ended.
type orphans struct {
	owners map[place]string // client ids
	shown  map[string]int   // pages of nobody's so far, by address
	until  time.Time
}

// place tells a tab from the others where no target id does: after a restore.
type place struct {
	url string
	nth int // that many older pages showed the same
}

const (
	// restoreWait is how long after a start pages may come of the session
	// restore: half a second was measured.
	restoreWait = 10 * time.Second
	// blankWait is how long a page that is being restored may look empty.
	blankWait = 2 * time.Second
)

// placeOf finds where a tab is among the pages with its address.
func (r *Router) placeOf(t *target) place {
	p := place{url: t.info.URL}
	for _, o := range r.targets {
		if o.isTab() && o.born < t.born && o.info.URL == t.info.URL {
			p.nth++
		}
	}
	return p
}

// expectOrphans looks out for the tabs of before in a browser that was just
// started, and has its empty pages closed but for the oldest.
func (r *Router) expectOrphans() {
	r.orphans = orphans{owners: map[place]string{}, shown: map[string]int{}}
	if !r.started {
		return
	}
	r.orphans.until = r.now.Add(restoreWait)
	for _, m := range r.remembered {
		if isPlace(m.place.url) {
			r.orphans.owners[m.place] = m.client.id
		}
	}
	pages := r.byUse()
	pages = slices.DeleteFunc(pages, func(t *target) bool { return t.owner != nil || !t.isTab() })
	for _, t := range pages {
		r.judge(t)
	}
	blank := slices.DeleteFunc(pages, func(t *target) bool { return !isBlank(t.info.URL) })
	for i, t := range blank {
		if i > 0 {
			r.remind(blankWait, t, (*Router).closeBlank)
		}
	}
}

// judge closes a page that is nobody's when it is one of the tabs of before.
func (r *Router) judge(t *target) {
	url := t.info.URL
	if !r.now.Before(r.orphans.until) || t.judged || t.owner != nil || t.pending || !t.isTab() || t.info.OpenerID != "" || isBlank(url) {
		return
	}
	t.judged = true
	p := place{url, r.orphans.shown[url]}
	r.orphans.shown[url]++
	if id, ok := r.orphans.owners[p]; ok {
		r.out = append(r.out, Action{Kind: Note, Text: "closing a tab that Chrome restored; it was of the client " + ShortID(id)})
		r.closeUnowned(t)
	}
}

func (r *Router) closeBlank(t *target) {
	if t.owner == nil && !t.pending && isBlank(t.info.URL) {
		r.closeUnowned(t)
	}
}

// closeUnowned closes a page that is nobody's, which may be the browser's last.
func (r *Router) closeUnowned(t *target) {
	if !r.keepLast {
		r.keepPage(t)
	}
	r.closeTarget(t)
}

// isBlank reports whether a page is empty, or Chrome's New Tab page.
func isBlank(url string) bool {
	switch url {
	case "chrome://newtab/", "chrome://new-tab-page/", "chrome://new-tab-page-third-party/":
		return true
	}
	return !isPlace(url)
}
