package wrapper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes files of a table: a path ending in / is a directory, a value that
// begins with -> a link, any other value a program.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for path, value := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(value, "->"); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(value), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindReal(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		"venv/bin/browser-use":        "#!real",
		"base/bin/python3.11":         "#!python",
		"base/bin/browser-use":        "#!another",
		"venv/bin/python":             "->" + filepath.Join(dir, "base/bin/python3.11"),
		"links/browser-use":           "->" + filepath.Join(dir, "venv/bin/browser-use"),
		"plain/browser-use":           "no program",
		"dir/browser-use/x":           "",
		"home/bin/shop/browser-use":   string(guardText),
		"home/bin/other/browser-use":  "anything below bin",
		"loop/browser-use":            "->" + filepath.Join(dir, "home/bin/shop/browser-use"),
		"copy/browser-use":            string(guardText),
		"dangling/browser-use":        "->/nowhere",
		"newline\n/venv/browser-use":  "#!real",
		"home/bin-not/ex/browser-use": "#!real",
	})
	if err := os.Chmod(filepath.Join(dir, "plain/browser-use"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "home/bin")
	if err := os.MkdirAll(filepath.Join(dir, "hard"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(bin, "other/browser-use"), filepath.Join(dir, "hard/browser-use")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ given, path, want, why string }{
		{given: "venv/bin/browser-use", want: "venv/bin/browser-use"},
		{given: "venv/bin/python", want: "venv/bin/browser-use"}, // not that of base
		{given: "base/bin/python3.11", want: "base/bin/browser-use"},
		{given: "links/browser-use", want: "links/browser-use"},
		{given: "newline\n/venv/browser-use", want: "newline\n/venv/browser-use"},
		{given: "home/bin-not/ex/browser-use", want: "home/bin-not/ex/browser-use"},
		{given: "nowhere/browser-use", why: "no such file"},
		{given: "dangling/browser-use", why: "no such file"},
		{given: "plain/browser-use", why: "is no program"},
		{given: "dir/browser-use", why: "is no program"},
		{given: "home/bin/shop/browser-use", why: "is a wrapper"},
		{given: "home/bin/other/browser-use", why: "is a wrapper"},
		{given: "loop/browser-use", why: "is a wrapper"},
		{given: "hard/browser-use", why: "is a wrapper"},
		{given: "copy/browser-use", why: "is a wrapper"},
		{path: "base/bin:venv/bin", want: "base/bin/browser-use"},
		{path: "home/bin/shop:loop:plain:venv/bin", want: "venv/bin/browser-use"},
		{path: "nowhere:base", why: "install it"},
		{path: "loop:nowhere", why: "is a wrapper"},
	} {
		given, path := row.given, ""
		if given != "" {
			given = filepath.Join(dir, given)
		}
		for _, each := range strings.Split(row.path, ":") {
			path += ":" + filepath.Join(dir, each)
		}
		got, err := FindReal(given, path, bin)
		switch {
		case row.why != "" && (err == nil || !strings.Contains(err.Error(), row.why)):
			t.Errorf("%+v: want an error with %q, got %q, %v", row, row.why, got, err)
		case row.why == "" && (err != nil || got != filepath.Join(dir, row.want)):
			t.Errorf("%+v: got %q, %v", row, got, err)
		}
	}
	if _, err := FindReal("browser-use", "", bin); err == nil || !strings.Contains(err.Error(), "whole path") {
		t.Errorf("a bare name: %v", err)
	}
	t.Chdir(filepath.Join(dir, "venv"))
	if got, err := FindReal("", "bin:./bin::.", bin); err == nil {
		t.Errorf("a relative PATH: want no program, got %s", got)
	}
	if got, err := FindReal("bin/browser-use", "", bin); err != nil || !filepath.IsAbs(got) {
		t.Errorf("a relative --real: want it made absolute, got %q, %v", got, err)
	}
}

func TestTooOld(t *testing.T) {
	dir := t.TempDir()
	tree(t, dir, map[string]string{
		"old/lib/python3.11/site-packages/browser_use-0.12.6.dist-info/METADATA":    "",
		"new/lib/python3.12/site-packages/browser_use-0.13.0.dist-info/METADATA":    "",
		"later/lib/python3.12/site-packages/browser_use-1.0.dist-info/METADATA":     "",
		"other/lib/python3.12/site-packages/browser_use_sdk-0.1.dist-info/METADATA": "",
		"old/bin/browser-use": "#!", "new/bin/browser-use": "#!", "later/bin/browser-use": "#!", "other/bin/browser-use": "#!",
		"links/browser-use": "->" + filepath.Join(dir, "old/bin/browser-use"),
	})
	for path, want := range map[string]string{"old/bin": "0.12.6", "links": "0.12.6", "new/bin": "", "later/bin": "", "other/bin": "", "nowhere": ""} {
		mustEqual(t, path, want, TooOld(filepath.Join(dir, path, Name)))
	}
}

// Whatever REAL_BU has become since, there is one clear error, and the call
// does not run itself again and again.
func TestRealHasChanged(t *testing.T) {
	t.Parallel()
	gone := "is gone, or no program\nInstall browser-use there, or say where it is: cdpmux wrapper write --store shop --id id-1 --real PATH\n"
	loop := "is a wrapper, not browser-use\nSay which one is real: cdpmux wrapper write --store shop --id id-1 --real PATH\n"
	for name, row := range map[string]struct {
		spoil  func(p *post, real string) error
		stderr string
	}{
		"missing":   {func(*post, string) error { return nil }, gone},
		"directory": {func(_ *post, real string) error { return os.Mkdir(real, 0o700) }, gone},
		"no program": {func(_ *post, real string) error {
			return os.WriteFile(real, []byte("#!/bin/sh\n"), 0o600)
		}, gone},
		"link to the wrapper": {func(p *post, real string) error { return os.Symlink(p.bin.Script("shop"), real) }, loop},
		"another wrapper":     {func(_ *post, real string) error { return os.WriteFile(real, guardText, 0o700) }, loop},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, func(s *Script) { s.Real = filepath.Join(s.Home, "real") })
			if err := row.spoil(p, p.script.Real); err != nil {
				t.Fatal(err)
			}
			got := p.call(t)
			if got.code != 1 || got.stderr != "ERROR: "+p.script.Real+" "+row.stderr {
				t.Errorf("want exit 1 with %q, got %v", row.stderr, got)
			}
		})
	}
}

// A browser-use that finds the wrapper on PATH and runs it is stopped at the
// second level; a wrapper that is called through a link works.
func TestRecursion(t *testing.T) {
	t.Parallel()
	p := newPost(t, func(s *Script) {
		s.Real = filepath.Join(s.Home, "shim")
		if err := replace(s.Real, []byte("#!/usr/bin/env bash\necho level >>\"$STUB_DIR/calls\"\nexec browser-use \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Symlink(filepath.Dir(p.bin.Script("shop")), filepath.Join(p.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "PATH=./bin:"+os.Getenv("PATH"))
	got := p.shell(t, "browser-use <<<x")
	if got.code != 1 || !strings.HasPrefix(got.stderr, "ERROR: a wrapper was called from within the call of a wrapper\n") || strings.Count(got.stderr, "\n") != 2 {
		t.Errorf("want exit 1 with one clear error, got %v", got)
	}
	mustEqual(t, "levels", "level\n", p.note(t, "calls"))

	p = newPost(t, nil)
	link := filepath.Join(p.dir, "linked")
	if err := os.Symlink(p.bin.Script("shop"), link); err != nil {
		t.Fatal(err)
	}
	if got := p.shell(t, link); got.code != 0 {
		t.Errorf("through a link: %v", got)
	}
}

// Without the wrapper, PATH leads to the guard, whatever the tool is called.
func TestGuard(t *testing.T) {
	t.Parallel()
	p := newPost(t, nil)
	real := filepath.Join(p.dir, "real")
	for _, name := range guardNames {
		if err := replace(filepath.Join(real, name), []byte("#!/bin/sh\necho raw\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := p.bin.Path("shop", p.bin.Path("mall", real+":relative::"+os.Getenv("PATH")))
	mustEqual(t, "PATH", p.bin.Dir+"/shop:"+p.bin.Dir+"/_guard:"+real+":"+os.Getenv("PATH"), path)
	p.env = append(p.env, "PATH="+path)
	if got := p.shell(t, "browser-use"); got.code != 0 || got.stdout != "" {
		t.Errorf("with the wrapper: %v", got)
	}
	for _, name := range guardNames[1:] {
		if got := p.shell(t, name); got.code != 1 || !strings.Contains(got.stderr, "no browser-use wrapper") {
			t.Errorf("%s: want the guard, got %v", name, got)
		}
	}
	if err := p.bin.Remove("shop"); err != nil {
		t.Fatal(err)
	}
	got := p.shell(t, "browser-use")
	if got.code != 1 || got.stdout != "" || !strings.HasPrefix(got.stderr, "ERROR: no browser-use wrapper of cdpmux is on PATH\n") {
		t.Errorf("without the wrapper: want the guard, got %v", got)
	}
	if fi, err := os.Stat(p.bin.Guard()); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("guard: %v, %v", fi, err)
	}
}
