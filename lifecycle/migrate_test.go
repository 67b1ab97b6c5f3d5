package lifecycle

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// spaced is a rule for slugs: no capitals, no spaces.
func spaced(name, _ string) (string, error) {
	return strings.ToLower(strings.ReplaceAll(name, " ", "-")), nil
}

func TestMigrate(t *testing.T) {
	h := openHome(t)
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(h.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("profiles/My Store/Default/Cookies", "mine")
	write("downloads/My Store/a.csv", "a")
	write("stores/My Store.json", `{"id":"id-1","slug":"My Store","port":9555}`)
	write("profiles/Loose/Default/Cookies", "loose")
	write("profiles/good/x", "good")
	write("profiles/_web/x", "web")
	write("profiles/Taken/x", "1")
	write("profiles/taken/x", "2")
	write("downloads/Busy/x", "busy")
	write("downloads/Twin a/x", "")
	write("downloads/twin A/x", "")
	lock, err := h.Lock("Busy")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()

	for _, apply := range []bool{false, true} {
		moves, err := h.Migrate(spaced, apply)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range moves {
			line := m.From + " > " + m.To
			if m.Err != nil {
				line += ": " + strings.ReplaceAll(m.Err.Error(), h.dir, "")
			}
			got = append(got, line)
		}
		want := []string{
			"Busy > busy: store Busy is served by another cdpmux, pid " + strconv.Itoa(os.Getpid()), "Loose > loose", "My Store > my-store",
			"Taken > taken: /profiles/taken is there already", "Twin a > twin-a", "twin A > twin-a: Twin a becomes twin-a, too",
		}
		if !slices.Equal(got, want) {
			t.Errorf("apply %v:\nwant %q\n got %q", apply, want, got)
		}
		if apply == exists(filepath.Join(h.dir, "profiles/My Store")) {
			t.Errorf("apply %v: profile renamed: %v", apply, !apply)
		}
	}
	for path, want := range map[string]string{
		"profiles/my-store/Default/Cookies": "mine", "downloads/my-store/a.csv": "a", "profiles/loose/Default/Cookies": "loose",
		"profiles/good/x": "good", "profiles/_web/x": "web", "profiles/Taken/x": "1", "profiles/taken/x": "2", "downloads/Busy/x": "busy",
	} {
		if text, err := os.ReadFile(filepath.Join(h.dir, path)); err != nil || string(text) != want {
			t.Errorf("%s: want %q, got %q, %v", path, want, text, err)
		}
	}
	s, err := h.OpenStore("my-store", "id-1")
	if err != nil || s.Port != 9555 {
		t.Errorf("record of my-store: want id-1 at port 9555, got %+v, %v", s, err)
	}
	if stores, err := h.Stores(); err != nil || len(stores) != 1 {
		t.Errorf("store list: %v, %v", stores, err)
	}
}

// What another process wrote into the record meanwhile is not lost.
func TestUpdateKeepsOtherChanges(t *testing.T) {
	h := openHome(t)
	mine, err := h.OpenStore("demo", "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.OpenStore("demo", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Update(func(s *Store) { s.TaskFormat = "any" }); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Addr(); err != nil {
		t.Fatal(err)
	}
	if err := mine.Update(func(s *Store) { s.Wrapper = &WrapperSettings{Real: "/r"} }); err != nil {
		t.Fatal(err)
	}
	got, err := h.readStore("demo")
	if err != nil || got.TaskFormat != "any" || got.Port == 0 || got.Wrapper == nil || got.Wrapper.Real != "/r" {
		t.Errorf("record: want all three changes, got %+v, %v", got, err)
	}
}
