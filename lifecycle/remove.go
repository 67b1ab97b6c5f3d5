package lifecycle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Remove takes a store off the list, with its state; its allotted port is not
// given again. Profile, downloads and log stay, unless purge is set. Only the
// holder of the store's Lock may call it, when its browser is gone. What a
// crash cuts short is finished by the next call.
func (h *Home) Remove(slug string, purge bool) error {
	state, err := filepath.Glob(filepath.Join(h.dir, "state", slug+".*")) // no slug has a dot
	if err != nil {
		return err
	}
	gone := state
	for _, kind := range []string{".admin", ".token", ".up"} {
		gone = append(gone, filepath.Join(h.dir, "run", slug+kind))
	}
	if purge {
		for _, name := range []string{"profiles/" + slug, "downloads/" + slug, "log/" + slug + ".log", "log/" + slug + ".log.1"} {
			gone = append(gone, filepath.Join(h.dir, filepath.FromSlash(name)))
		}
	}
	for _, path := range gone {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	list, err := h.lockList()
	if err != nil {
		return err
	}
	defer list.Unlock()
	err = os.Remove(filepath.Join(h.dir, "stores", slug+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
