package routing

import (
	"slices"
	"strings"

	"github.com/chromedp/cdproto/browser"
	cdptarget "github.com/chromedp/cdproto/target"
)

// rule is what becomes of a method, and why it does not just pass.
type rule struct {
	why string
	do  func(*Router, *conn, *session, *Message, *Envelope)
}

// policy has a row for each method that does not just pass. It holds at every
// depth: at a root, on a page session, inside sendMessageToTarget. Ids of
// others in any command's params are hidden besides (hideForeign).
var policy map[string]rule

func init() { // not at the declaration: the handlers lead back to the table
	policy = map[string]rule{
		cdptarget.CommandGetTargets:         {"shows its own targets only", (*Router).getTargets},
		cdptarget.CommandGetTargetInfo:      {"attached is the client's own truth", (*Router).getTargetInfo},
		cdptarget.CommandAttachToTarget:     {"a non-flat session is made of a flat one", (*Router).attachToTarget},
		commandSendMessage:                  {"what is inside is a command like any other", (*Router).sendMessageToTarget},
		cdptarget.CommandCloseTarget:        {"its window counts it no longer", (*Router).closeTargetCommand},
		cdptarget.CommandCreateTarget:       {"makes it the client's, in a window of its own", (*Router).createTarget},
		cdptarget.CommandSetDiscoverTargets: {"one discovery serves all", (*Router).setDiscoverTargets},
		cdptarget.CommandSetAutoAttach:      {"at a root it would attach to everybody's tabs", (*Router).setAutoAttach},

		cdptarget.CommandCreateBrowserContext:  {"makes it the client's", (*Router).createBrowserContext},
		cdptarget.CommandGetBrowserContexts:    {"shows its own contexts only", (*Router).getBrowserContexts},
		cdptarget.CommandDisposeBrowserContext: {"its own contexts only", (*Router).disposeBrowserContext},

		cdptarget.CommandExposeDevToolsProtocol: {"gives a page the whole browser", notAllowed},
		cdptarget.CommandSetRemoteLocations:     {"browser-wide, the last one wins", notAllowed},
		browser.CommandCrash:                    {"everybody's browser", notAllowed},
		browser.CommandCrashGPUProcess:          {"everybody's browser", notAllowed},
		commandFetchEnable:                      {"at a root it stops everybody's requests", notAtRoot},

		browser.CommandClose:               {"closes what is the client's, never Chrome", (*Router).browserClose},
		browser.CommandSetDownloadBehavior: {"browser-wide, the last one wins", succeed},
		commandPageDownload:                {"acts browser-wide too", succeed},
	}
}

func notAllowed(r *Router, _ *conn, s *session, _ *Message, env *Envelope) {
	r.reply(s, env.ID, errorBody(codeServer, textNotAllowed))
}

func notAtRoot(r *Router, c *conn, s *session, m *Message, env *Envelope) {
	if s.root {
		notAllowed(r, c, s, m, env)
		return
	}
	r.forward(c, s, m, env)
}

func succeed(r *Router, _ *conn, s *session, _ *Message, env *Envelope) {
	r.reply(s, env.ID, `"result":{}`)
}

// browserClose does to the client what Chrome's end would: all its tabs and
// connections go.
func (r *Router) browserClose(c *conn, s *session, _ *Message, env *Envelope) {
	r.reply(s, env.ID, `"result":{}`)
	r.end(c, ReasonBrowserClose)
	for _, o := range slices.Clone(c.client.conns) {
		r.end(o, ReasonBrowserClose)
	}
}

// getTargets asks Chrome, since discovery does not tell titles, and keeps what
// is the client's, most recently used first.
func (r *Router) getTargets(c *conn, s *session, m *Message, env *Envelope) {
	r.forward(c, s, m, env).answer = (*Router).targetsKnown
}

func (r *Router) targetsKnown(q *request, m *Message, env *Envelope) {
	if failed(env) || q.conn == nil {
		r.pass(q, m, env)
		return
	}
	var own []*target
	for _, t := range r.refresh(m, env) {
		if r.visible(q.conn.client, t) {
			own = append(own, t)
		}
	}
	slices.SortStableFunc(own, func(a, b *target) int { return byUse(b, a) })
	var infos []string
	for _, t := range own {
		infos = append(infos, t.infoFor(q.conn.client))
	}
	r.reply(q.session, q.clientID, `"result":{"targetInfos":[`+strings.Join(infos, ",")+`]}`)
}

func (r *Router) getTargetInfo(c *conn, s *session, m *Message, env *Envelope) {
	r.forward(c, s, m, env).answer = (*Router).targetInfoKnown
}

func (r *Router) targetInfoKnown(q *request, m *Message, env *Envelope) {
	if failed(env) || q.conn == nil {
		r.pass(q, m, env)
		return
	}
	result := env.Result.Of(m.Text())
	v, _ := Member(result, "targetInfo")
	raw := v.Of(result)
	info, _ := readTarget(raw)
	if t := r.targets[info.TargetID]; t != nil {
		attached := info.Type == typeBrowser || t.attachedTo(q.conn.client)
		r.reply(q.session, q.clientID, `"result":{"targetInfo":`+string(withAttached(nil, raw, attached))+`}`)
		return
	}
	r.pass(q, m, env)
}

func (r *Router) closeTargetCommand(c *conn, s *session, m *Message, env *Envelope) {
	if t := r.targets[string(env.TargetID)]; r.visible(c.client, t) {
		r.leaving(t)
	}
	r.forward(c, s, m, env)
}

// createTarget goes through the proxy's own root, where the reply comes even
// when the client leaves: the tab must not be left without an owner.
func (r *Router) createTarget(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	newWindow, given, ok := boolParam(params, "newWindow")
	background, _, _ := boolParam(params, "background")
	hidden, _, _ := boolParam(params, "hidden")
	var via *session
	if hidden {
		via = s // a hidden target lives and dies with the session that made it
	}
	q := r.open(via, c, s, env.ID)
	q.answer, q.client = (*Router).targetMade, c.client
	shared := env.ContextID == nil || string(env.ContextID) == r.defaultContext
	r.hideForeign(q, m, env)
	if params != nil && ok && !hidden && shared {
		w, want := r.place(c.client, newWindow, background)
		q.window = w
		if want && !newWindow {
			setParam(m, env, "newWindow", "true", given)
		}
	}
	r.creating = append(r.creating, q)
	r.send(q, m, env)
}

// targetMade gives the new target to its client, and only then the reply: the
// events about it come first, as in Chrome.
func (r *Router) targetMade(q *request, m *Message, env *Envelope) {
	r.dropCreating(q)
	t := r.targets[resultIDs(m, env).TargetID]
	if t != nil && t.page != nil {
		t = t.page // forTab
	}
	if t == nil {
		if q.window != nil {
			q.window.tabs--
		}
		r.notMadeBy(q)
		r.made(q, m, env)
		r.vacate(q.client)
		return
	}
	t.window = q.window
	b := &batch{open: 1}
	r.use(t)
	r.own(t, q.client)
	r.autoAttach(t, b)
	r.notMadeBy(q)
	if q.conn == nil || b.open == 1 {
		r.made(q, m, env)
		return
	}
	result := env.Result.Of(m.Text())
	b.owed, b.body = owed{q.conn, q.session, q.clientID}, `"result":`+string(result)
	r.settle(b)
}

// made answers a createTarget, to a client or over HTTP.
func (r *Router) made(q *request, m *Message, env *Envelope) {
	if q.token == 0 {
		r.pass(q, m, env)
		return
	}
	r.out = append(r.out, Action{Kind: Answer, Token: q.token, Result: Result{TargetID: resultIDs(m, env).TargetID, Err: errorOf(m, env)}})
}

// setParam sets a member of params to a raw value.
func setParam(m *Message, env *Envelope, key, value string, present bool) {
	params := object(m, env)
	if present {
		v, _ := Member(params, key)
		m.Replace(env, Span{env.Params.Start + v.Start, env.Params.Start + v.End}, []byte(value))
		return
	}
	member := `"` + key + `":` + value
	if len(strings.TrimSpace(string(params[1:len(params)-1]))) > 0 {
		member += ","
	}
	at := env.Params.Start + 1
	m.Replace(env, Span{at, at}, []byte(member))
}

// object is a command's params; nil when they are none or no object.
func object(m *Message, env *Envelope) []byte {
	if p := env.Params.Of(m.Text()); len(p) > 0 && p[0] == '{' {
		return p
	}
	return nil
}
