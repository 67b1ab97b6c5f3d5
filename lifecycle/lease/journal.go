package lease

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/lifecycle"
)

// journal keeps the leases for the proxy that comes after this one: a JSON
// record a line, the last one of an id counts. What append was told is on the
// disk when it returns. The holder of the store's lock is its only writer.
type journal struct {
	path string
	log  zerolog.Logger

	mu     sync.Mutex // there is I/O under it
	file   disk
	size   int64            // up to the end of the last whole line
	torn   bool             // what follows in file would be lost: it has to be written anew
	shrunk int64            // the size after the last compaction
	last   map[string]entry // what the file says
}

// disk is what the journal needs of an *os.File.
type disk interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

// entry is one line.
type entry struct {
	ID          string    `json:"id"`
	State       State     `json:"state"` // Ready, ReleaseFailed, Closed or gone
	Digest      []byte    `json:"digest,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Client      *Client   `json:"client,omitempty"`
	Created     time.Time `json:"created,omitzero"`
	Closed      time.Time `json:"closed,omitzero"`
	Reason      string    `json:"reason,omitempty"`
	Attempts    int       `json:"attempts,omitempty"`
	Late        bool      `json:"late,omitempty"`
	Unwanted    bool      `json:"unwanted,omitempty"`
	Receipt     *Receipt  `json:"receipt,omitempty"`
}

// gone is the state of an id that is free again.
const gone State = "gone"

// entry is what is worth keeping of a record, which is in that state.
func (rec *record) entry(state State) entry {
	e := entry{ID: rec.id, State: state, Digest: rec.digest, Created: rec.created, Closed: rec.closedAt, Reason: rec.reason}
	if state != Closed {
		client, receipt := rec.client, rec.receipt
		e.Fingerprint, e.Client, e.Receipt = rec.fingerprint, &client, &receipt
		e.Attempts, e.Late, e.Unwanted = rec.attempts, rec.late, rec.unwanted
	}
	return e
}

// record is the lease of a line.
func (e entry) record() *record {
	rec := &record{id: e.ID, digest: e.Digest, state: e.State, created: e.Created, closedAt: e.Closed, reason: e.Reason}
	if e.State == Closed {
		rec.unwanted = true
		return rec
	}
	rec.granted = true
	rec.fingerprint, rec.client, rec.receipt = e.Fingerprint, *e.Client, *e.Receipt
	rec.attempts, rec.late, rec.unwanted = e.Attempts, e.Late, e.Unwanted
	return rec
}

func (e entry) whole() bool {
	switch e.State {
	case Ready, ReleaseFailed:
		return validID(e.ID) && len(e.Digest) > 0 && e.Client != nil && e.Receipt != nil
	case Closed:
		return validID(e.ID) && len(e.Digest) > 0 && !e.Closed.IsZero()
	}
	return e.State == gone
}

// openJournal reads the file, and writes it anew without what does not count
// any more: lines that others followed, and tombstones of before since.
func openJournal(path string, since time.Time, log zerolog.Logger) (*journal, error) {
	j := &journal{path: path, log: log, last: map[string]entry{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	j.read(text)
	if err := j.compact(since); err != nil {
		return nil, err
	}
	return j, nil
}

// read takes in what the file says. What is after the last end of a line was
// never answered for: the process died while it wrote.
func (j *journal) read(text []byte) {
	end := bytes.LastIndexByte(text, '\n') + 1
	if end < len(text) {
		j.log.Warn().Int("bytes", len(text)-end).Msg("journal of sessions: its last line is torn; it is left out")
	}
	for i, line := range slices.Collect(bytes.Lines(text[:end])) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || !e.whole() {
			j.log.Error().Int("line", i+1).Msg("journal of sessions: a line makes no sense; it is left out")
			continue
		}
		j.take(e)
	}
}

func (j *journal) take(e entry) {
	if e.State == gone {
		delete(j.last, e.ID)
		return
	}
	j.last[e.ID] = e
}

// entries lists what counts, oldest first.
func (j *journal) entries() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]entry, 0, len(j.last))
	for _, e := range j.last {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b entry) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// append writes an entry down.
func (j *journal) append(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.torn {
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	_, err = j.file.Write(line)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil { // half a line must not stand before the next
		uncut := j.file.Truncate(j.size)
		j.torn = uncut != nil
		return errors.Join(err, uncut)
	}
	j.size += int64(len(line))
	j.take(e)
	return nil
}

// drop writes down that an id is free again, if anything is known of it.
func (j *journal) drop(id string) error {
	j.mu.Lock()
	_, known := j.last[id]
	j.mu.Unlock()
	if !known {
		return nil
	}
	return j.append(entry{ID: id, State: gone})
}

// compactFrom is the size below which a file is left as it is.
const compactFrom = 4 << 20

// tidy writes a file anew that has grown to several times of what counts.
func (j *journal) tidy(since time.Time) error {
	j.mu.Lock()
	due := j.size > compactFrom && j.size > 4*j.shrunk
	j.mu.Unlock()
	if !due {
		return nil
	}
	return j.compact(since)
}

func (j *journal) compact(since time.Time) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.last, func(_ string, e entry) bool { return e.State == Closed && !e.Closed.After(since) })
	return j.rewrite()
}

// rewrite writes what counts into another file, which takes the place of the
// one before. mu is held.
func (j *journal) rewrite() error {
	var text bytes.Buffer
	for _, e := range j.last {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text.Write(line)
		text.WriteByte('\n')
	}
	if err := lifecycle.WriteFile(j.path, text.Bytes()); err != nil {
		return err
	}
	j.torn = true // file may have no name any more
	if err := syncDir(filepath.Dir(j.path)); err != nil {
		return err
	}
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.torn, j.size, j.shrunk = file, false, int64(text.Len()), int64(text.Len())
	return nil
}

// syncDir has a rename survive a power cut, where directories can be synced.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
