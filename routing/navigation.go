package routing

import "strings"

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

// navigate notes what Chrome says went wrong, which the eye is not told.
func (r *Router) navigate(c *conn, s *session, m *Message, env *Envelope) {
	r.forward(c, s, m, env).answer = (*Router).navigateAnswered
}

func (r *Router) navigateAnswered(q *request, m *Message, env *Envelope) {
	if t := q.session.target; t != nil && env.Result.Present() {
		t.navError = stringParam(env.Result.Of(m.Text()), "errorText")
	}
	r.pass(q, m, env)
}
