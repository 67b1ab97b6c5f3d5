package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
	dir, err := h.sub("run")
	if err != nil {
		return nil, err
	}
	file := flock.New(filepath.Join(dir, slug+".lock"), flock.SetPermissions(0o600))
	switch held, err := file.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock store %s: %w", slug, err)
	case !held:
		_ = file.Close()
		b, _ := os.ReadFile(file.Path())
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
		return nil, &LockedError{slug, pid}
	}
	// Written in place: a rename would put another file under the lock's name.
	if err := os.WriteFile(file.Path(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		_ = file.Unlock()
		return nil, fmt.Errorf("lock store %s: %w", slug, err)
	}
	return &Lock{file}, nil
}

// Unlock gives the store back. The file stays: removing it would let two
// processes hold locks on two files of one name.
func (l *Lock) Unlock() error {
	_ = os.Truncate(l.file.Path(), 0)
	return l.file.Unlock()
}
