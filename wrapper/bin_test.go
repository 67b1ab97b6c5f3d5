package wrapper

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// header writes a script that says this of itself.
func header(t *testing.T, b Bin, slug, format, id string) string {
	t.Helper()
	text := "#!/usr/bin/env bash\n# Auto-generated browser-use wrapper for store: " + slug + "\n"
	if format != "" {
		text += "# cdpmux-wrapper-format: " + format + "\n"
	}
	if id != "-" {
		text += "# cdpmux-store-id: " + id + "\n"
	}
	text += "# cdpmux-proxy: 127.0.0.1:9400\n"
	if err := replace(b.Script(slug), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestWipe(t *testing.T) {
	known := []string{"id-known", "id-broken"}
	current, newer := strconv.Itoa(Format), strconv.Itoa(Format+1)
	for name, row := range map[string]struct {
		format, id string
		action     string // with known stores
		empty      string // without any
	}{
		"older, known":             {"0", "id-known", Rewritten, Kept},
		"older, known, broken":     {"0", "id-broken", Deleted, Kept},
		"older, of no store":       {"0", "id-gone", Deleted, Kept},
		"older, without an id":     {"0", "-", Deleted, Kept},
		"current, known":           {current, "id-known", Kept, Kept},
		"orphan":                   {current, "id-gone", Deleted, Kept},
		"current, without an id":   {current, "-", Kept, Kept},
		"id not readable":          {current, "a b", Kept, Kept},
		"older, id not readable":   {"0", "a b", Kept, Kept},
		"newer, known":             {newer, "id-known", Kept, Kept},
		"newer, of no store":       {newer, "id-gone", Kept, Kept},
		"newer, without an id":     {newer, "-", Kept, Kept},
		"without a format":         {"", "id-gone", Kept, Kept},
		"format not readable":      {"x", "id-gone", Kept, Kept},
		"format of too many bytes": {"99999999999999999999", "id-gone", Kept, Kept},
	} {
		for _, list := range [][]string{known, nil} {
			b := Bin{t.TempDir()}
			old := header(t, b, "shop", row.format, row.id)
			rendered := ""
			results, err := b.Wipe(list, func(h Header) error {
				if h.ID == "id-broken" {
					return errors.New("no browser-use")
				}
				rendered = h.Slug
				return replace(b.Script(h.Slug), []byte("new"), 0o700)
			})
			want := row.action
			if list == nil {
				want = row.empty
			}
			if err != nil || len(results) != 1 || results[0].Action != want || results[0].Why == "" {
				t.Errorf("%s, known %v: want %s, got %+v, %v", name, list, want, results, err)
			}
			text, err := os.ReadFile(b.Script("shop"))
			switch {
			case want == Deleted && !errors.Is(err, fs.ErrNotExist):
				t.Errorf("%s: still there", name)
			case want == Kept && string(text) != old:
				t.Errorf("%s: changed", name)
			case want == Rewritten && (string(text) != "new" || rendered != "shop"):
				t.Errorf("%s: not rewritten", name)
			}
		}
	}
}

// Other people's files, and what cannot be read, are left alone.
func TestWipeForeign(t *testing.T) {
	b := Bin{t.TempDir()}
	tree(t, b.Dir, map[string]string{
		"foreign/browser-use":     "#!/bin/sh\n# a script of the user's\n",
		"link/browser-use":        "->../older/browser-use",
		"directory/browser-use/x": "",
		"vibe/browser-use":        "#!/usr/bin/env bash\n# browser-use wrapper\n# format: 6\n",
		"late/browser-use":        "#!/bin/sh\n" + strings.Repeat("#\n", 200) + "# Auto-generated browser-use wrapper for store: late\n# cdpmux-wrapper-format: 0\n",
		"nothing/readme":          "",
		"file":                    "",
	})
	if err := b.WriteGuard(); err != nil {
		t.Fatal(err)
	}
	results, err := b.Wipe([]string{"id"}, func(Header) error { t.Error("rendered"); return nil })
	if err != nil || len(results) != 5 {
		t.Errorf("want 5 results, got %+v, %v", results, err)
	}
	for _, r := range results {
		mustEqual(t, r.Path, Kept, r.Action)
	}
	for _, path := range []string{"foreign/browser-use", "link/browser-use", "directory/browser-use/x", "vibe/browser-use", "late/browser-use", "nothing/readme", "file", "_guard/bu"} {
		if _, err := os.Lstat(filepath.Join(b.Dir, path)); err != nil {
			t.Error(err)
		}
	}
	unreadable := Entry{Path: b.Script("x"), Err: &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}}
	if r := b.judge(unreadable, []string{"id"}, nil); r.Action != Kept || !strings.Contains(r.Why, "permission denied") {
		t.Errorf("what cannot be read: want kept, got %+v", r)
	}
	s := variants()["store"]
	s.Slug = "foreign"
	if err := b.Write(s); err == nil || !strings.Contains(err.Error(), "not written by cdpmux") {
		t.Errorf("Write over a foreign file: %v", err)
	}
	if err := b.Remove("foreign"); err == nil {
		t.Error("a foreign file was removed")
	}
}

// A rollback keeps the newer script, and says so.
func TestWriteKeepsNewer(t *testing.T) {
	b := Bin{t.TempDir()}
	old := header(t, b, "shop", strconv.Itoa(Format+1), "1a2b3c4d")
	if err := b.Write(variants()["store"]); !errors.Is(err, ErrNewer) {
		t.Errorf("want ErrNewer, got %v", err)
	}
	mustEqual(t, "the newer script", old, read(t, b.Script("shop")))
	header(t, b, "shop", "0", "1a2b3c4d")
	if err := b.Write(variants()["store"]); err != nil {
		t.Error(err)
	}
	list, err := b.List()
	if err != nil || len(list) != 1 || list[0].Header != (Header{"shop", Format, "1a2b3c4d", true, "127.0.0.1:9400"}) {
		t.Errorf("List: %+v, %v", list, err)
	}
	if fi, err := os.Stat(b.Script("shop")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("mode: %v, %v", fi.Mode(), err)
	}
	if err := b.Remove("shop"); err != nil {
		t.Error(err)
	}
	if err := b.Remove("shop"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove again: want fs.ErrNotExist, got %v", err)
	}
}

// Many write at once while others run the script: each finds a whole one.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	p := newPost(t, nil)
	p.env = append(p.env, "STUB_DO=echo ran")
	var writers, callers sync.WaitGroup
	done := make(chan struct{})
	for i := range 8 {
		s := p.script
		s.Slots = i
		s.Home += strings.Repeat("/.", 10*i) // of another length
		writers.Go(func() {
			for range 10 {
				if err := p.bin.Write(s); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		callers.Go(func() {
			for {
				if out, err := p.command(t).CombinedOutput(); err != nil || string(out) != "ran\n" {
					t.Errorf("a call among the writers: %v, %s", err, out)
				}
				if out, err := exec.Command("bash", "-n", p.bin.Script("shop")).CombinedOutput(); err != nil {
					t.Errorf("bash -n: %v, %s", err, out)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	callers.Wait()
	files, err := os.ReadDir(filepath.Dir(p.bin.Script("shop")))
	if err != nil || len(files) != 1 {
		t.Errorf("in the folder: want the script alone, got %v, %v", fmt.Sprint(files), err)
	}
}

// While an older script is replaced, there is always one.
func TestNoMomentWithoutAScript(t *testing.T) {
	b := Bin{t.TempDir()}
	s := variants()["store"]
	header(t, b, s.Slug, "0", s.ID)
	stop, polled := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			if _, err := readHeader(b.Script(s.Slug)); err != nil {
				t.Error(err)
			}
			select {
			case <-stop:
				polled <- n
				return
			default:
			}
		}
	}()
	for range 50 {
		header(t, b, s.Slug, "0", s.ID)
		results, err := b.Wipe([]string{s.ID}, func(Header) error { return b.Write(s) })
		if err != nil || len(results) != 1 || results[0].Action != Rewritten {
			t.Fatalf("%+v, %v", results, err)
		}
	}
	close(stop)
	if n := <-polled; n < 50 {
		t.Errorf("looked only %d times", n)
	}
}
