package wire

import "time"

// Limits are the sizes and times that a [Link] lives by.
type Limits struct {
	Backlog   int           // bytes that wait for the peer; above it [Link.Backlog] gives a channel to wait on
	CloseWait time.Duration // what the end of a connection may take once the peer does nothing
	Tick      time.Duration // how often a write that makes no progress is looked at
}

// SlowLimit says when a peer is a slow consumer: over Soft bytes and nothing
// taken for Stall, or over Hard bytes. The zero SlowLimit is none.
type SlowLimit struct {
	Soft, Hard int
	Stall      time.Duration
}
