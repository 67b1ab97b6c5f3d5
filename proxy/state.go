package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/routing"
)

// stateFile keeps whose the tabs are for the proxy that comes after this one:
//
//	{"version":1,"tabs":[{"id":…,"client":…,"used":…},…]}
//
// It is written behind: what it says may be a second old.
type stateFile struct {
	path string
	log  zerolog.Logger

	timer *time.Timer
	armed bool // guarded by Server.mu

	// mu is for one writer at a time. It comes before Server.mu, and there is
	// I/O under it.
	mu      sync.Mutex
	written []byte // what the file holds
	failing bool   // the last write was in vain
}

const stateVersion = 1

type stateBody struct {
	Version int                `json:"version"`
	Tabs    []routing.TabState `json:"tabs"`
}

// restore takes over what the last proxy left.
func (s *Server) restore() {
	s.state = &stateFile{path: s.cfg.StateFile, log: s.log, timer: stopped(s.save)}
	tabs := s.state.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.router.Restore(time.Now(), tabs, s.cfg.Grace)
	s.apply(nil)
}

// adopt connects to the browser when tabs of before may be there, so that the
// tabs of clients that do not come back are closed in time.
func (s *Server) adopt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.router.Tabs()); n > 0 {
		s.log.Info().Int("tabs", n).Msg("looking for the tabs of before")
		s.wake()
	}
}

// saveSoon has the file written. The lock is held.
func (s *Server) saveSoon() {
	if f := s.state; f != nil && !f.armed && !s.closing {
		f.armed = true
		f.timer.Reset(s.limits.save)
	}
}

func (s *Server) save() {
	f := s.state
	f.mu.Lock()
	defer f.mu.Unlock()
	s.mu.Lock()
	f.armed = false
	tabs, closing := s.router.Tabs(), s.closing
	s.mu.Unlock()
	if !closing {
		f.put(tabs)
	}
}

// write puts the last word into the file.
func (f *stateFile) write(tabs []routing.TabState) {
	if f == nil {
		return
	}
	f.timer.Stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(tabs)
}

// put replaces the file when there is something new. The file's lock is held.
func (f *stateFile) put(tabs []routing.TabState) {
	for i := range tabs {
		tabs[i].Used = uint64(i + 1) // only the order tells, and it changes less often
	}
	var text []byte
	if len(tabs) > 0 {
		text, _ = json.Marshal(stateBody{stateVersion, tabs}) // strings, numbers and times
	}
	if bytes.Equal(text, f.written) {
		return
	}
	err := replaceFile(f.path, text)
	if err == nil {
		f.written = text
	} else if !f.failing {
		f.log.Error().Err(err).Msg("tabs are not kept: a proxy that comes after this one will not know whose they are")
	}
	f.failing = err != nil
}

// replaceFile writes a file in one step, 0600; an empty one is removed.
func replaceFile(path string, text []byte) error {
	if len(text) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	next := path + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// read returns what the file says. One that makes no sense is set aside.
func (f *stateFile) read() []routing.TabState {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var tabs []routing.TabState
	if err == nil {
		tabs, err = parseState(text)
	}
	if err != nil {
		aside := f.path + ".broken-" + time.Now().UTC().Format("20060102T150405Z")
		f.log.Error().Err(err).AnErr("rename", os.Rename(f.path, aside)).
			Msgf("tabs of before are not known: what was kept of them is in %s now", filepath.Base(aside))
		return nil
	}
	f.written = text
	return tabs
}

func parseState(text []byte) ([]routing.TabState, error) {
	var body stateBody
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	if body.Version != stateVersion {
		return nil, fmt.Errorf("version %d, want %d", body.Version, stateVersion)
	}
	for _, t := range body.Tabs {
		if t.ID == "" || t.Client != "" && !validID(t.Client) {
			return nil, fmt.Errorf("tab %q of client %q", t.ID, t.Client)
		}
	}
	return body.Tabs, nil
}
