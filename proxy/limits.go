package proxy

import (
	"time"

	"cdpmux/proxy/wire"
)

// limits are the sizes and times that a Server lives by.
type limits struct {
	wire.Limits                // of each connection; the reader of a client that sends more than the browser's Backlog waits
	client      wire.SlowLimit // of a client

	held      int           // bytes a client may send before it has its root, then its reader waits
	ahead     int           // commands a client may be ahead of their replies, then its reader waits for some,
	pause     time.Duration // … for so long at most
	answer    time.Duration // what an HTTP request waits for the browser's answer
	tabsWait  time.Duration // what closing the clients' tabs may take at the end
	cleanup   time.Duration // between attempts to get rid of what is left of a browser
	retry     time.Duration // Retry-After of what may work later
	body      time.Duration // what the body of a request may take
	answering int           // HTTP requests that may wait for their answers at once, the operator's besides

	redials    int           // attempts to get a lost browser back
	redialWait time.Duration // between the first two of them, then twice as long each time,
	redialMax  time.Duration // … up to this
	probe      time.Duration // a browser that says nothing while something is open is probed so often
	silent     time.Duration // … and after this what is open is given up,
	dead       time.Duration // … after this the connection
	save       time.Duration // the state file is written no more often than this
}

// Chrome itself keeps up to 256 MiB for a reader that does not read, then
// throws replies away.
var defaultLimits = limits{
	Limits: wire.Limits{Backlog: 64 << 20, CloseWait: time.Second, Tick: 250 * time.Millisecond},
	client: wire.SlowLimit{Soft: 64 << 20, Hard: 256 << 20, Stall: 10 * time.Second},

	held:      64 << 20,
	ahead:     64,
	pause:     20 * time.Millisecond,
	answer:    30 * time.Second,
	tabsWait:  2 * time.Second,
	cleanup:   10 * time.Second,
	retry:     5 * time.Second,
	body:      5 * time.Second,
	answering: 1024, // 18 KiB each

	redials:    10,
	redialWait: time.Second,
	redialMax:  30 * time.Second,
	probe:      5 * time.Second,
	silent:     15 * time.Second,
	dead:       30 * time.Second,
	save:       time.Second,
}
