package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cdpmux/lifecycle/doctor"
)

func TestDoctorPrintsAndChangesNothing(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	var stdout, stderr bytes.Buffer
	code := run([]string{"doctor", "--home", home, "--store", "shop", "--", "--headless", "--no-sandbox"}, &stdout, &stderr)
	lines := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
	failed := false
	for _, line := range lines {
		level, _, _ := strings.Cut(line, " ")
		switch level {
		case "ok":
		case "warn", "fail":
			failed = failed || level == "fail"
			if !strings.Contains(line, "; next: ") {
				t.Errorf("no next step: %s", line)
			}
		default:
			t.Errorf("line %q", line)
		}
	}
	if want := map[bool]int{false: exitOK, true: exitFailed}[failed]; code != want {
		t.Errorf("exit code %d, want %d: %s%s", code, want, stdout.String(), stderr.String())
	}
	if len(lines) < 15 {
		t.Errorf("only %d lines", len(lines))
	}
	if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made the state directory: %v", err)
	}
}

func TestDoctorFails(t *testing.T) {
	home := t.TempDir()
	if err := os.Chmod(home, 0o777); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"doctor", "--home", home, "--json"}, &stdout, &stderr); code != exitFailed {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	var all []doctor.Finding
	if err := json.Unmarshal(stdout.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Check == "home" && f.Level == doctor.Fail && strings.Contains(f.Text, "written by others") {
			return
		}
	}
	t.Errorf("findings %+v", all)
}

func TestDoctorTakesFlagsOfServe(t *testing.T) {
	for _, args := range [][]string{{"extra"}, {"--", "--store", "x"}, {"--", "--nonsense"}} {
		var stdout, stderr bytes.Buffer
		if code := run(append([]string{"doctor", "--home", t.TempDir()}, args...), &stdout, &stderr); code == exitOK || stdout.Len() > 0 {
			t.Errorf("%q: exit code %d, %s%s", args, code, stdout.String(), stderr.String())
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"Müller – 日本":                          "Müller – 日本",
		"a\x1b[2Jb\x1b]0;t\x07c":               "a[2Jb]0;tc",
		"two\nlines\tand\ra return":            "two lines and a return",
		"\u009b31m\u202egnp.exe\u200f\x7f\xff": "31mgnp.exe\ufffd",
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}
