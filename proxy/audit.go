package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/routing"
)

// Audit writes a line of JSON for each decision on a client's command, to the
// end of a file:
//
//	{"time":"2026-01-02T15:04:05.000Z","client":"a","method":"Page.navigate","target":"…","decision":"refused","why":"scheme"}
//
// Nothing is left out: when the disk is slow, or full, clients are read no
// further until their lines are written. Rotate it by copying and truncating.
type Audit struct {
	// static after OpenAudit
	file *os.File
	log  zerolog.Logger
	room int           // lines that may be held
	end  chan struct{} // closed by Close
	done chan struct{} // closed when all is written

	mu      sync.Mutex // guards the rest
	lines   []decided  // to write
	more    *sync.Cond // there are some
	held    int        // those, and the ones of the write under way
	written chan struct{}
	closing bool
}

const (
	auditRoom  = 8192            // lines that may be held
	auditRetry = time.Second     // after a write that failed
	auditClose = 5 * time.Second // for what is left at the end
)

// OpenAudit opens the file, mode 0600, or makes it.
func OpenAudit(path string, log zerolog.Logger) (*Audit, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s may be read by others: chmod 600 it", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	a := &Audit{file: file, log: log, room: auditRoom, end: make(chan struct{}), done: make(chan struct{}), written: make(chan struct{})}
	a.more = sync.NewCond(&a.mu)
	go a.writeLoop()
	return a, nil
}

// auditLine is one decision.
type auditLine struct {
	Time     string `json:"time"`
	Client   string `json:"client,omitempty"`
	Method   string `json:"method"`
	Target   string `json:"target,omitempty"`
	Decision string `json:"decision"`
	Why      string `json:"why,omitempty"`
}

// decided is a decision that has no line yet.
type decided struct {
	at time.Time
	*routing.Decision
}

// put adds a decision, which nobody changes any more, and never waits.
func (a *Audit) put(d *routing.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, decided{time.Now(), d})
	a.held++
	a.more.Signal()
}

// wait holds up whoever makes lines while too many of them are not written, or
// until gone. A nil Audit never does.
func (a *Audit) wait(gone <-chan struct{}) {
	if a == nil {
		return
	}
	for {
		a.mu.Lock()
		if a.held < a.room {
			a.mu.Unlock()
			return
		}
		written := a.written
		a.mu.Unlock()
		select {
		case <-written:
		case <-gone:
			return
		case <-a.end:
			return
		}
	}
}

// writeLoop writes the lines that have come together, until Close.
func (a *Audit) writeLoop() {
	defer close(a.done)
	var taken []decided
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	for {
		a.mu.Lock()
		for len(a.lines) == 0 && !a.closing {
			a.more.Wait()
		}
		if len(a.lines) == 0 {
			a.mu.Unlock()
			return
		}
		a.lines, taken = taken[:0], a.lines
		a.mu.Unlock()
		text.Reset()
		for _, d := range taken {
			at := d.at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
			_ = lines.Encode(auditLine{at, d.Client, d.Method, d.Target, d.Kind, d.Why}) // strings
		}
		if !a.write(text.Bytes()) {
			return
		}
		a.mu.Lock()
		a.held -= len(taken)
		clear(taken)
		close(a.written)
		a.written = make(chan struct{})
		a.mu.Unlock()
	}
}

// write writes all of text, however long that takes; false when Close does not
// let it try again.
func (a *Audit) write(text []byte) bool {
	for told := false; ; {
		n, err := a.file.Write(text)
		if text = text[n:]; err == nil {
			if told {
				a.log.Info().Msg("the audit is written again")
			}
			return true
		}
		select {
		case <-a.end:
			a.log.Error().Err(err).Msg("the end of the audit is not written")
			return false
		case <-time.After(auditRetry):
		}
		if !told {
			told = true
			a.log.Error().Err(err).Msg("the audit cannot be written: clients wait once 8192 lines of it are held; make room on its disk")
		}
	}
}

// Close writes what is left, for 5 s at most, and closes the file. A nil Audit
// has nothing to close.
func (a *Audit) Close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	a.closing = true
	a.mu.Unlock()
	a.more.Signal()
	close(a.end)
	select {
	case <-a.done:
	case <-time.After(auditClose):
	}
	return a.file.Close() // ends a write to a pipe that nobody reads
}
