package routing

import (
	"slices"
	"strings"

	"github.com/chromedp/cdproto/storage"
)

// clear is a command that wipes cookies: in the context that all share it
// would log everybody out.
func (r *Router) clear(c *conn, s *session, m *Message, env *Envelope) {
	shared := r.inShared(s)
	if string(env.Method) == storage.CommandClearCookies { // the one that says of which context
		shared = r.shares(env)
	}
	if r.clearing || !shared {
		r.forward(c, s, m, env)
		return
	}
	r.deny(s, env, "policy", string(env.Method)+" wipes the login that all clients share: start cdpmux with --allow-clearing to let it")
}

// clearData is clear when cookies are among what is to be cleared.
func (r *Router) clearData(c *conn, s *session, m *Message, env *Envelope) {
	for kind := range strings.SplitSeq(stringParam(object(m, env), "storageTypes"), ",") {
		if kind = strings.TrimSpace(kind); kind == "cookies" || kind == "all" { // Chrome trims, too
			r.clear(c, s, m, env)
			return
		}
	}
	r.forward(c, s, m, env)
}

// shares reports whether a command that takes a context acts on the one that
// all share: Chrome takes that when none is given, whatever the page's is.
func (r *Router) shares(env *Envelope) bool {
	return env.ContextID == nil || string(env.ContextID) == r.defaultContext
}

// inShared reports whether a session's page is in the context that all share.
func (r *Router) inShared(s *session) bool {
	return s.target == nil || slices.Contains([]string{"", r.defaultContext}, s.target.info.BrowserContextID)
}
