package routing

import (
	"fmt"
	"slices"
)

// WindowPolicy says where a client's new tab goes. In a window that several
// clients share, one's new tab hides the others'.
type WindowPolicy uint8

const (
	WindowsClient WindowPolicy = iota // a window of the client's own
	WindowsTab                        // a window for each tab
	WindowsShared                     // wherever Chrome puts it
)

// ParseWindowPolicy reads client, tab or shared.
func ParseWindowPolicy(s string) (WindowPolicy, error) {
	i := slices.Index([]string{"client", "tab", "shared"}, s)
	if i < 0 {
		return 0, fmt.Errorf("window policy %q: must be client, tab or shared", s)
	}
	return WindowPolicy(i), nil
}

// window is a normal window of the shared context, as far as our own
// createTargets tell. Chrome puts a new tab into the one that was created last
// in the foreground and still lives, whoever's it is (measured). Popups that
// joined it are not counted: to think it gone costs a window, to think it
// alive would hide a neighbour's tab.
type window struct {
	client *client
	tabs   int // made in it through us and not closing, with those in flight
}

// place decides where a createTarget goes: the window, and whether it has to
// be asked for. wantsNew and background are what the client asked.
func (r *Router) place(cl *client, wantsNew, background bool) (w *window, newWindow bool) {
	newWindow = wantsNew
	switch r.windows {
	case WindowsTab:
		newWindow = true
	case WindowsClient:
		if r.front == nil || r.front.client != cl || r.front.tabs == 0 {
			newWindow = true
		}
	}
	w = r.front
	if newWindow || w == nil {
		w = &window{client: cl}
		if !background {
			r.front = w
		}
	}
	w.tabs++
	return w, newWindow
}

// remove takes a tab out of its window, once.
func (w *window) remove(t *target) {
	if w != nil {
		w.tabs--
		t.window = nil
	}
}

// getWindowForTarget notes which windows a client was told of: those of its
// own targets.
func (r *Router) getWindowForTarget(c *conn, s *session, m *Message, env *Envelope) {
	q := r.forward(c, s, m, env)
	q.answer, q.client = (*Router).windowKnown, c.client
}

func (r *Router) windowKnown(q *request, m *Message, env *Envelope) {
	if !failed(env) {
		result := env.Result.Of(m.Text())
		if v, ok := Member(result, "windowId"); ok {
			if id := string(v.Of(result)); !slices.Contains(q.client.windows, id) {
				q.client.windows = append(q.client.windows, id)
			}
		}
	}
	r.pass(q, m, env)
}

// windowCommand acts on a window that the client was told of; to it there is
// no other.
func (r *Router) windowCommand(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	if id, ok := Member(params, "windowId"); ok && !slices.Contains(c.client.windows, string(id.Of(params))) {
		q := r.open(s, c, s, env.ID)
		setParam(m, env, "windowId", "-1", true)
		r.send(q, m, env)
		return
	}
	r.forward(c, s, m, env)
}
