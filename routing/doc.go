// Package routing decides what becomes of each CDP message: it is the pure
// heart of cdpmux. It holds no goroutine, channel, lock, clock, socket, file
// or log; package proxy carries out what it decides.
//
// # The walk of a message
//
//	client ──▶ ScanCommand ──▶ Router.FromClient ──▶ policy ──▶ ToBrowser (id and sessionId are ours)
//	                                   │                └─────▶ ToClient  (refused, or answered by us)
//	                                   └──▶ held, while there is no browser
//
//	browser ─▶ Scan ─▶ Router.FromBrowser ─▶ a reply: its request says what to do with it
//	                                   ├───▶ an event of a client's session: ToClient
//	                                   └───▶ an event of our own: discovery, the hub, the eye
//
// # The sessions in Chrome
//
//	the connection: the proxy's own root; discovers every target
//	├── the hub: auto-attach while any client wants it; hands its sessions over
//	├── the eye, on each owned tab ── its pages; on their cross-site iframes
//	└── a root for each client connection
//	    ├── what the client attaches to ── frames, workers …
//	    └── roots nested in it
//
// # Rules
//
//   - One id in, one reply out: a request is answered exactly once, with the
//     id and sessionId it came with, whatever happens.
//   - A client sees what a Chrome of its own would show it. A foreign target,
//     session or context answers byte for byte as one that does not exist.
//   - Policy looks at the method and the ids, never at where they were sent.
//   - A target's owner is decided once: who created it, else whose opener,
//     parent or context it has, else whose page was clicked, else nobody.
//   - Nothing stays paused that its client did not ask to pause, and nothing
//     stays open that belongs to a client that is gone.
//   - Bytes other than the id, the session of a root, and what policy must
//     rewrite leave as they came.
//
// [Router.Check] verifies that the tables agree with one another; the tests
// call it after each step.
package routing
