package lease

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/lifecycle"
)

// reopen is the proxy that comes after k's, before the same world or another.
func (k *kit) reopen(w *world) *kit {
	k.t.Helper()
	if err := k.Registry.Close(); err != nil {
		k.t.Fatal(err)
	}
	return open(k.t, w, func(c *Config) { c.Journal, c.Now = k.cfg.Journal, k.cfg.Now })
}

// abandon closes a registry whose leases go on in the next.
func abandon(t *testing.T, change func(*Config)) (*kit, *world) {
	t.Helper()
	w := newWorld()
	w.capacity = 9
	k := &kit{t: t, world: w, now: time.Date(2026, 11, 30, 22, 51, 17, 0, time.UTC)}
	k.cfg = Config{Store: "us-1", Journal: t.TempDir() + "/us-1.sessions", World: w.world(), Now: func() time.Time { return k.now }, Retry: time.Second}
	if change != nil {
		change(&k.cfg)
	}
	var err error
	if k.Registry, err = Open(k.cfg); err != nil {
		t.Fatal(err)
	}
	return k, w
}

func TestJournalOutlivesTheProxy(t *testing.T) {
	k, w := abandon(t, nil)
	made := k.must(request(1))
	k.must(request(2))
	k.must(request(3))
	if _, err := k.stop(closing(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := k.stop(closing(4)); err != nil {
		t.Fatal(err)
	}
	w.set(func() { w.release = func(context.Context) error { return errStuck } })
	_, err := k.stop(closing(3))
	wantKind(t, "close", err, lifecycle.SessionReleaseFailed)

	w.set(func() { w.places = map[string]State{} })
	next := k.reopen(w)
	if c := next.Counts(); c.Sessions.Ready != 1 || c.Sessions.CleanupPending != 1 || c.Sessions.Tombstones != 2 || c.Leases.Active != 2 || c.Degraded {
		t.Errorf("after the restart: %+v", c)
	}
	if w.places["client-1"] != Ready || w.places["client-3"] != ReleaseFailed || len(w.places) != 2 {
		t.Errorf("places: %v", w.places)
	}
	again, replayed, err := next.create(request(1))
	if err != nil || !replayed || !again.Created.Equal(made.Created) || string(again.digest) != string(made.digest) || again.Incarnation != made.Incarnation {
		t.Errorf("the session of before: %+v, %v, %v; it was %+v", again, replayed, err, made)
	}
	for _, n := range []int{2, 4} {
		_, _, err := next.create(request(n))
		wantKind(t, "a late create", err, lifecycle.SessionClosed)
	}
	w.set(func() { w.release = nil })
	next.Reap(next.cfg.Now()) // what was left has been swept
	next.flights.Wait()
	if c := next.Counts(); c.Sessions.CleanupPending != 0 || c.Sessions.Tombstones != 3 {
		t.Errorf("after the sweep: %+v", c)
	}
}

func TestJournalIsCompactedAtStart(t *testing.T) {
	k, w := abandon(t, nil)
	for n := range 20 {
		k.must(request(n))
		if _, err := k.stop(closing(n)); err != nil {
			t.Fatal(err)
		}
		k.now = k.now.Add(4 * time.Minute)
	}
	if n := strings.Count(string(readFile(t, k.cfg.Journal)), "\n"); n != 40 {
		t.Errorf("%d lines before", n)
	}
	next := k.reopen(w)
	if n := strings.Count(string(readFile(t, next.cfg.Journal)), "\n"); n != 14 { // of the last hour
		t.Errorf("%d lines after", n)
	}
}

func TestTornLastLineIsTolerated(t *testing.T) {
	k, w := abandon(t, nil)
	k.must(request(1))
	whole := readFile(t, k.cfg.Journal)
	k.must(request(2))
	text := readFile(t, k.cfg.Journal)
	if err := k.Registry.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut < len(text); cut++ {
		path := t.TempDir() + "/torn"
		if err := os.WriteFile(path, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(path, time.Time{}, k.cfg.Log)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if list := j.entries(); len(list) != 1 || list[0].ID != request(1).ID {
			t.Fatalf("cut at %d: %+v", cut, list)
		}
		if err := j.append(entry{ID: request(3).ID, State: Closed, Digest: []byte("x"), Closed: time.Now()}); err != nil {
			t.Fatal(err)
		}
		j.close()
		if n := strings.Count(string(readFile(t, path)), "\n"); n != 2 {
			t.Fatalf("cut at %d: %d lines after the next one", cut, n)
		}
	}
	_ = w
}

// Without the disk nothing is promised, and nothing is kept that was not.
func TestUnwritableJournal(t *testing.T) {
	w := newWorld()
	k := open(t, w, nil)
	good := k.journal.file
	broken := noDisk{good}
	k.journal.file = broken
	_, _, err := k.create(request(1))
	wantKind(t, "create", err, lifecycle.StateUnwritable)
	if text := err.Error(); strings.Contains(text, "/home") || !strings.Contains(text, "no space left") {
		t.Errorf("create: %s", text)
	}
	k.flights.Wait()
	if _, releases := w.numbers(); releases != 1 {
		t.Errorf("%d releases of what was not promised", releases)
	}
	_, err = k.stop(closing(2))
	wantKind(t, "close of what never was", err, lifecycle.StateUnwritable)
	k.journal.file = good
	k.must(request(2))
	k.journal.file = broken
	_, err = k.stop(closing(2))
	wantKind(t, "close", err, lifecycle.StateUnwritable)
	if c := k.Counts(); c.Leases.Active != 1 {
		t.Errorf("%+v", c)
	}
	k.journal.file = good
	w.set(func() { w.browsers++ }) // this world counts releases, and one more follows
	if _, err := k.stop(closing(2)); err != nil {
		t.Error(err)
	}
	k.must(request(1))
}

// noDisk takes nothing.
type noDisk struct{ disk }

func (noDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/home/shop", Err: syscall.ENOSPC}
}

// fullDisk takes half of what it is given.
type fullDisk struct{ disk }

func (d fullDisk) Write(p []byte) (int, error) {
	n, _ := d.disk.Write(p[:len(p)/2])
	return n, syscall.ENOSPC
}

// Half a line that the disk took does not spoil the next.
func TestFullDisk(t *testing.T) {
	k, w := abandon(t, nil)
	k.must(request(1))
	good := k.journal.file
	k.journal.file = fullDisk{good}
	_, _, err := k.create(request(2))
	wantKind(t, "create", err, lifecycle.StateUnwritable)
	k.flights.Wait()
	k.journal.file = good
	k.must(request(3))
	next := k.reopen(w)
	if c := next.Counts(); c.Sessions.Ready != 2 || strings.Contains(next.log.String(), "makes no sense") {
		t.Errorf("%+v; log: %s", c, next.log)
	}
}

// deadDisk takes half of what it is given, and gives it back no more.
type deadDisk struct{ fullDisk }

func (deadDisk) Truncate(int64) error { return syscall.EIO }

// What a disk cannot take back, or a file that lost its name, does not spoil
// what follows: the journal is written anew.
func TestTornJournalIsWrittenAnew(t *testing.T) {
	k, w := abandon(t, nil)
	k.must(request(1))
	k.journal.file = deadDisk{fullDisk{k.journal.file}}
	_, _, err := k.create(request(2))
	wantKind(t, "create", err, lifecycle.StateUnwritable)
	k.flights.Wait()
	k.must(request(3))

	// A compaction that comes to its end half-way: the new file has the name, the
	// old one is still open.
	k.journal.mu.Lock()
	if err := lifecycle.WriteFile(k.cfg.Journal, readFile(t, k.cfg.Journal)); err != nil {
		t.Fatal(err)
	}
	k.journal.torn = true
	k.journal.mu.Unlock()
	k.must(request(4))
	next := k.reopen(w)
	if c := next.Counts(); c.Sessions.Ready != 3 || strings.Contains(next.log.String(), "makes no sense") {
		t.Errorf("%+v; log: %s", c, next.log)
	}
}
