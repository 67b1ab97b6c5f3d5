package wire

import (
	"sync"
	"weak"

	"cdpmux/routing"
)

// spares are large buffers that nobody uses: to clear 64 MiB for the next
// screenshot costs as much as to read it. The references are weak, so that the
// garbage collector takes what is not used again soon, and one screenshot does
// not pin its size for good. A sync.Pool would keep one for each processor.
type spares struct {
	mu   sync.Mutex
	all  [8]weak.Pointer[routing.Message]
	next int // to be replaced when all are there
}

var large spares

// take returns a spare of at least size bytes and at most a quarter more, nil
// when there is none.
func (s *spares) take(size int) *routing.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.all {
		if m := s.all[i].Value(); m != nil && cap(m.Buf) >= size && cap(m.Buf) <= size+size/4 {
			s.all[i] = weak.Pointer[routing.Message]{}
			return m
		}
	}
	return nil
}

func (s *spares) put(m *routing.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.all {
		if s.all[i].Value() == nil {
			s.all[i] = weak.Make(m)
			return
		}
	}
	s.all[s.next] = weak.Make(m)
	s.next = (s.next + 1) % len(s.all)
}
