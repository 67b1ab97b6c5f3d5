package chrome

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cdpmux/lifecycle"
)

func TestRealBinary(t *testing.T) {
	dir := t.TempDir()
	at := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text, 0o700)
		return path
	}
	google := at("google/google-chrome", "#!/bin/bash\nexec chrome")
	chrome := at("google/chrome", "\x7fELF")
	link := filepath.Join(dir, "google-chrome-stable")
	if err := os.Symlink(google, link); err != nil {
		t.Fatal(err)
	}
	lone := at("lone/my-chrome", "#!/bin/sh\nexec something")
	snap := filepath.Join(dir, "snap-chromium")
	if err := os.Symlink(at("snap/snap", "\x7fELF"), snap); err != nil {
		t.Fatal(err)
	}
	stub := at("ubuntu/chromium-browser", "#!/bin/sh\necho snap install chromium")

	for found, want := range map[string]string{
		link:                        chrome,
		chrome:                      chrome,
		lone:                        lone,
		stub:                        "",
		snap:                        "",
		filepath.Join(dir, "a/lie"): "",
	} {
		if got := realBinary(found); got != want {
			t.Errorf("%s: %q, want %q", found, got, want)
		}
	}
}

func TestFindChromeSaysWhereItLooked(t *testing.T) {
	places := chromePlaces
	defer func() { chromePlaces = places }()
	chromePlaces = []string{"/nowhere/chrome"}
	t.Setenv("PATH", t.TempDir())
	_, err := Find("")
	f := wantFailure(t, err, lifecycle.BrowserMissing)
	for _, want := range []string{"google-chrome", "chromium", "/nowhere/chrome"} {
		if !strings.Contains(f.Text, want) {
			t.Errorf("%q does not name %s", f.Text, want)
		}
	}
}
