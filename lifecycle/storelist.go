package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// firstPort is where allotted ports begin.
const firstPort = 9400

// lockList waits until no other process changes the store list. The lock lies
// on the counter of ports.
func (h *Home) lockList() (*flock.Flock, error) {
	dir, err := h.sub("stores")
	if err != nil {
		return nil, err
	}
	list := flock.New(filepath.Join(dir, "next-port"), flock.SetPermissions(0o600))
	if err := list.Lock(); err != nil {
		return nil, fmt.Errorf("lock the store list: %w", err)
	}
	return list, nil
}

// Stores reads the store list, by slug.
func (h *Home) Stores() ([]*Store, error) {
	dir, err := h.sub("stores")
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var stores []*Store
	for _, file := range files {
		slug, ok := strings.CutSuffix(file.Name(), ".json")
		if !ok {
			continue
		}
		s, err := h.readStore(slug)
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
	}
	return stores, nil
}

// ports maps each port that a store has to the slug of that store.
func (h *Home) ports() (map[int]string, error) {
	stores, err := h.Stores()
	taken := map[int]string{}
	for _, s := range stores {
		taken[s.Port] = s.Slug
	}
	delete(taken, 0)
	return taken, err
}

// overwrite puts text at the start of a file that holds a lock, where a
// rename would lose the lock. The counter only grows, so nothing is left of
// the old text; and it is never empty, as it would be after a truncation.
func overwrite(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// allot gives the store the next port of the counter.
func (s *Store) allot() error {
	list, err := s.home.lockList()
	if err != nil {
		return err
	}
	defer list.Unlock()
	now, err := s.home.readStore(s.Slug)
	if err != nil {
		return err
	}
	if *s = *now; s.Port != 0 {
		return nil // another process was first
	}
	path := list.Path()
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	next := firstPort
	if text := strings.TrimSpace(string(b)); text != "" {
		if next, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	taken, err := s.home.ports()
	if err != nil {
		return err
	}
	for taken[next] != "" {
		next++
	}
	if next > 65535 {
		return errors.New("no port is left; give one with --listen")
	}
	// Counted first: a port that is lost in a crash is better than one given twice.
	if err := overwrite(path, strconv.Itoa(next+1)+"\n"); err != nil {
		return err
	}
	s.Port = next
	return s.save()
}
