package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Home is the state directory. Everything in it is for its owner only.
type Home struct{ dir string }

// DefaultHome is ~/.cdpmux.
func DefaultHome() (string, error) {
	user, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("state directory: %w; give one with --home", err)
	}
	return filepath.Join(user, ".cdpmux"), nil
}

// OpenHome takes dir as state directory and makes it when it is missing.
func OpenHome(dir string) (*Home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := privateDir(dir); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return &Home{dir}, nil
}

// Dir is the state directory's path, absolute.
func (h *Home) Dir() string { return h.dir }

// Bin makes and returns the directory of the wrappers.
func (h *Home) Bin() (string, error) { return h.sub("bin") }

// Profile makes and returns the directory of a store's own Chrome profile.
func (h *Home) Profile(slug string) (string, error) {
	profiles, err := h.sub("profiles")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(profiles, slug)
	return dir, privateDir(dir)
}

// Downloads makes and returns the directory of a store's finished downloads.
func (h *Home) Downloads(slug string) (string, error) {
	downloads, err := h.sub("downloads")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(downloads, slug)
	return dir, privateDir(dir)
}

// sub makes and returns one directory of the state directory.
func (h *Home) sub(name string) (string, error) {
	dir := filepath.Join(h.dir, name)
	return dir, privateDir(dir)
}

// privateDir makes dir, 0700, or accepts one that nobody else can have
// prepared: our own, no symbolic link, not writable by others.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fi, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case fi.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link; give the directory itself", dir)
	case !fi.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ownedByUs(fi):
		return fmt.Errorf("%s belongs to another user", dir)
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s can be written by others; give a directory of your own", dir)
	}
	return nil
}

// WriteFile replaces a file in one step, 0600: a reader sees the old content
// or the new, also after a crash.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
