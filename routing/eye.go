package routing

import (
	"slices"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	cdptarget "github.com/chromedp/cdproto/target"
)

// The eye is the proxy's own sessions on every owned tab: on the tab, on the
// pages in it (prerendered and swapped ones come by themselves) and on their
// cross-site iframes, with Page enabled and nothing else. It says which page
// was Ctrl-clicked, and sees dialogs, which only a session enabled before can
// close.

// watch puts the eye on a page's tab, or on a cross-site iframe.
func (r *Router) watch(t *target) {
	switch {
	case t.info.Type == typeIframe:
		r.attach(nil, t.id, ignore)
	case t.tab != nil && !t.tab.watched:
		t.tab.watched = true
		r.attach(nil, t.tab.id, ignore)
	}
}

// eyeOpened takes a session of the eye that Chrome announced. It auto-attaches
// on tabs only: a page on which two sessions auto-attach loses its renderer
// now and then, when its worker evaluates something (measured on Chromium 156).
func (r *Router) eyeOpened(s *session, info *targetInfo) {
	s.eye = true
	if info.Type == typeTab {
		flat := true
		r.ask(s, cdptarget.CommandSetAutoAttach, cdptarget.SetAutoAttachParams{
			AutoAttach: true, Flatten: &flat, Filter: cdptarget.Filter{{Type: typePage}, {Exclude: true}},
		}, ignore)
		return
	}
	if info.Type == typePage && s.target != nil && s.parent.target != nil {
		r.shownIn(s.target, s.parent.target)
	}
	r.ask(s, cdppage.CommandEnable, nil, (*Router).eyeEnabled)
}

func (r *Router) eyeEnabled(q *request, _ *Message, env *Envelope) {
	if s := q.via; s != nil && s.target != nil && !failed(env) {
		s.target.seen = true
		if s.target.newTab { // it may have gone on before
			r.ask(s, cdppage.CommandGetFrameTree, nil, (*Router).frameTreeKnown)
		}
	}
}

func (r *Router) frameTreeKnown(q *request, m *Message, env *Envelope) {
	if s := q.via; s != nil && s.target != nil && s.target.owner != nil && !failed(env) {
		result := env.Result.Of(m.Text())
		v, _ := Member(result, "frameTree")
		r.strayed(s.target, v.Of(result))
	}
}

// shownIn says which tab a page is in: the page that it shows, or one that is
// prerendered in it and may become that.
func (r *Router) shownIn(page, tab *target) {
	if page.owner == nil && tab.owner != nil {
		r.own(page, tab.owner)
	}
	if page.info.Subtype == "" && page.owner == tab.owner && tab.page != page {
		if tab.page != nil {
			tab.page.tab = nil
		}
		tab.page, page.tab = page, tab
	}
}

// eyeEvent takes what the eye hears.
func (r *Router) eyeEvent(s *session, m *Message, env *Envelope) {
	t := s.target
	if t == nil || t.owner == nil {
		return
	}
	params := env.Params.Of(m.Text())
	switch string(env.Method) {
	case eventRequestedNavigation:
		switch stringParam(params, "disposition") {
		case "newTab", "newWindow":
			r.clicks = append(r.clicks, click{stringParam(params, "url"), t.owner, stringParam(params, "disposition") == "newWindow", r.now})
		}
	case eventPageDownloadBegins:
		r.origins[readDownload(params).GUID] = t
	case eventDialogOpening:
		t.dialog = s
		if !r.holdsDialog(t) {
			r.dismiss(t)
		}
	case eventDialogClosed:
		t.dialog = nil
	default:
		if t.info.Type == typePage {
			if string(env.Method) == eventFrameNavigated {
				r.strayed(t, params)
			}
			t.navigated(string(env.Method), params)
		}
	}
}

// holdsDialog reports whether a dialog that opens is left to the page's client:
// it has a session that can close it, or sits before it as it would before a
// Chrome of its own. One whose opener has just left is nobody's.
func (r *Router) holdsDialog(t *target) bool {
	enabled := func(s *session) bool { return s.heardBy(t.owner) && s.pageOn }
	return slices.ContainsFunc(t.sessions, enabled) || t.attachedTo(t.owner) && r.now.Sub(t.left) > leaveAge
}

// leaveAge is how long after its opener left a dialog may be heard of.
const leaveAge = 3 * time.Second

// pageEnable notes that a session hears of dialogs opened from now on.
func (r *Router) pageEnable(c *conn, s *session, m *Message, env *Envelope) {
	s.pageOn = true
	r.forward(c, s, m, env)
}

// dismiss closes the dialog that is open on a page, if any.
func (r *Router) dismiss(t *target) {
	if s := t.dialog; s != nil && r.sessions[s.id] == s {
		r.ask(s, cdppage.CommandHandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: false}, ignore)
	}
	t.dialog = nil
}

// click is a link opened with Ctrl, Shift or the middle button: the tab that
// comes of it names no opener.
type click struct {
	url    string
	client *client
	window bool // it opened one
	at     time.Time
}

// clickAge is how long after the click its tab may come.
const clickAge = 3 * time.Second

// clicked gives a new page to the client whose page opened this address by a
// click, if one did. A window that came of it is the one created last, and so
// is one that is nobody's.
func (r *Router) clicked(t *target) bool {
	r.clicks = slices.DeleteFunc(r.clicks, func(k click) bool { return r.now.Sub(k.at) > clickAge })
	i := slices.IndexFunc(r.clicks, func(k click) bool { return k.url == t.url })
	if i < 0 {
		if t.isTab() {
			r.front = nil
		}
		return false
	}
	k := r.clicks[i]
	r.clicks = slices.Delete(r.clicks, i, i+1)
	if k.window {
		t.window = &window{client: k.client, tabs: 1}
		r.front = t.window
	}
	r.own(t, k.client)
	return true
}
