package wire

import (
	"sync"
	"time"

	"cdpmux/routing"
)

// outbox is the queue of one connection. Any goroutine may push; one writer
// takes. Nothing here waits or does I/O, so it may be used under any lock.
type outbox struct {
	wake chan struct{} // one slot: the writer has something to look at
	full int           // bytes; above it [outbox.backlog] gives a channel to wait on

	mu    sync.Mutex
	queue []*routing.Message // guarded by mu
	bytes int                // guarded by mu: queued and being written
	end   *Ending            // guarded by mu: set once, nothing is taken in afterwards
	room  chan struct{}      // guarded by mu: nil when nobody waits
}

// Ending is how a connection is to end.
type Ending struct {
	Reason Reason
	Text   string    // what the peer is told; "" is the reason's own text
	Drop   bool      // what is queued is thrown away
	at     time.Time // when it was decided
}

func newOutbox(full int) *outbox {
	return &outbox{wake: make(chan struct{}, 1), full: full}
}

// push queues m, whose ownership it takes, and returns the bytes that are
// waiting now. After [outbox.finish] the message is dropped.
func (o *outbox) push(m *routing.Message) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		Free(m)
		return 0
	}
	o.queue = append(o.queue, m)
	o.bytes += Memory(m)
	if len(o.queue) == 1 {
		o.poke()
	}
	return o.bytes
}

// poke wakes the writer.
func (o *outbox) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take swaps the queue with spare, an emptied earlier batch. A batch that comes
// with an ending is the last one.
func (o *outbox) take(spare []*routing.Message) ([]*routing.Message, *Ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch := o.queue
	o.queue = spare[:0]
	if o.end != nil && o.end.Drop {
		batch = batch[:0]
	}
	return batch, o.end
}

// written says that the writer is done with messages of this memory.
func (o *outbox) written(size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= size
	if o.room != nil && o.bytes <= o.full {
		close(o.room)
		o.room = nil
	}
}

// backlog returns nil while there is room, else a channel that is closed when
// there is again.
func (o *outbox) backlog() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes <= o.full || o.end != nil {
		return nil
	}
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room
}

// finish decides how the connection ends. The first decision stands; finish
// reports whether this was it.
func (o *outbox) finish(e Ending) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		return false
	}
	e.at = time.Now()
	o.end = &e
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
	o.poke()
	return true
}

// state returns the waiting bytes and the ending, nil while there is none.
func (o *outbox) state() (int, *Ending) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes, o.end
}
