package routing

import (
	"cmp"
	"strings"
)

// navigation is what the page of a tab is at, as the eye saw it.
type navigation uint8

const (
	navReady   navigation = iota // loaded, or nothing is known
	navLoading                   // under way
	navFailed                    // Chrome shows an error page in its place
)

// navigated takes what the eye hears of a page's main frame.
func (t *target) navigated(event string, params []byte) {
	switch event {
	case eventStartedNavigating:
		if stringParam(params, "frameId") == t.id && !strings.HasSuffix(strings.ToLower(stringParam(params, "navigationType")), "samedocument") {
			t.navigation, t.navError = navLoading, ""
		}
	case eventFrameNavigated:
		v, _ := Member(params, "frame")
		frame := v.Of(params)
		if _, child := Member(frame, "parentId"); child {
			return
		}
		t.navigation = navLoading
		if _, bad := Member(frame, "unreachableUrl"); bad {
			t.navigation = navFailed
		}
	case eventFrameStopped: // after the load event, and without one when nothing was to be shown
		if stringParam(params, "frameId") == t.id && t.navigation == navLoading {
			t.navigation = navReady
		}
	}
}

// navigate notes what a client makes its page do: of the first navigation the
// eye may be told too late, and of what went wrong never.
func (r *Router) navigate(c *conn, s *session, m *Message, env *Envelope) {
	if r.closes(s, m, env) {
		return
	}
	t := s.target
	if t != nil && isNewTabPage([]byte(stringParam(object(m, env), "url"))) {
		t.newTab = true
	}
	if frame := stringParam(object(m, env), "frameId"); t == nil || t.info.Type != typePage || frame != "" && frame != t.id {
		r.forward(c, s, m, env)
		return
	}
	t.navigation, t.navError = navLoading, ""
	r.forward(c, s, m, env).answer = (*Router).navigateAnswered
}

// navigateAnswered: Chrome answers when the new page is there, or will not be.
func (r *Router) navigateAnswered(q *request, m *Message, env *Envelope) {
	if t := q.session.target; t != nil {
		result := env.Result.Of(m.Text())
		text := stringParam(result, "errorText")
		t.navError = cmp.Or(text, t.navError)
		switch {
		case t.navigation != navLoading:
		case text != "" && text != errorAborted:
			t.navigation = navFailed
		case text != "", stringParam(result, "loaderId") == "", !t.seen:
			t.navigation = navReady // nothing loads, or nobody will say when it is done
		}
	}
	r.pass(q, m, env)
}

// errorAborted: a download, or an answer without content; the page stays.
const errorAborted = "net::ERR_ABORTED"
