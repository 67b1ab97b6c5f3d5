// Package routing decides what becomes of each CDP message: it is the pure
// heart of cdpmux. It holds no goroutine, channel, lock, clock, socket, file
// or log; package proxy carries out what it decides.
//
// # The walk of a message
//
//	client ──▶ ScanCommand ──▶ Router.FromClient ──▶ ToBrowser (id and sessionId are ours)
//	                                   │
//	                                   ├──▶ ToClient  (refused, or answered by us)
//	                                   └──▶ held      (the browser is still starting)
//
//	browser ─▶ Scan ─▶ Router.FromBrowser ─▶ ToClient  (a reply: the request table; an event: the session's owner)
//	                                   └──▶ tables    (discovery, our own commands)
//
// # Rules
//
//   - One id in, one reply out: a request is answered exactly once, with the
//     id and sessionId it came with, whatever happens.
//   - A client sees what a Chrome of its own would show it. A foreign target,
//     session or context answers byte for byte as one that does not exist.
//   - Policy looks at the method and the ids, never at where they were sent.
//   - Bytes other than the id, the session of a root, and what policy must
//     rewrite leave as they came.
package routing
