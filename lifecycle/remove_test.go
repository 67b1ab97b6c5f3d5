package lifecycle

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What stays of a removed store is what people made with it; of another store
// nothing goes.
func TestRemove(t *testing.T) {
	h := openHome(t)
	for _, slug := range []string{"a", "a-2"} {
		s, err := h.OpenStore(slug, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Addr(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.MakeAdminToken(slug); err != nil {
			t.Fatal(err)
		}
		tabs, err := h.TabsFile(slug)
		if err != nil {
			t.Fatal(err)
		}
		breaker, err := h.BreakerFile(slug)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{tabs, breaker} {
			if err := WriteFile(path, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []func(string) (string, error){h.Profile, h.Downloads} {
			if _, err := dir(slug); err != nil {
				t.Fatal(err)
			}
		}
		log, err := h.OpenLog(slug)
		if err != nil {
			t.Fatal(err)
		}
		log.Close()
	}
	other := filesOf(t, h, "a-2")

	if err := h.Remove("a", false); err != nil {
		t.Fatal(err)
	}
	if got, want := filesOf(t, h, "a"), []string{"downloads/a", "log/a.log", "profiles/a"}; !slices.Equal(got, want) {
		t.Errorf("after remove: %v, want %v", got, want)
	}
	for range 2 { // once more after a crash is no error
		if err := h.Remove("a", true); err != nil {
			t.Fatal(err)
		}
	}
	if got := filesOf(t, h, "a"); len(got) != 0 {
		t.Errorf("after a purge: %v, want nothing", got)
	}
	if got := filesOf(t, h, "a-2"); !slices.Equal(got, other) {
		t.Errorf("files of the other store: %v, want %v", got, other)
	}
	s, err := h.OpenStore("a", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Addr(); err != nil || s.Port != firstPort+2 {
		t.Errorf("port of a new store of that name: %d, want one that was never given: %d; %v", s.Port, firstPort+2, err)
	}
}

// filesOf lists what is named after a store.
func filesOf(t *testing.T, h *Home, slug string) (found []string) {
	t.Helper()
	for _, pattern := range []string{"*/" + slug, "*/" + slug + ".*"} {
		paths, err := filepath.Glob(filepath.Join(h.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, err := filepath.Rel(h.dir, path)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func TestDisabled(t *testing.T) {
	h := openHome(t)
	if off, err := h.Disabled("a"); off || err != nil {
		t.Errorf("a store that is not on the list: %v, %v", off, err)
	}
	if _, err := h.Store("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store that is not on the list: %v, want ErrNotExist", err)
	}
	s, err := h.OpenStore("a", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if err := s.Update(func(s *Store) { s.Disabled = want }); err != nil {
			t.Fatal(err)
		}
		if off, err := h.Disabled("a"); off != want || err != nil {
			t.Errorf("disabled: %v, want %v; %v", off, want, err)
		}
	}
}

// A log that has grown large is put aside, once.
func TestLogRotates(t *testing.T) {
	h := openHome(t)
	for _, text := range []string{"old", "large", "new"} {
		log, err := h.OpenLog("a")
		if err != nil {
			t.Fatal(err)
		}
		if text == "large" {
			text = string(bytes.Repeat([]byte("x"), maxLog))
		}
		if _, err := log.WriteString(text); err != nil {
			t.Fatal(err)
		}
		log.Close()
	}
	dir := filepath.Join(h.dir, "log")
	if now, err := os.ReadFile(filepath.Join(dir, "a.log")); err != nil || string(now) != "new" {
		t.Errorf("log: %d bytes, want what was written last; %v", len(now), err)
	}
	if fi, err := os.Stat(filepath.Join(dir, "a.log.1")); err != nil || fi.Size() != maxLog+3 {
		t.Errorf("log of before: %v, %v", fi, err)
	}
}
