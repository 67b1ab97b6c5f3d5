package download

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// prevName is where earlier files are moved to, in a directory for each time.
const prevName = "_prev"

// Started is called when a browser of ours was started, before it can download.
// What its predecessor left in staging is tidied: partial files are removed,
// whole ones moved to the store's directory as by Rescue. Then, with archive,
// all that is in the store's directory is moved to _prev/<UTC stamp>/.
func (s *Store) Started(now time.Time, archive bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Somebody may have cleared the directory while no browser ran.
	err := errors.Join(s.makeStaging(), s.removePartials(), s.rescue(now, func(string) bool { return false }))
	if archive {
		err = errors.Join(err, s.archive(now))
	}
	return err
}

// Rescue moves the whole files in staging that nobody waits for any more to the
// store's directory, under their guid and for no client. known says whether
// somebody still waits for one: Chrome gives a file its last name up to several
// inProgress events before completed.
func (s *Store) Rescue(now time.Time, known func(guid string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rescue(now, known)
}

func (s *Store) removePartials() error {
	staged, err := os.ReadDir(s.Staging())
	for _, e := range staged {
		if !e.IsDir() && !isGUID(e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(s.Staging(), e.Name())))
		}
	}
	return err
}

func (s *Store) rescue(now time.Time, known func(guid string) bool) error {
	staged, err := os.ReadDir(s.Staging())
	for _, e := range staged {
		if !e.Type().IsRegular() || !isGUID(e.Name()) || known(e.Name()) {
			continue
		}
		place, failed := s.settle(now, File{GUID: e.Name(), Name: e.Name()})
		err = errors.Join(err, failed, place.Warning)
	}
	return err
}

func (s *Store) archive(now time.Time) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var to string
	for _, e := range entries {
		if e.Name() == stagingName || strings.EqualFold(e.Name(), prevName) {
			continue
		}
		if to == "" {
			if to, err = s.stampDir(now); err != nil {
				return err
			}
		}
		// The directory is new and nobody else's, so nothing is overwritten.
		err = errors.Join(err, os.Rename(filepath.Join(s.dir, e.Name()), filepath.Join(to, e.Name())))
	}
	return err
}

// stampDir makes a new directory named for the second.
func (s *Store) stampDir(now time.Time) (string, error) {
	prev := filepath.Join(s.dir, prevName)
	if err := os.MkdirAll(prev, 0o700); err != nil {
		return "", err
	}
	for n := 0; ; n++ {
		to := filepath.Join(prev, numbered(now.UTC().Format("20060102T150405Z"), n))
		if err := os.Mkdir(to, 0o700); !errors.Is(err, fs.ErrExist) {
			return to, err
		}
	}
}
