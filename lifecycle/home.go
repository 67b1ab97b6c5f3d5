package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Home is the state directory. Everything in it is for its owner only.
type Home struct {
	dir  string
	look bool // nothing is made
}

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
	return &Home{dir: dir}, nil
}

// LookHome takes dir as state directory to look into: what is missing stays so,
// and is an fs.ErrNotExist. The Home is returned with any error, too: its Dir
// is where it was sought.
func LookHome(dir string) (*Home, error) {
	dir, err := filepath.Abs(dir)
	h := &Home{dir, true}
	if err == nil {
		err = checkPrivate(dir)
	}
	return h, err
}

// Dir is the state directory's path, absolute.
func (h *Home) Dir() string { return h.dir }

// Check looks at all that OpenHome and its directories will be held to, and at
// the tokens. What is missing is no fault.
func (h *Home) Check() error {
	faults := []error{checkPrivate(h.dir)}
	for _, name := range []string{"bin", "downloads", "log", "profiles", "run", "state", "stores", "tmp"} {
		if err := checkPrivate(filepath.Join(h.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, err)
		}
	}
	files, _ := os.ReadDir(filepath.Join(h.dir, "run"))
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); ext != ".admin" && ext != ".token" {
			continue
		}
		if fi, err := f.Info(); err == nil && fi.Mode().Perm()&0o077 != 0 {
			faults = append(faults, fmt.Errorf("%s can be read by others; chmod 600 it", filepath.Join(h.dir, "run", f.Name())))
		}
	}
	return errors.Join(faults...)
}

// Bin makes and returns the directory of the wrappers.
func (h *Home) Bin() (string, error) { return h.sub("bin") }

// Profile makes and returns the directory of a store's own Chrome profile.
func (h *Home) Profile(slug string) (string, error) {
	profiles, err := h.sub("profiles")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(profiles, slug)
	return dir, h.private(dir)
}

// Downloads makes and returns the directory of a store's finished downloads.
func (h *Home) Downloads(slug string) (string, error) {
	downloads, err := h.sub("downloads")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(downloads, slug)
	return dir, h.private(dir)
}

// sub makes and returns one directory of the state directory.
func (h *Home) sub(name string) (string, error) {
	dir := filepath.Join(h.dir, name)
	return dir, h.private(dir)
}

func (h *Home) private(dir string) error {
	if h.look {
		return checkPrivate(dir)
	}
	return privateDir(dir)
}

// privateDir makes dir, 0700, or accepts one that nobody else can have
// prepared: our own, no symbolic link, not writable by others.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return checkPrivate(dir)
}

func checkPrivate(dir string) error {
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
