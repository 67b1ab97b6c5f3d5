// Package lease keeps the sessions that callers take over HTTP: a client id
// with a capability to close it. A caller makes the session's id and its close
// token before its first request and repeats the same pair with every retry;
// the [Registry] owns the creation and the release, whatever becomes of the
// caller. In code a session of this kind is a lease, since "session" is CDP's
// word.
//
//	         ┌──────────── the start failed: the id is free again
//	creating ┤→ ready ─→ closing ─→ closed (a tombstone, for [Config.TTL])
//	         └→ closing    ↑  ↓
//	                  release_failed (keeps its place)
//
// Each change of a lease that a caller is told of is in the journal first.
// The registry holds no token, only digests.
package lease
