package routing

import (
	"slices"

	"github.com/chromedp/cdproto/cdp"
	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/mailru/easyjson"
)

type contextID = cdp.BrowserContextID

// uses reports whether a client may name a browser context: one of its own,
// or the one that everybody shares.
func (cl *client) uses(id, shared string) bool {
	return id == shared || slices.Contains(cl.contexts, id)
}

// createBrowserContext makes a context the client's. One that goes with its
// session is made there; any other where the reply comes for sure, so that it
// is not left without an owner.
func (r *Router) createBrowserContext(c *conn, s *session, m *Message, env *Envelope) {
	via := s
	if dispose, _, ok := boolParam(object(m, env), "disposeOnDetach"); s.root && ok && !dispose {
		via = nil
	}
	q := r.open(via, c, s, env.ID)
	q.answer, q.client, q.makes = (*Router).contextMade, c.client, true
	r.send(q, m, env)
}

func (r *Router) contextMade(q *request, m *Message, env *Envelope) {
	if id := resultIDs(m, env).BrowserContextID; id != "" {
		if q.client.gone || q.late {
			r.ask(nil, cdptarget.CommandDisposeBrowserContext, cdptarget.DisposeBrowserContextParams{BrowserContextID: contextID(id)}, ignore)
		} else {
			q.client.contexts = append(q.client.contexts, id)
			r.pin(id)
		}
	}
	r.pass(q, m, env)
}

func (r *Router) disposeBrowserContext(c *conn, s *session, m *Message, env *Envelope) {
	id := string(env.ContextID)
	q := r.forward(c, s, m, env)
	q.answer, q.client, q.subject = (*Router).contextDisposed, c.client, id
}

func (r *Router) contextDisposed(q *request, m *Message, env *Envelope) {
	if !failed(env) {
		q.client.contexts = slices.DeleteFunc(q.client.contexts, func(id string) bool { return id == q.subject })
		delete(q.client.downloads, q.subject)
	}
	r.pass(q, m, env)
}

func (r *Router) getBrowserContexts(c *conn, s *session, m *Message, env *Envelope) {
	r.forward(c, s, m, env).answer = (*Router).ownContexts
}

func (r *Router) ownContexts(q *request, m *Message, env *Envelope) {
	if failed(env) || q.conn == nil {
		r.pass(q, m, env)
		return
	}
	known := readContexts(m, env)
	known.BrowserContextIDs = slices.DeleteFunc(known.BrowserContextIDs, func(id string) bool { return !slices.Contains(q.conn.client.contexts, id) })
	result, err := easyjson.Marshal(known)
	if err != nil {
		panic(err) // our own types always marshal
	}
	r.reply(q.session, q.clientID, `"result":`+string(result))
}
