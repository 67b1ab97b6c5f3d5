package download

import (
	"os"
	"path/filepath"
	"testing"
)

func TestArrivalsOfNone(t *testing.T) {
	if all, err := Arrivals(t.TempDir()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// A line that a crash cut short costs itself and none of its neighbours.
func TestTornLine(t *testing.T) {
	s := open(t)
	names := func() (out string) {
		all, err := Arrivals(s.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			out += a.Name + " "
		}
		return out
	}
	for _, name := range []string{"a", "b", "c"} {
		stage(t, s, name, name)
	}
	settle(t, s, File{GUID: "a", Name: "a"})
	settle(t, s, File{GUID: "b", Name: "b"})
	journal := filepath.Join(s.dir, journalName)
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	write(t, journal, string(text[:len(text)-5]))
	if got := names(); got != "a " {
		t.Errorf("with a torn line: %s", got)
	}
	settle(t, s, File{GUID: "c", Name: "c"})
	if got := names(); got != "a c " {
		t.Errorf("with one more after it: %s", got)
	}
}

func TestPublicURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://h:1/a%20b/r.csv?token=s#f": "https://h:1/a%20b/r.csv",
		"https://user:pass@h/":              "https://h/",
		"http://h/p?":                       "http://h/p",
		"data:text/plain,secret":            "data:",
		"DATA:/secret":                      "data:",
		"blob:https://h/uuid?x#y":           "blob:https://h/uuid",
		"blob:null/uuid":                    "blob:",
		"file:///home/x/r.csv":              "file:///home/x/r.csv",
		"http://h/%zz?secret":               "http:",
		"http:secret":                       "http:",
		"":                                  "",
	} {
		if got := publicURL(text); got != want {
			t.Errorf("publicURL(%q): got %q, want %q", text, got, want)
		}
	}
}
