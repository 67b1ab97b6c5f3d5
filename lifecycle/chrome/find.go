package chrome

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cdpmux/lifecycle"
)

// Find returns the binary to run: path when it is given, else the first
// that PATH or a known place has.
func Find(path string) (string, error) {
	if path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", &lifecycle.Failure{
				Kind: lifecycle.BrowserMissing,
				Text: fmt.Sprintf("%s is not a program", path),
				Hint: "give the path of Chrome or Chromium with --chrome",
			}
		}
		return found, nil
	}
	for _, name := range chromeNames {
		if found, err := exec.LookPath(name); err == nil {
			if binary := realBinary(found); binary != "" {
				return binary, nil
			}
		}
	}
	for _, place := range chromePlaces {
		if isProgram(place) {
			return place, nil
		}
	}
	return "", &lifecycle.Failure{
		Kind: lifecycle.BrowserMissing,
		Text: fmt.Sprintf("no Chrome or Chromium: looked for %s in PATH, and for %s", strings.Join(chromeNames, ", "), strings.Join(chromePlaces, ", ")),
		Hint: "install chromium, or give the binary with --chrome or CDPMUX_CHROME",
	}
}

var chromeNames = []string{"google-chrome-stable", "google-chrome", "chromium", "chromium-browser", "chrome"}

var chromePlaces = []string{
	"/opt/google/chrome/chrome",
	"/usr/lib/chromium/chromium",
	"/usr/lib/chromium-browser/chromium-browser",
	"/usr/lib64/chromium-browser/chromium-browser",
	"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	"/Applications/Chromium.app/Contents/MacOS/Chromium",
}

// realBinary returns the binary behind a distribution's shell wrapper, which
// adds switches that nobody asked for; the wrapper itself when there is none;
// nothing for a snap, or the stub that only asks to install one.
func realBinary(found string) string {
	target, err := filepath.EvalSymlinks(found)
	if err != nil {
		return ""
	}
	if filepath.Base(target) == "snap" { // it could not read our profiles
		return ""
	}
	script := head(target)
	if !bytes.HasPrefix(script, []byte("#!")) {
		return target
	}
	if bytes.Contains(script, []byte("snap install")) {
		return ""
	}
	base := filepath.Base(target)
	for _, place := range []string{
		filepath.Join(filepath.Dir(target), "chrome"), // Google's package
		filepath.Join("/usr/lib", base, base),         // Debian's
		filepath.Join("/usr/lib64", base, base),       // Fedora's
	} {
		if isProgram(place) && !bytes.HasPrefix(head(place), []byte("#!")) {
			return place
		}
	}
	return target
}

func isProgram(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

// head returns the first bytes of a file.
func head(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, 4<<10))
	return b
}
