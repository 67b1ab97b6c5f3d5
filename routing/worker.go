package routing

import (
	"slices"
	"strings"
)

// Service and shared workers have no page that they belong to. Every client
// with a page of their origin and context sees them; once seen they stay, as a
// Chrome of its own would keep them.

func (i *targetInfo) isWorker() bool { return i.Type == typeShared || i.Type == typeService }

// origin is the scheme and host of an address; "" when it has none of its own.
func origin(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	if !ok || host == "" {
		return ""
	}
	return scheme + "://" + host
}

// sharesOrigin reports whether a page has the worker's origin and context.
func sharesOrigin(page, worker *target) bool {
	return page.info.BrowserContextID == worker.info.BrowserContextID && origin(page.info.URL) != "" &&
		origin(page.info.URL) == origin(worker.info.URL)
}

// view shows a worker to the client, once.
func (r *Router) view(worker *target, cl *client) {
	if cl.gone || slices.Contains(worker.viewers, cl) {
		return
	}
	worker.viewers = append(worker.viewers, cl)
	r.freeWorker(worker)
	r.tellCreated(worker, cl)
	if worker.fresh {
		return // the hub's session comes first
	}
	for _, root := range r.rootsFor(worker) {
		if root.conn.client == cl {
			r.autoAttachOn(root, worker, nil)
		}
	}
}

// findViewers shows a new worker to the clients with a page of its origin.
func (r *Router) findViewers(worker *target) {
	for _, t := range r.targets {
		if t.owner != nil && t.info.Type == typePage && sharesOrigin(t, worker) {
			r.view(worker, t.owner)
		}
	}
}

// findWorkers shows a page's client the workers of the origin it came to.
func (r *Router) findWorkers(page *target) {
	if page.owner == nil || page.info.Type != typePage {
		return
	}
	for _, t := range r.targets {
		if t.info.isWorker() && sharesOrigin(page, t) {
			r.view(t, page.owner)
		}
	}
}

// freeWorker runs a worker that a client holds while others wait for it too:
// one that is silent would hold it for all. Only a run on the session that
// holds it works (measured).
func (r *Router) freeWorker(worker *target) {
	if !r.shared(worker) {
		return
	}
	for _, s := range worker.sessions {
		if s.paused && s.conn != nil {
			r.run(s)
		}
	}
}

// shared reports whether several clients see a worker: it is no one's to close.
func (r *Router) shared(t *target) bool { return len(t.viewers) > 1 }
