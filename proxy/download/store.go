// Package download owns the files that a store's browser downloads. Chrome
// writes all of them into one staging directory, named by their guid; Settle
// moves a whole one to the store's directory under a readable name, links it
// into the directory that its client asked for, and writes down that it came.
//
//	<dir>/.staging/<guid>       Chrome's; <guid>.crdownload while it grows
//	<dir>/report (1).csv        where files end up
//	<dir>/<client>/report.csv   the same, with PerClient
//	<dir>/.arrived.jsonl        what arrived, an Arrival a line
//	<dir>/_prev/<UTC stamp>/    all of that from before the last browser start
//
// Nothing is ever overwritten: a file gets its name by link(2) or O_EXCL.
package download

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

const stagingName = ".staging"

// Config says where a store keeps its downloads.
type Config struct {
	Dir       string   // the store's download directory; exists, 0700
	PerClient bool     // files go to Dir/<client id>/
	Roots     []string // absolute directories below which clients may ask for files; none: Dir and the system's temporary directory
}

// Store is one store's download directory. Its methods may be called from
// several goroutines.
type Store struct {
	// static after Open
	dir       string
	perClient bool
	roots     []string

	mu      sync.RWMutex // read: files are settled one by one; write: the directories are tidied
	journal sync.Mutex   // held inside mu
}

// File is a whole file in staging.
type File struct {
	GUID     string
	Name     string // as the page or the server proposed it
	URL      string
	Client   string // id; "": nobody's
	Behavior string // what the client set: "allow", "allowAndName", or "" for nothing
	Dir      string // where the client wants it; "": nowhere
}

// Place says where a file is.
type Place struct {
	Path    string // in the store's directory
	Link    string // besides, in the client's directory and by its naming rule; "": nowhere
	Size    int64  // bytes
	Kept    error  // why it is not where the client asked for; nil: it is, or the client did not ask
	Warning error  // what else went wrong, the file being where it should: it may not be in the journal
}

// Open prepares a store's directory and checks the roots.
func Open(cfg Config) (*Store, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, perClient: cfg.PerClient, roots: cfg.Roots}
	if err := s.makeStaging(); err != nil {
		return nil, fmt.Errorf("download directory: %w", err)
	}
	if len(s.roots) == 0 {
		s.roots = []string{dir, os.TempDir()}
		return s, nil
	}
	for _, root := range s.roots {
		if !filepath.IsAbs(root) {
			return nil, fmt.Errorf("download root %q is no absolute path", root)
		}
		fi, err := os.Stat(root)
		if err != nil {
			return nil, fmt.Errorf("download root: %w", err)
		}
		if !fi.IsDir() {
			return nil, fmt.Errorf("download root %s is not a directory", root)
		}
	}
	return s, nil
}

// Staging is the directory for Chrome: it lies on the file system of the
// store's directory, so that a file is moved whatever its size.
func (s *Store) Staging() string { return filepath.Join(s.dir, stagingName) }

func (s *Store) makeStaging() error { return os.MkdirAll(s.Staging(), 0o700) }

// Settle moves a whole file from staging to its place. After an error it is
// still in staging; a later Rescue or Started takes it from there.
func (s *Store) Settle(now time.Time, f File) (Place, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.settle(now, f)
}

// settle is Settle with mu held.
func (s *Store) settle(now time.Time, f File) (Place, error) {
	src, err := s.staged(f.GUID)
	if err != nil {
		return Place{}, err
	}
	fi, err := os.Lstat(src)
	if err != nil {
		return Place{}, fmt.Errorf("download: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return Place{}, fmt.Errorf("download: %s is no regular file", src)
	}
	folder := ""
	if s.perClient && f.Client != "" {
		folder = sanitise(f.Client)
		if strings.EqualFold(folder, prevName) {
			folder = numbered(folder, 1)
		}
	}
	dir, err := s.openBelow(s.dir, folder)
	if err != nil {
		return Place{}, fmt.Errorf("download: %w", err)
	}
	defer dir.Close()
	name := sanitise(f.Name)
	free, err := putUnique(src, dir, name)
	if err != nil {
		return Place{}, fmt.Errorf("download to %s: %w", filepath.Join(s.dir, folder, free), err)
	}
	rel := filepath.Join(folder, free)
	place := Place{Path: filepath.Join(s.dir, rel), Size: fi.Size()}
	if f.Dir != "" && f.Behavior != "" {
		place.Link, place.Kept = s.link(src, f, name, place.Path)
	}
	place.Warning = errors.Join(os.Remove(src), s.record(Arrival{now.UTC(), f.Client, f.GUID, rel, publicURL(f.URL), fi.Size()}))
	return place, nil
}

// link puts the file at src where its client asked for it. path is where it is
// already.
func (s *Store) link(src string, f File, name, path string) (string, error) {
	home, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	dir, err := s.clientDir(f.Dir)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	switch {
	case f.Behavior == "allowAndName":
		name, err = f.GUID, put(src, dir, f.GUID)
	case isDir(dir, home):
		name = filepath.Base(path)
	default:
		name, err = putUnique(src, dir, name)
	}
	path = filepath.Join(f.Dir, name)
	if err != nil {
		return "", fmt.Errorf("%q: %w", path, err)
	}
	return path, nil
}

// Discard removes a file, whole or partial, from staging. One that is not
// there is no error.
func (s *Store) Discard(guid string) error {
	path, err := s.staged(guid)
	if err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, file := range []string{path, path + ".crdownload"} {
		if e := os.Remove(file); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

var guidForm = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

func isGUID(name string) bool { return guidForm.MatchString(name) }

// staged is the path of a whole file in staging.
func (s *Store) staged(guid string) (string, error) {
	if !isGUID(guid) { // it comes from a browser, which may be anybody's
		return "", fmt.Errorf("download: %q is no guid", guid)
	}
	return filepath.Join(s.Staging(), guid), nil
}
