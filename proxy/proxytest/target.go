package proxytest

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// target is one thing to attach to: a page, its tab, a frame, a worker, or a
// browser target, of which every browser session has its own. All of it is
// guarded by Browser.mu.
type target struct {
	id        string
	kind      string // TargetInfo.type
	title     string
	url       string
	parent    *target // of a frame or worker
	opener    *target
	openedBy  string // openerFrameId, which outlives the opener
	canAccess bool   // canAccessOpener
	context   *browserContext
	window    *window // of a tab and its page
	tab       *target // of a page
	strip     int     // of a tab: its place in the window, -1 for none
	active    bool    // of a tab

	sessions []*session
	pending  []*pending // commands that are not answered yet
	loader   string
	renderer *renderer // of a page
	crashed  bool
}

// pending is a command that waits for something to happen to its target.
type pending struct {
	session *session
	cmd     Command
	paused  bool // it waits for the debugger, and runs then
}

// renderer is the process of a page. A popup that may touch its opener lives in
// the same one.
type renderer struct{ pages int }

type browserContext struct {
	id    string
	owner *session // whose end disposes it; nil for none
}

type window struct {
	id      int
	context *browserContext
	tabs    []*target
	popups  []*target // browser_ui targets and their tabs
}

// info is the target's TargetInfo, in Chrome's order of members.
func (t *target) info() string {
	var b strings.Builder
	b.WriteString(`{"targetId":"` + t.id + `","type":"` + t.kind + `","title":` + quote(t.title) + `,"url":` + quote(t.url))
	b.WriteString(`,"attached":` + strconv.FormatBool(len(t.sessions) > 0))
	if t.parent != nil {
		b.WriteString(`,"parentId":"` + t.parent.id + `"`)
	}
	if t.opener != nil {
		b.WriteString(`,"openerId":"` + t.opener.id + `"`)
	}
	b.WriteString(`,"canAccessOpener":` + strconv.FormatBool(t.canAccess))
	if t.openedBy != "" {
		b.WriteString(`,"openerFrameId":"` + t.openedBy + `"`)
	}
	if t.parent != nil {
		b.WriteString(`,"parentFrameId":"` + t.parent.id + `"`)
	}
	if t.context != nil {
		b.WriteString(`,"browserContextId":"` + t.context.id + `"`)
	}
	if t.kind == "tab" && t.strip >= 0 {
		b.WriteString(`,"embedderData":{"tabActive":` + strconv.FormatBool(t.active) +
			`,"tabPinned":false,"tabStripIndex":` + strconv.Itoa(t.strip) + `}`)
	}
	b.WriteString(`}`)
	return b.String()
}

// announce puts a new target into the table and tells the discoverers and
// those that attach to it by themselves.
func (b *Browser) announce(t *target) {
	b.targets[t.id] = t
	for _, s := range b.discoverers {
		if s.discover.lets(t.kind) {
			s.event("Target.targetCreated", `{"targetInfo":`+t.info()+`}`)
		}
	}
	if t.parent != nil {
		for _, s := range slices.Clone(t.parent.sessions) {
			b.autoAttachTo(s, t, true)
		}
		return
	}
	for _, s := range b.browserSessions() {
		b.autoAttachTo(s, t, true)
	}
	if t.tab != nil {
		for _, s := range slices.Clone(t.tab.sessions) {
			b.autoAttachTo(s, t, true)
		}
	}
}

// changed tells the discoverers that a target's info is another one.
func (b *Browser) changed(t *target) {
	for _, s := range b.discoverers {
		if s.discover.lets(t.kind) {
			s.event("Target.targetInfoChanged", `{"targetInfo":`+t.info()+`}`)
		}
	}
}

// renamed is changed for a new title or URL, which those hear as well that
// attached to the target by themselves.
func (b *Browser) renamed(t *target) {
	for _, s := range t.sessions {
		if s.byAuto && s.parent.discover == nil {
			s.parent.event("Target.targetInfoChanged", `{"targetInfo":`+t.info()+`}`)
		}
	}
	b.changed(t)
}

// destroy takes a target out of the table.
func (b *Browser) destroy(t *target) {
	delete(b.targets, t.id)
	for _, s := range b.discoverers {
		if s.discover.lets(t.kind) {
			s.event("Target.targetDestroyed", `{"targetId":"`+t.id+`"}`)
		}
	}
	for _, other := range b.targets {
		if other.opener == t {
			other.opener, other.canAccess = nil, false
		}
	}
}

// sorted is all targets in the order in which Chrome lists them: by id.
func (b *Browser) sorted() []*target {
	list := make([]*target, 0, len(b.targets))
	for _, id := range slices.Sorted(maps.Keys(b.targets)) {
		list = append(list, b.targets[id])
	}
	return list
}

// newTab describes a tab; openTab makes it.
type newTab struct {
	url        string
	context    *browserContext
	opener     *target
	canAccess  bool
	newWindow  bool
	background bool
}

// openTab announces a tab, then its page, which it returns. load is to follow.
func (b *Browser) openTab(n newTab) *target {
	w := b.windowFor(n)
	tab := &target{id: newID(), kind: "tab", context: n.context, window: w, strip: len(w.tabs), active: !n.background}
	w.tabs = append(w.tabs, tab)
	b.announce(tab)
	page := &target{id: newID(), kind: "page", url: n.url, context: n.context, window: w, tab: tab, opener: n.opener, canAccess: n.canAccess}
	page.renderer = &renderer{}
	if n.opener != nil {
		page.openedBy, page.url = n.opener.id, ""
	}
	if n.canAccess {
		page.renderer = n.opener.renderer
	}
	page.renderer.pages++
	b.announce(page)
	return page
}

// windowFor is the window that was made last in that context, or a new one.
// Each new window brings two popups of the address bar, with a tab each.
func (b *Browser) windowFor(n newTab) *window {
	if !n.newWindow {
		for _, w := range slices.Backward(b.windows) {
			if w.context == n.context {
				return w
			}
		}
	}
	b.nextWindow++
	w := &window{id: b.nextWindow, context: n.context}
	b.windows = append(b.windows, w)
	for _, page := range []string{"omnibox_popup_aim.html", ""} {
		tab := &target{id: newID(), kind: "tab", context: n.context, strip: -1}
		ui := &target{id: newID(), kind: "browser_ui", url: "chrome://omnibox-popup.top-chrome/" + page, context: n.context}
		w.popups = append(w.popups, ui, tab)
		b.announce(tab)
		b.announce(ui)
	}
	return w
}

// load is what follows when a page has got its document.
func (b *Browser) load(page *target, url string) {
	page.url, page.loader = url, newID()
	_, page.title, _ = strings.Cut(url, "://")
	if page.title == "" {
		page.title = url
	}
	if page.tab != nil {
		page.tab.title, page.tab.url = page.title, url
	}
	b.renamed(page)
}

// navigate loads a URL in a page or frame and tells its sessions.
func (b *Browser) navigate(t *target, url string, reply func(loader string)) {
	loader := newID()
	t.tell(pageEnabled, "Page.frameStartedNavigating", `{"frameId":"`+t.id+`","url":`+quote(url)+`,"loaderId":"`+loader+`","navigationType":"differentDocument"}`)
	t.tell(pageEnabled, "Page.frameStartedLoading", `{"frameId":"`+t.id+`"}`)
	reply(loader)
	for _, child := range b.below(t) {
		b.closeChild(child)
	}
	for _, p := range t.pending {
		p.session.fail(p.cmd, -32000, "Inspected target navigated or closed")
	}
	t.pending = nil
	t.tell(runtimeEnabled, "Runtime.executionContextsCleared", `{}`)
	t.tell(pageEnabled, "Page.frameNavigated", `{"frame":`+t.frame(url, loader)+`,"type":"Navigation"}`)
	b.load(t, url)
	t.loader = loader
	t.tell(runtimeEnabled, "Runtime.executionContextCreated", t.executionContext())
	t.tell(pageEnabled, "Page.domContentEventFired", `{"timestamp":1.0}`)
	t.tell(pageEnabled, "Page.loadEventFired", `{"timestamp":1.0}`)
	t.tell(pageEnabled, "Page.frameStoppedLoading", `{"frameId":"`+t.id+`"}`)
}

func (t *target) frame(url, loader string) string {
	return `{"id":"` + t.id + `","loaderId":"` + loader + `","url":` + quote(url) +
		`,"domainAndRegistry":"","securityOrigin":"://","mimeType":"text/html","adFrameStatus":{"adFrameType":"none"},` +
		`"secureContextType":"SecureLocalhost","crossOriginIsolatedContextType":"NotIsolated","gatedAPIFeatures":[]}`
}

func (t *target) executionContext() string {
	return `{"context":{"id":1,"origin":"://","name":"","uniqueId":"1.1","auxData":{"isDefault":true,"type":"default","frameId":"` + t.id + `"}}}`
}

// tell sends an event on the target's sessions for which want is true.
func (t *target) tell(want func(*session) bool, method, params string) {
	for _, s := range t.sessions {
		if want(s) {
			s.event(method, params)
		}
	}
}

func pageEnabled(s *session) bool    { return s.page }
func runtimeEnabled(s *session) bool { return s.runtime }
func everySession(*session) bool     { return true }

// below is the frames and workers of a target, in the order of their ids.
func (b *Browser) below(t *target) (children []*target) {
	for _, child := range b.sorted() {
		if child.parent == t {
			children = append(children, child)
		}
	}
	return children
}

// closeTab closes a page and its tab, given either.
func (b *Browser) closeTab(t *target) {
	page, tab := t, t.tab
	if t.kind == "tab" {
		tab = t
		for _, other := range b.targets {
			if other.tab == t {
				page = other
			}
		}
	}
	var workers []*target // gone with the renderer, after its frames
	for _, child := range b.below(page) {
		if child.kind == "worker" {
			workers = append(workers, child)
			continue
		}
		b.closeChild(child)
	}
	if page.renderer.pages--; page.renderer.pages == 0 && !page.crashed {
		page.tell(everySession, "Inspector.detached", `{"reason":"Render process gone."}`)
	}
	for _, worker := range workers {
		for len(worker.sessions) > 0 {
			b.detach(worker.sessions[0])
		}
	}
	b.cut(page)
	if !page.crashed {
		b.destroy(page)
	}
	tab.strip, tab.title, tab.url = -1, "", ""
	b.cut(tab)
	b.destroy(tab)
	if page.crashed {
		b.destroy(page)
	}
	w := tab.window
	if w.tabs = remove(w.tabs, tab); len(w.tabs) == 0 {
		b.windows = remove(b.windows, w)
		for _, popup := range w.popups {
			b.cut(popup)
			b.destroy(popup)
		}
	}
	for _, worker := range workers {
		b.closeChild(worker)
	}
}

// closeChild closes a frame or a worker, and what is below it.
func (b *Browser) closeChild(t *target) {
	for _, child := range b.below(t) {
		b.closeChild(child)
	}
	b.cut(t)
	b.destroy(t)
}

// cut ends all sessions of a target that is about to go; their parents are
// told. Their open commands are never answered.
func (b *Browser) cut(t *target) {
	for len(t.sessions) > 0 {
		s := t.sessions[0]
		parent, id := s.parent, s.id
		b.end(s)
		if parent != nil && !parent.gone {
			parent.event("Target.detachedFromTarget", `{"sessionId":"`+id+`","targetId":"`+t.id+`"}`)
		}
	}
}

// crash ends a page's renderer: nothing is answered there any more.
func (b *Browser) crash(page *target) {
	for _, t := range b.sorted() {
		if t.kind != "page" || t.renderer != page.renderer {
			continue
		}
		t.crashed = true
		t.tell(everySession, "Inspector.targetCrashed", `{}`)
		for _, s := range b.discoverers {
			if s.discover.lets(t.kind) {
				s.event("Target.targetCrashed", `{"targetId":"`+t.id+`","status":"crashed","errorCode":5}`)
			}
		}
	}
}

// revive is Page.reload of a crashed page.
func (b *Browser) revive(t *target) {
	t.crashed = false
	for _, p := range t.pending {
		p.session.fail(p.cmd, -32000, "Target crashed")
	}
	t.pending = nil
	t.tell(everySession, "Inspector.targetReloadedAfterCrash", `{}`)
}

// dispose closes all tabs of a context and forgets it.
func (b *Browser) dispose(ctx *browserContext) {
	b.contexts = remove(b.contexts, ctx)
	for _, t := range b.sorted() {
		if t.context == ctx && t.kind == "page" {
			b.closeTab(t)
		}
	}
}

// released runs the commands that waited for the debugger, once no session of
// the target waits any more.
func (b *Browser) released(t *target) {
	for _, s := range t.sessions {
		if s.waiting {
			return
		}
	}
	held := t.pending
	t.pending = nil
	for _, p := range held {
		if p.paused {
			b.perform(p.session, p.cmd)
		} else {
			t.pending = append(t.pending, p)
		}
	}
}
