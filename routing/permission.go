package routing

import (
	"maps"
	"slices"

	"github.com/chromedp/cdproto/browser"
)

// perms is what a client granted in the context that all share. Chrome keeps
// one list an origin, the last one wins, and what it does not name is denied:
// so Chrome gets all clients' together, from the proxy's root, where none
// ends with a session.
type perms struct {
	granted  map[string][]string // origin ("" is all) → permissions
	settings []string            // params of each setPermission, in order
}

func (p *perms) empty() bool { return len(p.granted) == 0 && len(p.settings) == 0 }

// forwardShared sends a command on the proxy's root when it acts on what all
// share; nil: it went where the client said.
func (r *Router) forwardShared(c *conn, s *session, m *Message, env *Envelope, edit func()) *request {
	if !r.shares(env) {
		r.forward(c, s, m, env)
		return nil
	}
	q := r.open(nil, c, s, env.ID)
	q.client = c.client
	r.hideForeign(q, m, env)
	edit()
	r.send(q, m, env)
	return q
}

func (r *Router) grantPermissions(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	origin := stringParam(params, "origin")
	list, sound := stringsParam(params, "permissions")
	q := r.forwardShared(c, s, m, env, func() {
		if sound {
			setParam(m, env, "permissions", quoteAll(r.grantedTo(origin, c.client, list)), true)
		}
	})
	if q != nil {
		q.answer, q.subject, q.list = (*Router).permissionsGranted, origin, list
	}
}

func (r *Router) permissionsGranted(q *request, m *Message, env *Envelope) {
	if !failed(env) && !q.client.gone {
		if q.client.perms.granted == nil {
			q.client.perms.granted = map[string][]string{}
		}
		q.client.perms.granted[q.subject] = q.list
	}
	r.pass(q, m, env)
}

// grantedTo is what all clients together granted an origin, with list in the
// place of what one of them did.
func (r *Router) grantedTo(origin string, but *client, list []string) []string {
	all := slices.Clone(list)
	for _, cl := range r.clients {
		if cl != but {
			all = append(all, cl.perms.granted[origin]...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (r *Router) setPermission(c *conn, s *session, m *Message, env *Envelope) {
	params := string(object(m, env))
	if q := r.forwardShared(c, s, m, env, func() {}); q != nil {
		q.answer, q.subject = (*Router).permissionSet, params
	}
}

func (r *Router) permissionSet(q *request, m *Message, env *Envelope) {
	if p := &q.client.perms; !failed(env) && !q.client.gone {
		p.settings = append(slices.DeleteFunc(p.settings, func(s string) bool { return s == q.subject }), q.subject)
	}
	r.pass(q, m, env)
}

func (r *Router) resetPermissions(c *conn, s *session, m *Message, env *Envelope) {
	shared := r.shares(env)
	r.forwardShared(c, s, m, env, func() {})
	if shared {
		c.client.perms = perms{}
		r.grantAll()
	}
}

// regrant takes back what a client that leaves had granted.
func (r *Router) regrant(p *perms) {
	if p.empty() {
		return
	}
	*p = perms{}
	r.ask(nil, browser.CommandResetPermissions, nil, ignore)
	r.grantAll()
}

// grantAll grants, after a reset, what the clients that are there granted.
func (r *Router) grantAll() {
	origins := map[string]bool{}
	for _, cl := range r.clients {
		for o := range cl.perms.granted {
			origins[o] = true
		}
	}
	for _, o := range slices.Sorted(maps.Keys(origins)) {
		p := map[string]any{"permissions": r.grantedTo(o, nil, nil)}
		if o != "" {
			p["origin"] = o
		}
		r.ask(nil, commandGrantPermissions, p, ignore)
	}
	for _, id := range slices.Sorted(maps.Keys(r.clients)) {
		for _, params := range r.clients[id].perms.settings {
			r.ask(nil, browser.CommandSetPermission, rawParams(params), ignore)
		}
	}
}
