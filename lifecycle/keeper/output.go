package keeper

import (
	"bufio"
	"os"
	"strings"
	"sync"
	"time"
)

// output reads what Chrome prints, so that Chrome is never blocked by it, and
// keeps the last of it.
type output struct {
	// static after newOutput
	pipe      *os.File
	printed   func(line string)
	listening chan string   // gets Chrome's address, once
	done      chan struct{} // closed when nothing more comes

	mu   sync.Mutex
	last []string
}

// keptLines is how many lines are kept to explain a launch that failed.
const keptLines = 50

// newOutput returns the reader, and the end that Chrome writes to.
func newOutput(printed func(line string)) (*output, *os.File, error) {
	pipe, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	o := &output{pipe: pipe, printed: printed, listening: make(chan string, 1), done: make(chan struct{})}
	go o.read()
	return o, w, nil
}

func (o *output) read() {
	defer close(o.done)
	in := bufio.NewReaderSize(o.pipe, 16<<10)
	for {
		b, _, err := in.ReadLine() // an overlong line comes in pieces
		if err != nil {
			return
		}
		line := string(b)
		if ws, ok := strings.CutPrefix(line, "DevTools listening on "); ok {
			select {
			case o.listening <- ws:
			default:
			}
		}
		o.printed(redact(line))
		o.mu.Lock()
		o.last = append(o.last, line)
		o.last = o.last[max(0, len(o.last)-keptLines):]
		o.mu.Unlock()
	}
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.last...)
}

// rest returns the last lines of a Chrome that has ended. A child that lives
// on may hold the pipe open, so the end of it is not waited for long.
func (o *output) rest() []string {
	select {
	case <-o.done:
	case <-time.After(500 * time.Millisecond):
	}
	return o.lines()
}

// close ends the reading, also while a survivor still holds the pipe.
func (o *output) close() {
	_ = o.pipe.Close()
	<-o.done
}
