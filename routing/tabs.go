package routing

import (
	"slices"
	"time"

	cdptarget "github.com/chromedp/cdproto/target"
)

// TargetView is a target as /json/list shows it.
type TargetView struct {
	ID, Type, Title, URL, ParentID string
}

// Refresh brings titles and addresses up to date, which discovery does not
// tell; an Answer with the token follows.
func (r *Router) Refresh(now time.Time, token uint64, out []Action) []Action {
	r.begin(now, out)
	if r.absent(token) {
		return r.out
	}
	r.ask(nil, cdptarget.CommandGetTargets, cdptarget.GetTargetsParams{Filter: cdptarget.Filter{{}}}, (*Router).refreshed).token = token
	return r.out
}

func (r *Router) refreshed(q *request, m *Message, env *Envelope) {
	if !failed(env) {
		r.refresh(m, env)
	}
	r.answered(q, m, env)
}

// List shows a client's targets, most recently used first; "" is the HTTP
// owner. Tab targets are shown when they are asked for, as Chrome does.
func (r *Router) List(client string, forTab bool) []TargetView {
	cl := r.clients[client]
	if cl == nil {
		return nil
	}
	f := defaultFilter
	if forTab {
		f = filter{{kind: typeBrowser, exclude: true}, {}}
	}
	var own []*target
	for _, t := range r.targets {
		if r.visible(cl, t) && f.allows(t.info.Type) {
			own = append(own, t)
		}
	}
	slices.SortFunc(own, func(a, b *target) int { return byUse(b, a) })
	views := make([]TargetView, 0, len(own))
	for _, t := range own {
		views = append(views, TargetView{ID: t.id, Type: t.info.Type, Title: t.info.Title, URL: t.info.URL, ParentID: t.info.ParentID})
	}
	return views
}

// NewTab makes a tab for a client, which exists from then on; its id comes in
// the Answer.
func (r *Router) NewTab(now time.Time, client, url string, forTab bool, token uint64, out []Action) []Action {
	r.begin(now, out)
	if r.absent(token) {
		return r.out
	}
	if r.refusesNew(client, url, token) {
		return r.out
	}
	cl := r.client(client)
	w, newWindow := r.place(cl, false, false)
	q := r.ask(nil, cdptarget.CommandCreateTarget, cdptarget.CreateTargetParams{URL: url, NewWindow: &newWindow, ForTab: &forTab}, (*Router).targetMade)
	q.client, q.window, q.token = cl, w, token
	r.creating = append(r.creating, q)
	return r.out
}

// refusesNew answers a PUT /json/new that the policy refuses.
func (r *Router) refusesNew(client, url string, token uint64) bool {
	const method = "PUT /json/new"
	says, n := r.rules.of(client, cdptarget.CommandCreateTarget)
	scheme := closedScheme([]byte(url), r.openSchemes)
	cl := r.clients[client]
	result := Result{Refused: true}
	switch {
	case says == ruledOut:
		r.denied, result.Err = "rule", r.rules.refusal(client, method, n)
	case scheme != "":
		r.denied, result.Err = "scheme", closedText(scheme)
	case cl != nil && r.full(cl):
		r.denied, result = "cap", Result{Err: r.fullText(cl)}
	}
	if r.audit {
		r.record(client, method, "", allow)
	}
	if result.Err != "" {
		r.out = append(r.out, Action{Kind: Answer, Token: token, Result: result})
	}
	return result.Err != ""
}

// absent answers an HTTP request for which there is no browser any more.
func (r *Router) absent(token uint64) bool {
	if !r.up {
		r.out = append(r.out, Action{Kind: Answer, Token: token, Result: Result{Err: "browser connection lost"}})
	}
	return !r.up
}

// CloseTab closes a client's target.
func (r *Router) CloseTab(now time.Time, client, id string, token uint64, out []Action) []Action {
	r.begin(now, out)
	if t := r.httpTarget(client, id, token, cdptarget.CommandCloseTarget); t != nil {
		r.closeFor(t, token)
	}
	return r.out
}

// EndTab is CloseTab as the operator wants it: no rule refuses it, and the
// audit of what clients do has nothing of it.
func (r *Router) EndTab(now time.Time, client, id string, token uint64, out []Action) []Action {
	r.begin(now, out)
	cl, t := r.clients[client], r.targets[id]
	refusal := ""
	switch {
	case cl == nil || !r.visible(cl, t):
		refusal = "No such target id: " + id
	case r.shared(t):
		refusal = textNotAllowed
	default:
		r.closeFor(t, token)
		return r.out
	}
	r.out = append(r.out, Action{Kind: Answer, Token: token, Result: Result{Err: refusal}})
	return r.out
}

// closeFor closes a target, and answers when Chrome has.
func (r *Router) closeFor(t *target, token uint64) {
	r.leaving(t)
	r.ask(nil, cdptarget.CommandCloseTarget, cdptarget.CloseTargetParams{TargetID: cdptarget.ID(t.id)}, (*Router).answered).token = token
}

// ActivateTab brings a client's target to the front.
func (r *Router) ActivateTab(now time.Time, client, id string, token uint64, out []Action) []Action {
	r.begin(now, out)
	if t := r.httpTarget(client, id, token, cdptarget.CommandActivateTarget); t != nil {
		r.use(t)
		r.ask(nil, cdptarget.CommandActivateTarget, cdptarget.ActivateTargetParams{TargetID: cdptarget.ID(id)}, (*Router).answered).token = token
	}
	return r.out
}

// httpTarget finds the client's target that GET /json/close or activate means;
// method is what those are over CDP. Otherwise it answers.
func (r *Router) httpTarget(client, id string, token uint64, method string) *target {
	t, known := r.targets[id], ""
	request := "GET /json/activate"
	if method == cdptarget.CommandCloseTarget {
		request = "GET /json/close"
	}
	says, n := r.rules.of(client, method)
	var result Result
	switch cl := r.clients[client]; {
	case says == ruledOut:
		r.denied, result = "rule", Result{Refused: true, Err: r.rules.refusal(client, request, n)}
	case cl == nil || !r.visible(cl, t):
		r.denied, result.Err = "foreign", "No such target id: "+id
	case method == cdptarget.CommandCloseTarget && r.shared(t):
		r.denied, result.Err = "policy", textNotAllowed
	default:
		known = id
	}
	if r.audit {
		r.record(client, request, known, allow)
	}
	if result.Err != "" {
		r.out = append(r.out, Action{Kind: Answer, Token: token, Result: result})
		return nil
	}
	return t
}

// answered ends an HTTP request.
func (r *Router) answered(q *request, m *Message, env *Envelope) {
	r.out = append(r.out, Action{Kind: Answer, Token: q.token, Result: Result{Err: errorOf(m, env)}})
}

// Version is what the browser says it is; known is false until it has told.
func (r *Router) Version() (v Version, known bool) { return r.version, r.version.Product != "" }
