package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"cdpmux/wrapper"
)

// desk is a state directory with commands run on it, and a real browser-use.
type desk struct{ home, real string }

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := os.MkdirTemp("", "cm") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &desk{filepath.Join(dir, "h"), filepath.Join(dir, "venv", "bin", wrapper.Name)}
	if err := os.MkdirAll(filepath.Dir(d.real), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.real, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	if got := run(append(args, "--home", d.home), &out, &log); got != code {
		t.Errorf("cdpmux %v: want exit %d, got %d; stderr: %s", args, code, got, &log)
	}
	return out.String(), log.String()
}

func (d *desk) script(t *testing.T, slug string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.home, "bin", slug, wrapper.Name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustHave(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s: want %q in it, got:\n%.2000s", what, word, text)
		}
	}
}

// What an operator chose is remembered, and every later writing is the same.
func TestWrapperWrite(t *testing.T) {
	d := newDesk(t)
	out, log := d.run(t, exitOK, "wrapper", "write", "--store", "My Shop", "--id", "id-1", "--real", d.real, "--slots", "2", "--timeout", "45", "--task-format", "any")
	if out != filepath.Join(d.home, "bin/my-shop/browser-use")+"\n" || log != "" {
		t.Errorf("want the path alone, got %q, %q", out, log)
	}
	first := d.script(t, "my-shop")
	mustHave(t, "script", first, "# cdpmux-store-id: id-1\n", "# cdpmux-proxy: 127.0.0.1:9400\n", "mux_real='"+d.real+"'\n", "mux_slots='2'\n", "mux_limit='45'\n", "[A-Za-z0-9_]{1,8}")
	if _, err := os.Stat(filepath.Join(d.home, "bin/_guard/browser-use")); err != nil {
		t.Error(err)
	}
	record, err := os.ReadFile(filepath.Join(d.home, "stores/my-shop.json"))
	if err != nil {
		t.Fatal(err)
	}
	mustHave(t, "record, which the reaper reads", string(record), `"task_format": "any"`)

	d.run(t, exitOK, "wrapper", "write", "--store", "my-shop", "--slots", "4")
	if got := d.script(t, "my-shop"); got != strings.Replace(first, "mux_slots='2'", "mux_slots='4'", 1) {
		t.Errorf("written again with 4 slots, it differs in more than that:\n%s", got)
	}
	_, log = d.run(t, exitOK, "wrapper", "write", "--store", "my-shop", "--slots", "5")
	mustHave(t, "warning", log, "17 clients", "--max-clients is 16")

	d.run(t, exitOK, "wrapper", "write", "--web", "--real", d.real)
	mustHave(t, "script of the browser without a store", d.script(t, "_web"), "# cdpmux-proxy: 127.0.0.1:9401\n", "mux_base='web'\n", "mux_ensure=('--web' )\n")

	out, _ = d.run(t, exitOK, "wrapper", "list")
	mustHave(t, "list", out, "my-shop", "id-1", "127.0.0.1:9400", "_web", "127.0.0.1:9401")
	t.Setenv("PATH", filepath.Join(d.home, "bin/other")+":/usr/bin")
	out, _ = d.run(t, exitOK, "wrapper", "path", "--store", "my-shop")
	if want := d.home + "/bin/my-shop:" + d.home + "/bin/_guard:/usr/bin\n"; out != want {
		t.Errorf("path: want %s, got %s", want, out)
	}
	d.run(t, exitOK, "wrapper", "remove", "--store", "my-shop")
	_, log = d.run(t, exitFailed, "wrapper", "remove", "--store", "my-shop")
	mustHave(t, "removed twice", log, "no such file")
	_, log = d.run(t, exitFailed, "wrapper", "path", "--store", "my-shop")
	mustHave(t, "path without a wrapper", log, "next: cdpmux wrapper write")
	out, _ = d.run(t, exitOK, "wrapper", "guard")
	mustHave(t, "guard", out, "bin/_guard/browser-use\n")
}

func TestWrapperWriteRefused(t *testing.T) {
	d := newDesk(t)
	open := filepath.Join(filepath.Dir(d.home), "token")
	if err := os.WriteFile(open, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	for _, row := range []struct {
		code int
		why  string
		args []string
	}{
		{exitUsage, "--store NAME or --web", nil},
		{exitUsage, "--store NAME or --web", []string{"--store", "a", "--web"}},
		{exitUsage, "store id", []string{"--store", "a", "--id", "a b"}},
		{exitUsage, "-aux", []string{"--store", "a-aux"}},
		{exitUsage, "is none of hex, any", []string{"--store", "a", "--task-format", "dec"}},
		{exitFailed, "install it", []string{"--store", "a"}},
		{exitFailed, "whole path", []string{"--store", "a", "--real", "browser-use"}},
		{exitFailed, "0 to 99", []string{"--store", "a", "--real", d.real, "--slots", "100"}},
		{exitFailed, "whole seconds", []string{"--store", "a", "--real", d.real, "--timeout", "1.5"}},
		{exitFailed, "want https", []string{"--store", "a", "--real", d.real, "--start-url", "http://example.com"}},
		{exitFailed, "chmod 600", []string{"--store", "a", "--real", d.real, "--start-url", "https://example.com", "--token-file", open}},
	} {
		_, log := d.run(t, row.code, append([]string{"wrapper", "write"}, row.args...)...)
		mustHave(t, fmt.Sprint(row.args), log, row.why)
	}
	if found, _ := filepath.Glob(filepath.Join(d.home, "bin/*/*")); len(found) > 0 {
		t.Errorf("written all the same: %v", found)
	}
}

// A store's name is never code, neither here nor in the script; two stores
// never share one.
func TestWrapperNames(t *testing.T) {
	d := newDesk(t)
	t.Chdir(t.TempDir())
	for name, slug := range map[string]string{
		"$(touch pwned)": "touch-pwned", "`touch pwned`; x": "touch-pwned-x", "it's \"a\" shop": "it-s-a-shop",
		"two\nlines": "two-lines", "店铺": "store-1d", "../../etc": "etc", "-rf *": "rf",
	} {
		out, _ := d.run(t, exitOK, "wrapper", "write", "--store", name, "--id", "1d", "--real", d.real)
		if want := filepath.Join(d.home, "bin", slug, wrapper.Name) + "\n"; out != want {
			t.Errorf("%q: want %s, got %s", name, want, out)
		}
		script := filepath.Join(d.home, "bin", slug, wrapper.Name)
		if text, err := exec.Command("bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%q: %v, %s", name, err, text)
		}
		if text, err := exec.Command(script, "--mcp").CombinedOutput(); err == nil || string(text) != "ERROR: --mcp is not allowed\n" {
			t.Errorf("%q: the script says %q, %v", name, text, err)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("a name was run as code: %v", left)
	}
	_, log := d.run(t, exitFailed, "wrapper", "write", "--store", "Etc", "--id", "another", "--real", d.real)
	mustHave(t, "two stores of one slug", log, "the name etc belongs to the store with id 1d, not another")
}

// wipe judges by the store list, or by the ids it is given.
func TestWrapperWipe(t *testing.T) {
	d := newDesk(t)
	for slug, id := range map[string]string{"old": "id-old", "here": "id-here"} {
		d.run(t, exitOK, "wrapper", "write", "--store", slug, "--id", id, "--real", d.real, "--slots", "7")
	}
	want := d.script(t, "old")
	age := func(slug, to string) {
		t.Helper()
		path := filepath.Join(d.home, "bin", slug, wrapper.Name)
		text := strings.Replace(strings.Replace(want, "store: old\n", "store: "+to+"\n", 1), fmt.Sprintf("format: %d\n", wrapper.Format), "format: 0\n", 1)
		if slug == "orphan" {
			text = strings.ReplaceAll(text, "id-old", "id-gone")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	age("old", "old")
	age("orphan", "orphan")
	out, _ := d.run(t, exitOK, "wrapper", "wipe", "--known", "")
	mustHave(t, "wipe without any id", out, "kept "+filepath.Join(d.home, "bin/orphan"))
	out, log := d.run(t, exitOK, "wrapper", "wipe")
	mustHave(t, "wipe", out, "rewritten "+filepath.Join(d.home, "bin/old"), "kept "+filepath.Join(d.home, "bin/here"))
	mustHave(t, "wipe", log, "deleted "+filepath.Join(d.home, "bin/orphan"))
	if got := d.script(t, "old"); got != want {
		t.Errorf("the rewritten script is not what it was:\n%s", got)
	}

	_, log = d.run(t, exitOK, "wrapper", "wipe", "--known", "id-1,id-old", "id-3")
	mustHave(t, "wipe by another list", log, "deleted "+filepath.Join(d.home, "bin/here"))

	age("old", "old")
	if err := os.Remove(d.real); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	_, log = d.run(t, exitOK, "wrapper", "wipe")
	mustHave(t, "wipe without browser-use", log, "deleted "+filepath.Join(d.home, "bin/old"), "install it")
	if err := os.WriteFile(filepath.Join(d.home, "stores/old.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	age("old", "old")
	out, log = d.run(t, exitOK, "wrapper", "wipe")
	mustHave(t, "wipe with a broken list", log, "store list:")
	mustHave(t, "wipe with a broken list", out, "kept "+filepath.Join(d.home, "bin/old"))
}

// serve writes its own store's script with the address it has, keeps a newer
// one, and goes on without browser-use.
func TestOwnWrapper(t *testing.T) {
	d := newDesk(t)
	d.run(t, exitOK, "wrapper", "write", "--store", "shop", "--id", "id-1", "--real", d.real)
	home, _, err := openBin(d.home)
	if err != nil {
		t.Fatal(err)
	}
	store, err := home.OpenStore("shop", "")
	if err != nil {
		t.Fatal(err)
	}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 45678}
	own := func(o *serveOptions) string {
		t.Helper()
		var log bytes.Buffer
		o.maxClients = 20
		o.ownWrapper(home, store, addr, zerolog.New(&log))
		return log.String()
	}
	mustHave(t, "log", own(&serveOptions{slotsGiven: true, workerSlots: 8}), "wrapper written", "23 clients", "--max-clients is 20")
	mustHave(t, "script", d.script(t, "shop"), "# cdpmux-proxy: 127.0.0.1:45678\n", "mux_slots='8'\n")
	before := d.script(t, "shop")
	addr.Port++
	if log := own(&serveOptions{noWrapper: true}); log != "" || d.script(t, "shop") != before {
		t.Errorf("--no-wrapper: it was written; log: %s", log)
	}

	path := filepath.Join(d.home, "bin/shop/browser-use")
	as := func(format int) {
		t.Helper()
		text := strings.Replace(before, fmt.Sprintf("format: %d\n", wrapper.Format), fmt.Sprintf("format: %d\n", format), 1)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	as(wrapper.Format + 1)
	mustHave(t, "log of a rollback", own(&serveOptions{}), "newer cdpmux")
	mustHave(t, "the newer script", d.script(t, "shop"), "127.0.0.1:45678\n")

	as(wrapper.Format)
	if err := os.Remove(d.real); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	mustHave(t, "log without browser-use", own(&serveOptions{}), "no wrapper written", "install it")
	mustHave(t, "the script of now", d.script(t, "shop"), "127.0.0.1:45678\n")
	as(0)
	mustHave(t, "log without browser-use, of an old script", own(&serveOptions{}), `"level":"error"`, "out of date")
	if _, err := os.Stat(path); err == nil {
		t.Error("the script that is out of date is still there")
	}
}

func TestStoresMigrate(t *testing.T) {
	d := newDesk(t)
	for path, text := range map[string]string{"profiles/My_Shop/x": "", "stores/My_Shop.json": `{"id":"id-1","slug":"My_Shop"}`} {
		path = filepath.Join(d.home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := d.run(t, exitOK, "stores", "migrate")
	mustHave(t, "dry run", out, "My_Shop -> my-shop\n", "--apply")
	if _, err := os.Stat(filepath.Join(d.home, "profiles/My_Shop")); err != nil {
		t.Errorf("a dry run renamed: %v", err)
	}
	out, _ = d.run(t, exitOK, "stores", "migrate", "--apply")
	mustHave(t, "migrate", out, "My_Shop -> my-shop\n", "next: cdpmux wrapper write --store my-shop --id id-1\n")
	if _, err := os.Stat(filepath.Join(d.home, "profiles/my-shop/x")); err != nil {
		t.Error(err)
	}
	if out, _ = d.run(t, exitOK, "stores", "migrate"); out != "" {
		t.Errorf("migrated already: %s", out)
	}
}
