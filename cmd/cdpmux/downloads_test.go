package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/proxy/download"
)

// cdpmux downloads tells what arrived from the journal alone.
func TestDownloadsCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	home, err := lifecycle.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := home.OpenStore("demo", ""); err != nil {
		t.Fatal(err)
	}
	command := func(code int, more ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		args := append([]string{"downloads", "--home", dir}, more...)
		if got := run(args, &out, &errs); got != code {
			t.Errorf("%v: exit code %d, want %d; stderr: %s", args, got, code, &errs)
		}
		return out.String(), errs.String()
	}
	if out, _ := command(0, "--store", "demo", "--json"); out != "[]\n" {
		t.Errorf("before any: %q, want an empty array", out)
	}
	if out, _ := command(0, "--store", "demo"); !strings.Contains(out, ": 0 (") {
		t.Errorf("before any: %q", out)
	}

	downloads, err := home.Downloads("demo")
	if err != nil {
		t.Fatal(err)
	}
	store, err := download.Open(download.Config{Dir: downloads})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600))
	for guid, f := range map[string]download.File{
		"g1": {Name: "r.csv", Client: "alice", URL: "https://h/r?token=secret"},
		"g2": {Name: "s.csv", Client: "bob", URL: "https://h/s"},
		"g3": {Name: "t.csv"},
	} {
		f.GUID = guid
		if err := os.WriteFile(filepath.Join(store.Staging(), guid), []byte("1234567"), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := store.Settle(at, f); err != nil || p.Warning != nil {
			t.Fatal(p, err)
		}
	}

	table, _ := command(0, "--store", "demo")
	for _, want := range []string{downloads + ": 3 (", "2026-01-02 03:04:05  alice     7      r.csv  https://h/r\n", "  bob ", "  (nobody)  "} {
		if !strings.Contains(table, want) {
			t.Errorf("table: want %q in it, got\n%s", want, table)
		}
	}
	out, _ := command(0, "--store", "demo", "--client", "alice", "--json")
	var got []download.Arrival
	want := download.Arrival{Time: at.UTC(), Client: "alice", GUID: "g1", Name: "r.csv", URL: "https://h/r", Size: 7}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("one client's: %s, %v", out, err)
	}
	if out, _ := command(0, "--store", "demo", "--client", "carol", "--json"); out != "[]\n" {
		t.Errorf("a client without any: %q", out)
	}

	_, errs := command(1, "--store", "other")
	if !strings.Contains(errs, "other") || !strings.Contains(errs, "never served") || !strings.Contains(errs, "--home") {
		t.Errorf("unknown store: %s", errs)
	}
	if _, err := os.Stat(filepath.Join(dir, "downloads", "other")); err == nil {
		t.Error("asking for an unknown store made its directory")
	}
	if _, errs := command(2); !strings.Contains(errs, "--store") {
		t.Errorf("without a store: %s", errs)
	}
}
