package lifecycle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
		return nil, &LockedError{slug, pidIn(file.Path())}
	}
	// Written in place: a rename would put another file under the lock's name.
	if err := os.WriteFile(file.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		_ = file.Unlock()
		return nil, fmt.Errorf("lock store %s: %w", slug, err)
	}
	return &Lock{file}, nil
}

// Holder tells whether a process serves the store, and its pid: 0 when that
// is not known.
func (h *Home) Holder(slug string) (pid int, held bool, err error) {
	file, err := h.lockFile(slug)
	if err != nil || !exists(file.Path()) {
		return 0, false, err
	}
	// Shared: it is in the way of no other look.
	free, err := file.TryRLock()
	if err != nil {
		return 0, false, fmt.Errorf("lock of store %s: %w", slug, err)
	}
	if free {
		return 0, false, file.Unlock()
	}
	return pidIn(file.Path()), true, file.Close()
}

func (h *Home) lockFile(slug string) (*flock.Flock, error) {
	dir, err := h.sub("run")
	return flock.New(filepath.Join(dir, slug+".lock"), flock.SetPermissions(0o600)), err
}

func pidIn(path string) int {
	b, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// Unlock gives the store back. The file stays: removing it would let two
// processes hold locks on two files of one name.
func (l *Lock) Unlock() error {
	_ = os.Truncate(l.file.Path(), 0)
	return l.file.Unlock()
}
