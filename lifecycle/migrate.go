package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cdpmux/lifecycle/proc"
)

// Move is the renaming of one store: its profile, its downloads, its record.
type Move struct {
	From, To string // slugs
	ID       string // "" when the store is not on the list
	Err      error  // why it was not, or would not be, renamed
}

// Migrate finds the stores whose slug was made by other rules than those of
// slug, and renames what is theirs when apply is set. A store that is served,
// or would come upon another's files, is left as it is. What a crash cut short
// is finished by the next call.
func (h *Home) Migrate(slug func(name, id string) (string, error), apply bool) ([]Move, error) {
	ids, err := h.storeNames()
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range ids {
		names = append(names, name)
	}
	slices.Sort(names)
	var moves []Move
	targets := map[string]string{}
	for _, name := range names {
		m := Move{From: name, ID: ids[name]}
		if m.To, m.Err = slug(name, m.ID); m.Err == nil && m.To == name {
			continue
		}
		if other := targets[m.To]; m.Err == nil && other != "" {
			m.Err = fmt.Errorf("%s becomes %s, too", other, m.To)
		}
		if m.Err == nil {
			targets[m.To] = name
			m.Err = h.move(m, apply)
		}
		moves = append(moves, m)
	}
	return moves, nil
}

// storeNames are the names under which stores have files, with their ids.
func (h *Home) storeNames() (map[string]string, error) {
	names := map[string]string{}
	for _, folder := range []string{"profiles", "downloads", "stores"} {
		files, err := os.ReadDir(filepath.Join(h.dir, folder))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, file := range files {
			name, record := strings.CutSuffix(file.Name(), ".json")
			if record != (folder == "stores") || file.IsDir() == record || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
				continue
			}
			if !record {
				names[name] += ""
				continue
			}
			s, err := h.oldRecord(name)
			if err != nil {
				return nil, err
			}
			names[name] = s.ID
		}
	}
	return names, nil
}

// oldRecord reads a record that readStore may not accept.
func (h *Home) oldRecord(name string) (*Store, error) {
	path := filepath.Join(h.dir, "stores", name+".json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Store{home: h}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (h *Home) move(m Move, apply bool) error {
	for _, slug := range []string{m.From, m.To} {
		lock, err := h.Lock(slug)
		if err != nil {
			return err
		}
		defer lock.Unlock()
	}
	var renames [][2]string
	for _, folder := range []string{"profiles", "downloads"} {
		from, to := filepath.Join(h.dir, folder, m.From), filepath.Join(h.dir, folder, m.To)
		switch {
		case !exists(from):
			continue
		case exists(to):
			return fmt.Errorf("%s is there already", to)
		}
		renames = append(renames, [2]string{from, to})
		if folder != "profiles" {
			continue
		}
		users, err := proc.UsersOf(from)
		if err != nil && !exists(filepath.Join(from, Singletons[0])) {
			err = nil // nobody can be asked, and nobody left a lock
		}
		if err != nil || len(users) > 0 {
			return fmt.Errorf("%s is in use by a browser: close it first", from)
		}
	}
	record := filepath.Join(h.dir, "stores", m.From+".json")
	if exists(record) && exists(filepath.Join(h.dir, "stores", m.To+".json")) {
		return fmt.Errorf("there is a store %s already", m.To)
	}
	if !apply {
		return nil
	}
	for _, each := range renames {
		if err := os.Rename(each[0], each[1]); err != nil {
			return err
		}
	}
	if !exists(record) {
		return nil
	}
	return h.moveRecord(m, record)
}

func (h *Home) moveRecord(m Move, record string) error {
	list, err := h.lockList()
	if err != nil {
		return err
	}
	defer list.Unlock()
	s, err := h.oldRecord(m.From)
	if err != nil {
		return err
	}
	if s.Slug = m.To; s.ID == "" {
		s.ID = randomHex()
	}
	if err := s.save(); err != nil {
		return err
	}
	return os.Remove(record)
}

// exists takes what cannot be looked at for something that is there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
