package wrapper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var interpreter = regexp.MustCompile(`^python[0-9.]*$`)

// FindReal returns the absolute path of the real browser-use. given is the
// program itself, or a Python interpreter whose sibling it is; when it is empty,
// the directories of path, a PATH, are searched. Links are not resolved: a
// virtual environment is known by where its links are. What is a wrapper, or
// lies in the directory bin of all wrappers, is never taken.
func FindReal(given, path, bin string) (string, error) {
	if given == "" {
		return searchReal(path, bin)
	}
	if !strings.ContainsRune(given, filepath.Separator) {
		return "", fmt.Errorf("--real %s: give its whole path", given)
	}
	real, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	if interpreter.MatchString(filepath.Base(real)) {
		real = filepath.Join(filepath.Dir(real), Name)
	}
	return real, checkReal(real, bin)
}

func searchReal(path, bin string) (string, error) {
	var last error
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // it would be another program in another directory
		}
		real := filepath.Join(dir, Name)
		err := checkReal(real, bin)
		if err == nil {
			return real, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			last = err
		}
	}
	if last != nil {
		return "", fmt.Errorf("no %s on PATH: %w; say where it is with --real PATH", Name, last)
	}
	return "", fmt.Errorf("no %s on PATH: install it, or say where it is with --real PATH", Name)
}

// checkReal refuses what is no program, and what would call a wrapper again.
func checkReal(real, bin string) error {
	fi, err := os.Stat(real)
	switch {
	case err != nil:
		return err
	case !fi.Mode().IsRegular() || fi.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is no program", real)
	}
	resolved, err := filepath.EvalSymlinks(real)
	if err != nil {
		return err
	}
	if inTree(real, bin) || inTree(resolved, bin) || isWrapper(resolved) || sameAsWrapper(fi, bin) {
		return fmt.Errorf("%s is a wrapper of cdpmux, not the real one", real)
	}
	return nil
}

func inTree(path, bin string) bool {
	for _, dir := range []string{bin, resolve(bin)} {
		if rel, err := filepath.Rel(dir, path); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// sameAsWrapper finds a second name of a wrapper's file.
func sameAsWrapper(fi fs.FileInfo, bin string) bool {
	paths, _ := filepath.Glob(filepath.Join(globEscape(bin), "*", "*"))
	for _, path := range paths {
		if other, err := os.Stat(path); err == nil && os.SameFile(fi, other) {
			return true
		}
	}
	return false
}

func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

var distInfo = regexp.MustCompile(`browser_use-(([0-9]+)\.([0-9]+)[^/]*)\.dist-info$`)

// TooOld returns the version of a browser-use that does not work with the
// script, "" for a later one or one whose version cannot be found.
func TooOld(real string) string {
	version := Version(real)
	if m := distInfo.FindStringSubmatch("browser_use-" + version + ".dist-info"); m != nil {
		major, _ := strconv.Atoi(m[2])
		if minor, _ := strconv.Atoi(m[3]); major == 0 && minor < 13 {
			return version
		}
	}
	return ""
}

// Version returns the version of a browser-use, "" when it cannot be found: it
// stands in the name of a directory of the virtual environment.
func Version(real string) string {
	for _, path := range []string{real, resolve(real)} {
		infos, _ := filepath.Glob(filepath.Join(globEscape(filepath.Dir(filepath.Dir(path))), "lib", "python*", "site-packages", "browser_use-*.dist-info"))
		for _, info := range infos {
			if m := distInfo.FindStringSubmatch(filepath.ToSlash(info)); m != nil {
				return m[1]
			}
		}
	}
	return ""
}
