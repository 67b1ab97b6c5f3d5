package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Lock is the right to serve a store. The kernel gives it back when its
// process dies, however that happens.
type Lock struct{ file *flock.Flock }

// LockedError says who serves the store already.
type LockedError struct {
	Slug string
	PID  int // 0: not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("store %s is served by another cdpmux", e.Slug)
	}
	return fmt.Sprintf("store %s is served by another cdpmux, pid %d", e.Slug, e.PID)
}

// Lock takes the right to serve the store slug, or returns a *LockedError.
func (h *Home) Lock(slug string) (*Lock, error) {
	file, err := h.lockFile(slug)
	if err != nil {
		return nil, err
	}
	// Whoever asks for the Holder has the lock for a moment.
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	switch held, err := file.TryLockContext(ctx, 5*time.Millisecond); {
	case err != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("lock store %s: %w", slug, err)
	case !held:
		_ = file.Close()
		return nil, &LockedError{slug, heldBy(file.Path()).PID}
	}
	lock := &Lock{file}
	if err := lock.Announce(Holder{}); err != nil {
		_ = file.Unlock()
		return nil, fmt.Errorf("lock store %s: %w", slug, err)
	}
	return lock, nil
}

// Holder is the process that serves a store, and where it does. Its zero
// members are not known, or not yet.
type Holder struct {
	PID  int    `json:"pid"`
	Addr string `json:"addr,omitempty"` // what to dial: HOST:PORT, or unix:PATH
	Cert string `json:"cert,omitempty"` // file of the certificate that it shows; "" is no TLS
	URL  string `json:"url,omitempty"`  // what clients reach it by: http://…, https://… or unix:PATH
	Auth bool   `json:"auth,omitempty"` // clients need a credential
}

// Announce says what the holder of the lock serves. Its pid is set here.
func (l *Lock) Announce(h Holder) error {
	h.PID = os.Getpid()
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	// Written in place: a rename would put another file under the lock's name.
	return os.WriteFile(l.file.Path(), append(b, '\n'), 0o600)
}

// Holder tells whether a process serves the store, and what it has announced.
func (h *Home) Holder(slug string) (holder Holder, held bool, err error) {
	file, err := h.lockFile(slug)
	if err != nil || !exists(file.Path()) {
		return Holder{}, false, err
	}
	// Shared: it is in the way of no other look.
	free, err := file.TryRLock()
	if err != nil {
		return Holder{}, false, fmt.Errorf("lock of store %s: %w", slug, err)
	}
	if free {
		return Holder{}, false, file.Unlock()
	}
	return heldBy(file.Path()), true, file.Close()
}

func (h *Home) lockFile(slug string) (*flock.Flock, error) {
	dir, err := h.sub("run")
	return flock.New(filepath.Join(dir, slug+".lock"), flock.SetPermissions(0o600)), err
}

// heldBy reads what was announced; nothing, in the moment in which it is written.
func heldBy(path string) (h Holder) {
	b, _ := os.ReadFile(path)
	if json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	return h
}

// Unlock gives the store back. The file stays: removing it would let two
// processes hold locks on two files of one name.
func (l *Lock) Unlock() error {
	_ = os.Truncate(l.file.Path(), 0)
	return l.file.Unlock()
}
