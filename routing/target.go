package routing

import (
	"bytes"
	"slices"
	"strings"
	"time"

	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/mailru/easyjson"
)

// target is one target of the browser, somebody's or nobody's.
type target struct {
	id   string
	info targetInfo
	raw  []byte // the TargetInfo as Chrome wrote it last
	url  string // its address when it was created: an opened link's
	used uint64 // when it was used last; larger is later

	owner   *client    // nil: nobody's, or not known yet
	pending bool       // it will be known: the next two say when
	waits   []*request // an opener-less page: createTargets that may turn out to have made it
	heirs   []*target  // follow this one's owner, which is pending
	ghost   bool       // destroyed while pending: stays for its heirs until it is known
	tab     *target    // of a page: its tab target
	page    *target    // of a tab target: its page
	window  *window    // the window that our createTarget put it in
	closing bool       // closeTarget was sent: it no longer counts
	viewers []*client  // of a service or shared worker: who sees it
	freed   bool       // of a worker: run by the proxy
	watched bool       // of a tab: the eye is on it
	dialog  *session   // the eye's session that can close the open dialog

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
	t := &target{id: info.TargetID, info: info, raw: bytes.Clone(raw), url: info.URL, used: r.lastUse}
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

// findOwner decides whose a new target is, or what has to be known first.
func (r *Router) findOwner(t *target) {
	switch i := t.info; {
	case i.isWorker():
		r.findViewers(t)
	case i.Type == typeBrowser, i.Type == typeBrowserUI, i.Subtype != "":
		// A root's own browser target is owned when its root is known, a
		// prerendered page when the eye of its tab is told of it.
	case i.OpenerID != "":
		r.inherit(t, r.targets[i.OpenerID])
	case i.ParentID != "":
		r.inherit(t, r.targets[i.ParentID])
	case i.BrowserContextID != "" && i.BrowserContextID != r.defaultContext:
		if cl := r.contextOwner(i.BrowserContextID); cl != nil {
			r.own(t, cl)
		}
	default:
		if cl := r.clicked(i.URL); cl != nil {
			r.own(t, cl)
		} else if len(r.creating) > 0 {
			t.pending, t.waits = true, slices.Clone(r.creating)
		}
	}
}

// inherit gives a target to the owner of the one that it came from.
func (r *Router) inherit(t, from *target) {
	switch {
	case from == nil:
	case from.owner != nil:
		r.own(t, from.owner)
	case from.pending:
		t.pending = true
		from.heirs = append(from.heirs, t)
	}
}

// notMadeBy takes a finished createTarget out of what held pages wait for; a
// page that none of them made is nobody's.
func (r *Router) notMadeBy(q *request) {
	for _, t := range r.targets {
		i := slices.Index(t.waits, q)
		if i < 0 {
			continue
		}
		if t.waits = slices.Delete(t.waits, i, i+1); len(t.waits) > 0 {
			continue
		}
		if cl := r.clicked(t.url); cl != nil {
			r.own(t, cl)
		} else {
			r.disown(t)
		}
	}
}

// disown decides that a target is nobody's.
func (r *Router) disown(t *target) {
	t.pending, t.waits = false, nil
	r.decideHub(t)
	if t.ghost {
		delete(r.targets, t.id)
	}
	for _, h := range t.heirs {
		r.disown(h)
	}
	t.heirs = nil
}

// own makes a target a client's, with its tab and all that follows it, and
// tells the client: tab, page, then the sessions of its auto-attach.
func (r *Router) own(t *target, cl *client) {
	if t.owner != nil {
		return
	}
	t.owner, t.pending, t.waits = cl, false, nil
	if t.ghost {
		delete(r.targets, t.id)
		r.bequeath(t)
		return
	}
	if t.tab != nil {
		t.tab.owner = cl
		r.tellCreated(t.tab, cl)
	}
	r.tellCreated(t, cl)
	if cl.gone {
		r.closeTarget(t)
	}
	r.watch(t)
	r.findWorkers(t)
	r.bequeath(t)
	if t.fresh {
		r.decideHub(t)
		return
	}
	for _, root := range r.rootsFor(t) {
		r.autoAttachOn(root, t, nil)
	}
}

// bequeath gives a target's owner to those that came from it.
func (r *Router) bequeath(t *target) {
	for _, h := range t.heirs {
		r.own(h, t.owner)
	}
	t.heirs = nil
}

// use notes that a target is used now.
func (r *Router) use(t *target) {
	r.lastUse++
	t.used = r.lastUse
}

// owned lists the top-level targets of a client, oldest use first.
func (r *Router) owned(cl *client) []*target {
	var ts []*target
	for _, t := range r.targets {
		if t.owner == cl && t.info.ParentID == "" && t.info.Type != typeTab && t.info.Type != typeBrowser {
			ts = append(ts, t)
		}
	}
	slices.SortFunc(ts, byUse)
	return ts
}

func byUse(a, b *target) int {
	switch {
	case a.used < b.used:
		return -1
	case a.used > b.used:
		return 1
	}
	return strings.Compare(a.id, b.id)
}

// visible reports whether a client may know of a target: its own, or one that
// Chrome gave it a session on (a worker that several pages share).
func (r *Router) visible(cl *client, t *target) bool {
	return t != nil && (t.owner == cl || slices.Contains(t.viewers, cl) || t.attachedTo(cl))
}

// attachedTo reports whether the client has a session on the target.
func (t *target) attachedTo(cl *client) bool {
	return slices.ContainsFunc(t.sessions, func(s *session) bool { return s.conn != nil && s.conn.client == cl && s.carrier != nil })
}

// closeTarget closes a target for good, whatever its page says to it.
func (r *Router) closeTarget(t *target) {
	if !t.closing {
		r.leaving(t)
		r.ask(nil, cdptarget.CommandCloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, ignore)
	}
}

// leaving marks a target that is being closed; its window no longer has it.
func (r *Router) leaving(t *target) {
	if t.info.Type == typeTab && t.page != nil {
		t = t.page
	}
	if !t.closing {
		t.closing = true
		r.remind(closeWait, t, (*Router).closeAgain)
	}
	t.window.remove(t)
}

// closeWait is how long a target that is closed may stay.
const closeWait = time.Second

// closeAgain closes a target that is still there: Chrome forgets a closeTarget
// that comes while a navigation commits (measured), and says success.
func (r *Router) closeAgain(t *target) {
	r.ask(nil, cdptarget.CommandCloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, ignore)
	r.remind(closeWait, t, (*Router).closeAgain)
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
	t.info, t.raw = info, bytes.Clone(raw)
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
	if t.ghost = t.pending && len(t.heirs) > 0; !t.ghost {
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

// audience is who sees a target: its owner, or the viewers of a worker.
func (r *Router) audience(t *target) []*client {
	if t.owner != nil {
		return []*client{t.owner}
	}
	return t.viewers
}

// tell sends an event about a target to each session of a client that
// discovers such targets.
func (r *Router) tell(t *target, cl *client, body ...string) {
	for _, c := range cl.conns {
		for _, s := range c.discovering {
			if s.discover.allows(t.info.Type) {
				r.emit(s, body...)
			}
		}
	}
}

func (r *Router) tellAll(t *target, body ...string) {
	for _, cl := range r.audience(t) {
		r.tell(t, cl, body...)
	}
}

func (r *Router) tellCreated(t *target, cl *client) {
	if cl.hears() {
		r.tell(t, cl, createdEvent(t, cl)...)
	}
}

func (r *Router) tellChanged(t *target, cl *client) {
	if cl.hears() {
		r.tell(t, cl, `"method":"`+eventTargetInfoChanged+`","params":{"targetInfo":`, t.infoFor(cl), `}`)
	}
}

// hears saves the work of an event that nobody will get.
func (cl *client) hears() bool {
	return slices.ContainsFunc(cl.conns, func(c *conn) bool { return len(c.discovering) > 0 })
}

func createdEvent(t *target, cl *client) []string {
	return []string{`"method":"` + eventTargetCreated + `","params":{"targetInfo":`, t.infoFor(cl), `}`}
}

// infoFor is the TargetInfo as the client sees it: attached means by itself.
func (t *target) infoFor(cl *client) string {
	attached := t.info.Type == typeBrowser || t.attachedTo(cl)
	return string(withAttached(nil, t.raw, attached))
}

// withAttached appends a TargetInfo with another value of attached.
func withAttached(dst, raw []byte, attached bool) []byte {
	v, ok := Member(raw, "attached")
	if !ok {
		return append(dst, raw...)
	}
	dst = append(dst, raw[:v.Start]...)
	if attached {
		dst = append(dst, "true"...)
	} else {
		dst = append(dst, "false"...)
	}
	return append(dst, raw[v.End:]...)
}

// contextOwner finds the client that created a browser context.
func (r *Router) contextOwner(id string) *client {
	for _, cl := range r.clients {
		if slices.Contains(cl.contexts, id) {
			return cl
		}
	}
	return nil
}
