package wrapper

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Bin is the directory of all wrappers, <home>/bin: a folder for each store,
// and the guard's.
type Bin struct{ Dir string }

// guardNames are the programs that browser-use and browser-harness install:
// none of them may be reached past the wrapper.
var guardNames = []string{Name, "browser-harness", "browser-use-tui", "browseruse", "browser", "bu"}

const guardDir = "_guard"

//go:embed guard.sh
var guardText []byte

// ErrNewer says that the script in place is of a later cdpmux, and was kept.
var ErrNewer = errors.New("written by a newer cdpmux, kept as it is")

// Script is the path of a store's script.
func (b Bin) Script(slug string) string { return filepath.Join(b.Dir, slug, Name) }

// Guard is the path of the guard.
func (b Bin) Guard() string { return filepath.Join(b.Dir, guardDir, Name) }

// Write renders a script and puts it in its place in one step: whoever runs it
// finds the old one or the new one, whole. A newer one stays (ErrNewer), and so
// does a file of somebody else's.
func (b Bin) Write(s Script) error {
	text, err := s.Render()
	if err != nil {
		return err
	}
	path := b.Script(s.Slug)
	switch header, err := readHeader(path); {
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, errForeign):
		return fmt.Errorf("%s was not written by cdpmux: move it away", path)
	case err != nil:
		return err
	case header.Format > Format:
		return fmt.Errorf("%s: %w", path, ErrNewer)
	}
	if err := b.WriteGuard(); err != nil {
		return err
	}
	return replace(path, text, 0o700)
}

// WriteGuard puts the guard in its place, under each of its names.
func (b Bin) WriteGuard() error {
	for _, name := range guardNames {
		path := filepath.Join(b.Dir, guardDir, name)
		if fi, err := os.Lstat(path); err == nil && fi.Mode() == 0o755 {
			if text, err := os.ReadFile(path); err == nil && bytes.Equal(text, guardText) {
				continue
			}
		}
		if err := replace(path, guardText, 0o755); err != nil {
			return fmt.Errorf("guard: %w", err)
		}
	}
	return nil
}

// Remove deletes a store's script, if cdpmux wrote it. It returns fs.ErrNotExist
// when there is none.
func (b Bin) Remove(slug string) error {
	path := b.Script(slug)
	if _, err := readHeader(path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return b.delete(path)
}

// DropOld deletes a store's script if its format is out of date: it may do what
// is wrong by now. It reports whether it did.
func (b Bin) DropOld(slug string) bool {
	header, err := readHeader(b.Script(slug))
	return err == nil && header.Format >= 0 && header.Format < Format && b.delete(b.Script(slug)) == nil
}

func (b Bin) delete(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(path)) // only when nothing else is in it
	return nil
}

// Entry is one store's folder.
type Entry struct {
	Path string // of its script
	Header
	Err error // why there is no header: not readable, or not ours
}

// Foreign reports whether the file is somebody else's.
func (e Entry) Foreign() bool { return errors.Is(e.Err, errForeign) }

// List returns the scripts there are, by slug.
func (b Bin) List() ([]Entry, error) {
	dirs, err := os.ReadDir(b.Dir)
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, dir := range dirs {
		if dir.Name() == guardDir {
			continue
		}
		path := b.Script(dir.Name())
		header, err := readHeader(path)
		if errors.Is(err, fs.ErrNotExist) || !dir.IsDir() {
			continue
		}
		list = append(list, Entry{path, header, err})
	}
	return list, nil
}

// Path returns the PATH for an agent of one store: its wrapper, the guard, and
// what is in path besides wrappers.
func (b Bin) Path(slug, path string) string {
	dirs := []string{filepath.Join(b.Dir, slug), filepath.Join(b.Dir, guardDir)}
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) && !inTree(dir, b.Dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// replace writes a file beside path and moves it there.
func replace(path string, text []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if fi, err := os.Lstat(dir); err != nil || !fi.IsDir() {
		return fmt.Errorf("%s is no directory", dir)
	}
	name, err := writeTemp(dir, text, mode)
	if err == nil {
		err = os.Rename(name, path)
	}
	if err != nil && name != "" {
		_ = os.Remove(name)
	}
	return err
}

// writeTemp returns the name of the file also when it could not be written.
func writeTemp(dir string, text []byte, mode fs.FileMode) (name string, err error) {
	// A child that is forked now would hold the file open for writing until it
	// runs its own program, and Linux runs no file that is open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.CreateTemp(dir, "."+Name+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
}
