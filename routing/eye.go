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

// watch puts the eye on a page's tab.
func (r *Router) watch(t *target) {
	if t.tab != nil && !t.tab.watched {
		t.tab.watched = true
		r.attach(nil, t.tab.id, ignore)
	}
}

// eyeOpened takes a session of the eye that Chrome announced.
func (r *Router) eyeOpened(s *session, info *targetInfo) {
	s.eye = true
	flat := true
	follow := func(kind string) {
		r.ask(s, cdptarget.CommandSetAutoAttach, cdptarget.SetAutoAttachParams{
			AutoAttach: true, Flatten: &flat, Filter: cdptarget.Filter{{Type: kind}, {Exclude: true}},
		}, ignore)
	}
	if info.Type == typeTab {
		follow(typePage)
		return
	}
	if info.Type == typePage && s.target != nil && s.parent.target != nil {
		r.shownIn(s.target, s.parent.target)
	}
	r.ask(s, cdppage.CommandEnable, nil, (*Router).eyeEnabled)
	follow(typeIframe)
}

func (r *Router) eyeEnabled(q *request, _ *Message, env *Envelope) {
	if s := q.via; s != nil && s.target != nil && !failed(env) {
		s.target.seen = true
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
			r.clicks = append(r.clicks, click{stringParam(params, "url"), t.owner, r.now})
		}
	case eventDialogOpening:
		t.dialog = s
		if len(t.owner.conns) == 0 {
			r.dismiss(t)
		}
	case eventDialogClosed:
		t.dialog = nil
	default:
		if t.info.Type == typePage {
			t.navigated(string(env.Method), params)
		}
	}
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
	at     time.Time
}

// clickAge is how long after the click its tab may come.
const clickAge = 3 * time.Second

// clicked finds the client whose page opened a tab of this address by a click.
// While a createTarget asks for the same address it cannot be told.
func (r *Router) clicked(url string) *client {
	r.clicks = slices.DeleteFunc(r.clicks, func(k click) bool { return r.now.Sub(k.at) > clickAge })
	if slices.ContainsFunc(r.creating, func(q *request) bool { return q.url == url }) {
		return nil
	}
	i := slices.IndexFunc(r.clicks, func(k click) bool { return k.url == url })
	if i < 0 {
		return nil
	}
	cl := r.clicks[i].client
	r.clicks = slices.Delete(r.clicks, i, i+1)
	return cl
}
