package routing

import (
	"time"

	cdptarget "github.com/chromedp/cdproto/target"
)

func (r *Router) closeTargetCommand(c *conn, s *session, m *Message, env *Envelope) {
	if t := r.targets[string(env.TargetID)]; r.visible(c.client, t) {
		if r.shared(t) {
			notAllowed(r, c, s, m, env)
			return
		}
		r.leaving(t)
	}
	r.forward(c, s, m, env)
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
		if r.keepLast {
			r.keepPage(t)
		}
		r.remind(closeWait, t, (*Router).closeAgain)
	}
	t.window.remove(t)
}

// keepPage makes an empty page in the place of one that is closed, when it is
// the last: the browser could end with that.
func (r *Router) keepPage(last *target) {
	if !last.isTab() {
		return
	}
	for _, t := range r.targets {
		if t != last && t.isTab() && !t.closing {
			return
		}
	}
	r.ask(nil, cdptarget.CommandCreateTarget, cdptarget.CreateTargetParams{URL: "about:blank"}, ignore)
}

// closeWait is how long a target that is closed may stay.
const closeWait = time.Second

// closeAgain closes a target that is still there: Chrome forgets a closeTarget
// that comes while a navigation commits (measured), and says success.
func (r *Router) closeAgain(t *target) {
	q := r.ask(nil, cdptarget.CommandCloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, (*Router).closedAgain)
	q.subject = t.id
}

func (r *Router) closedAgain(q *request, m *Message, env *Envelope) {
	if t := r.targets[q.subject]; t != nil && !failed(env) {
		r.remind(closeWait, t, (*Router).closeAgain)
	}
}
