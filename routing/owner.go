package routing

import (
	"slices"
	"strings"
)

// findOwner decides whose a new target is, or what has to be known first.
func (r *Router) findOwner(t *target) {
	switch i := t.info; {
	case i.isWorker():
		r.findViewers(t)
	case i.Type == typeBrowser, i.Type == typeBrowserUI, i.Subtype != "":
		// A root's own browser target is owned when its root is known, a
		// prerendered page when the eye of its tab is told of it.
	case i.ParentID == "" && closedScheme([]byte(t.url), r.openSchemes) != "":
		// No command of a client opens it, but a file that was dropped on a
		// page does, and a script on the New Tab page.
	case i.OpenerID != "":
		r.inherit(t, r.targets[i.OpenerID])
	case i.ParentID != "":
		r.inherit(t, r.targets[i.ParentID])
	case i.BrowserContextID != "" && i.BrowserContextID != r.defaultContext:
		if cl := r.contextOwner(i.BrowserContextID); cl != nil {
			r.own(t, cl)
		}
	default:
		// A createTarget in flight may have made it, whatever was clicked.
		if len(r.creating) > 0 {
			t.pending, t.waits = true, slices.Clone(r.creating)
		} else if !r.clicked(t) {
			r.judge(t)
		}
	}
}

// inherit gives a target to the owner of the one that it came from.
func (r *Router) inherit(t, from *target) {
	if from == nil {
		return
	}
	t.newTab = t.newTab || from.newTab
	switch {
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
		if !r.clicked(t) {
			r.disown(t)
		}
	}
}

// disown decides that a target is nobody's.
func (r *Router) disown(t *target) {
	t.pending, t.waits = false, nil
	r.ownDownloads(t)
	r.decideHub(t)
	if t.ghost {
		delete(r.targets, t.id)
	}
	r.judge(t)
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
		r.ownDownloads(t)
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
	r.linger(t)
	r.keepCap(t)
	r.findWorkers(t)
	r.ownDownloads(t)
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

// owned lists the top-level targets of a client, oldest use first.
func (r *Router) owned(cl *client) []*target {
	var ts []*target
	for _, t := range r.targets {
		if t.owner == cl && t.info.ParentID == "" && t.info.Subtype == "" && t.info.Type != typeTab && t.info.Type != typeBrowser {
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
	return slices.ContainsFunc(t.sessions, func(s *session) bool { return s.heardBy(cl) })
}

// heardBy reports whether a session is one that the client knows of.
func (s *session) heardBy(cl *client) bool {
	return s.conn != nil && s.conn.client == cl && s.carrier != nil
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

// use notes that a target is used now.
func (r *Router) use(t *target) {
	r.lastUse++
	t.used = r.lastUse
}

// isTab reports whether a target is what people call a tab.
func (t *target) isTab() bool {
	return t.info.Type == typePage && t.info.Subtype == "" && t.info.ParentID == ""
}
