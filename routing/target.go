package routing

import (
	"bytes"
	"time"

	"github.com/mailru/easyjson"
)

// target is one target of the browser, somebody's or nobody's.
type target struct {
	id   string
	info targetInfo
	raw  []byte // the TargetInfo as Chrome wrote it last
	url  string // its address when it was created: an opened link's
	born uint64 // when it was announced; larger is later
	used uint64 // when it was used last; the same scale

	owner       *client     // nil: nobody's, or not known yet
	pending     bool        // it will be known: the next two say when
	waits       []*request  // an opener-less page: createTargets that may turn out to have made it
	downloads   []*download // wait for the owner, which is pending
	downloading int         // downloads under way that it began
	heirs       []*target   // follow this one's owner, which is pending
	ghost       bool        // destroyed while pending: stays for its heirs until it is known
	tab         *target     // of a page: its tab target
	page        *target     // of a tab target: its page
	window      *window     // the window that our createTarget put it in
	closing     bool        // closeTarget was sent: it no longer counts
	judged      bool        // of a page of nobody's: whether it is a client's of before
	crashed     bool        // its renderer is gone
	maker       ConnID      // the connection whose createTarget made it
	last        lastMethod  // called on a session of it
	visited     bool        // it has shown anything but about:blank
	viewers     []*client   // of a service or shared worker: who sees it
	watched     bool        // of a tab: the eye is on it
	newTab      bool        // it has shown the New Tab page, or was opened by one that had: see strayed
	dialog      *session    // the eye's session that can close the open dialog
	left        time.Time   // when a connection of its owner ended
	lingers     int         // counts the times that linger was asked

	seen       bool       // the eye hears of its navigations
	navigation navigation // of the page it shows
	navError   string     // what the client's last Page.navigate said went wrong

	fresh    bool     // the hub's session is to come, or to be decided on
	held     *session // the hub's session, paused, until the owner is known
	kept     *session // the hub's session, paused, until the client in tab mode runs the page
	hubBatch *batch   // a reply that waits for the hub's session

	sessions []*session
}

// Types of targets that ownership treats by rules of their own.
const (
	typeBrowser   = "browser"
	typeBrowserUI = "browser_ui"
	typeTab       = "tab"
	typeIframe    = "iframe"
	typePage      = "page"
	typeShared    = "shared_worker"
	typeService   = "service_worker"
)

// readTarget reads a TargetInfo.
func readTarget(raw []byte) (info targetInfo, ok bool) {
	return info, easyjson.Unmarshal(raw, &info) == nil && info.TargetID != ""
}

// created enters a target that discovery announced and finds its owner.
func (r *Router) created(raw []byte) {
	info, ok := readTarget(raw)
	if !ok || r.targets[info.TargetID] != nil {
		return
	}
	r.lastUse++
	t := &target{
		id: info.TargetID, info: info, raw: bytes.Clone(raw), url: info.URL, visited: isPlace(info.URL), newTab: isNewTabPage([]byte(info.URL)),
		born: r.lastUse, used: r.lastUse,
	}
	r.targets[t.id] = t
	if s := r.sessionOnBrowser(t); s != nil { // a root is attached before it is announced
		s.target = t
		t.sessions = append(t.sessions, s)
		if s.conn != nil {
			r.own(t, s.conn.client)
		}
	}
	if r.settling {
		return // older than this proxy: nobody's
	}
	if info.Type == typePage && len(r.creating) == 0 {
		r.active = r.now
	}
	t.fresh = r.hub.on && info.Subtype == "" && (info.Type == typePage || info.isWorker())
	if t.fresh {
		r.remind(patience, t, (*Router).hubOverdue)
	}
	switch info.Type {
	case typeTab:
		// The tabs of Chrome's own interface carry no embedderData.
		if info.EmbedderData != nil {
			r.lastTab = t
		}
		return // as its page
	case typePage:
		if info.Subtype == "" && r.lastTab != nil {
			t.tab, r.lastTab.page = r.lastTab, t
			r.lastTab = nil
		}
	}
	r.findOwner(t)
}

// isPlace reports whether an address is one that somebody went to.
func isPlace(url string) bool { return url != "" && url != "about:blank" }

// sessionOnBrowser finds the root session whose browser target this is.
func (r *Router) sessionOnBrowser(t *target) *session {
	if t.info.Type != typeBrowser {
		return nil
	}
	for _, s := range r.sessions {
		if s.target == nil && s.targetID == t.id {
			return s
		}
	}
	return nil
}

// changed takes in a target's new info.
func (r *Router) changed(raw []byte) {
	info, ok := readTarget(raw)
	t := r.targets[info.TargetID]
	if !ok || t == nil {
		return
	}
	old := t.raw
	// Chrome forgets the opener when it is closed; where a target came from stays.
	if info.OpenerID == "" {
		info.OpenerID = t.info.OpenerID
	}
	if info.Type == typePage && info.URL != t.info.URL {
		r.active = r.now
	}
	activated := t.info.Subtype != "" && info.Subtype == ""
	t.info, t.raw = info, bytes.Clone(raw)
	t.visited = t.visited || isPlace(info.URL)
	r.judge(t)
	for _, s := range t.sessions {
		if activated && s.eye && s.parent.target != nil {
			r.shownIn(t, s.parent.target) // a prerendered page takes its tab over
		}
	}
	if bytes.Equal(withAttached(nil, old, false), withAttached(nil, raw, false)) {
		return
	}
	for _, cl := range r.audience(t) {
		r.tellChanged(t, cl)
	}
	r.findWorkers(t)
}

// destroyed forgets a target.
func (r *Router) destroyed(id string) {
	t := r.targets[id]
	if t == nil {
		return
	}
	if t.info.Type == typePage && !t.closing {
		r.active = r.now
	}
	for len(t.sessions) > 0 {
		r.removeSession(t.sessions[len(t.sessions)-1])
	}
	r.tellAll(t, `"method":"`+eventTargetDestroyed+`","params":{"targetId":"`, t.id, `"}`)
	t.window.remove(t)
	r.hubIsDone(t)
	if t.tab != nil {
		t.tab.page, t.tab = nil, nil
	}
	if t.page != nil {
		t.page.tab, t.page = nil, nil
	}
	if r.lastTab == t {
		r.lastTab = nil
	}
	if t.ghost = t.pending && len(t.heirs)+len(t.downloads) > 0; !t.ghost {
		delete(r.targets, id)
	}
	if t.owner != nil {
		r.vacate(t.owner)
	}
}

// crashed answers what is open on a target whose renderer is gone, and tells.
func (r *Router) crashed(id string, m *Message, env *Envelope) {
	t := r.targets[id]
	if t == nil {
		return
	}
	t.crashed = true
	for _, s := range t.sessions {
		r.failOpen(s)
	}
	r.tellAll(t, `"method":"`+eventTargetCrashed+`","params":`, string(env.Params.Of(m.Text())))
}

// failOpen answers what is open on a session of a crashed renderer.
func (r *Router) failOpen(s *session) {
	for s.first != nil {
		r.fail(s.first, codeServer, textCrashed)
	}
}
