package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// With a proxy that is up, ensure starts none and says where it is.
func TestEnsureOfWhatIsUp(t *testing.T) {
	d := startDouble(t)
	d.says(200, `{"state":"ready"}`)
	out, _ := d.run(t, exitOK, "ensure", "--store", "demo")
	if want := "cdpmux demo ready http://" + d.addr + " connect ws://" + d.addr + "/client-<task_id>\n"; out != want {
		t.Errorf("ready line: %q, want %q", out, want)
	}
	if want := []string{"POST /v1/browser/start", "GET /json/version"}; !slices.Equal(d.asked, want) {
		t.Errorf("asked: %q, want %q", d.asked, want)
	}
	out, _ = d.run(t, exitOK, "ensure", "--store", "demo", "--json")
	var got ensured
	want := ensured{"demo", d.store.ID, "http://" + d.addr, "ws://" + d.addr + "/client-<task_id>", "Chrome/1", false}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got != want {
		t.Errorf("--json: %s, %v, want %+v", out, err, want)
	}

	// What the proxy refuses, ensure tells, with its next step.
	d.says(503, `{"error":"it ended 3 times","failure_kind":"breaker_open","retryable":true,"next":"wait 9m"}`)
	_, errs := d.run(t, exitTryLater, "ensure", "--store", "demo")
	mustSay(t, errs, "breaker_open", "it ended 3 times", "next: wait 9m")
	d.says(503, `{"error":"no Chrome","failure_kind":"browser_missing","retryable":false,"next":"install one"}`)
	_, errs = d.run(t, exitFailed, "ensure", "--store", "demo")
	mustSay(t, errs, "browser_missing", "next: install one")

	// A slug can be given anew: another store's proxy is not taken for ours.
	d.says(200, "{}")
	d.store.ID = "another"
	_, errs = d.run(t, exitFailed, "ensure", "--store", "demo")
	mustSay(t, errs, "demo/another")
	d.says(404, "<html>")
	_, errs = d.run(t, exitFailed, "ensure", "--store", "demo")
	mustSay(t, errs, "404", d.addr)
}

func TestEnsureOfDisabled(t *testing.T) {
	d := startDouble(t)
	for range 2 { // twice is as good as once
		d.run(t, exitOK, "disable", "--store", "demo")
	}
	_, errs := d.run(t, exitFailed, "ensure", "--store", "demo")
	mustSay(t, errs, "demo is disabled", "next: cdpmux enable --store demo")
	if len(d.asked) != 0 {
		t.Errorf("asked for a disabled store: %q", d.asked)
	}
	d.run(t, exitOK, "enable", "--store", "demo")
	d.says(200, "{}")
	d.run(t, exitOK, "ensure", "--store", "demo")
	d.run(t, exitFailed, "disable", "--store", "other")
}

// The flags after -- are checked before they are remembered.
func TestServeFlagsAreRemembered(t *testing.T) {
	d := startDouble(t)
	d.says(200, "{}")
	remembered := func() string {
		t.Helper()
		s, err := d.home.Store("demo")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(s.Serve, " ")
	}
	ensure := func(code int, flags ...string) string {
		t.Helper()
		// Flags of ours stand before the --.
		out := append([]string{"ensure", "--home", d.home.Dir(), "--store", "demo"}, flags...)
		return runFor(t, code, out...)
	}
	ensure(exitOK, "--", "--headless", "--grace", "10m")
	if got := remembered(); got != "--headless --grace 10m" {
		t.Errorf("remembered: %q", got)
	}
	for _, bad := range [][]string{
		{"--frobnicate"}, {"--grace", "soon"}, {"more"}, {"--store", "x"}, {"--home", "/x"}, {"--listen", "127.0.0.1"}, {"--listen", "unix:relative"},
		{"--profile", "some/where"}, {"--chrome", "./chrome"}, {"--browser", "attach"}, {"--ziniao-account", "./account"}, {"--tls-cert", "./cert", "--tls-key", "/key"},
	} {
		ensure(exitUsage, append([]string{"--"}, bad...)...)
	}
	ensure(exitUsage, "--headless")
	ensure(exitUsage, "headless")
	ensure(exitOK)
	if got := remembered(); got != "--headless --grace 10m" {
		t.Errorf("remembered after what was refused, and after none: %q", got)
	}
	mustSay(t, ensure(exitOK, "--", "--chrome", "chromium"), "served already")
	if got := remembered(); got != "--chrome chromium" {
		t.Errorf("remembered: %q", got)
	}
	ensure(exitOK, "--")
	if got := remembered(); got != "" {
		t.Errorf("remembered after a lone --: %q", got)
	}
}

func TestStores(t *testing.T) {
	d := startDouble(t)
	add := []string{"stores", "add", "--home", d.home.Dir(), "--store", "My Shop", "--id", "17", "--", "--headless"}
	for range 2 {
		runFor(t, exitOK, add...)
	}
	out, _ := d.run(t, exitOK, "stores", "list", "--json")
	var list []listed
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 2 {
		t.Fatalf("list: %s, %v", out, err)
	}
	if got := list[1]; got.Store != "my-shop" || got.ID != "17" || got.Addr != "127.0.0.1:9400" || got.Disabled || strings.Join(got.Serve, " ") != "--headless" {
		t.Errorf("the added store: %+v", got)
	}
	out = runFor(t, exitFailed, "stores", "add", "--home", d.home.Dir(), "--store", "third", "--", "--listen", "127.0.0.1:9400")
	mustSay(t, out, "9400", "my-shop")
	out = runFor(t, exitOK, "stores", "add", "--home", d.home.Dir(), "--store", "third", "--", "--listen", "127.0.0.1:9999")
	mustSay(t, out, "third ", " 127.0.0.1:9999\n")
	out = runFor(t, exitOK, "stores", "add", "--home", d.home.Dir(), "--store", "third", "--", "--listen", "unix:/run/third.sock")
	mustSay(t, out, "third ", " unix:/run/third.sock\n")
	out = runFor(t, exitOK, "stores", "add", "--home", d.home.Dir(), "--store", "fourth", "--", "--listen", "127.0.0.1:0")
	mustSay(t, out, "fourth ", " 127.0.0.1:9401\n") // a port of its own, should it be served without the flag
	d.run(t, exitOK, "disable", "--store", "my shop")
	table, _ := d.run(t, exitOK, "stores", "list")
	mustSay(t, table, "ENABLED", "my-shop  17", "no ", "--headless")

	profile, err := d.home.Profile("my-shop")
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(d.home.Dir(), "bin", "my-shop", "browser-use")
	if err := os.MkdirAll(filepath.Dir(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\n# somebody else's\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, _ = d.run(t, exitOK, "stores", "remove", "--store", "my shop")
	mustSay(t, out, "my-shop: removed, its profile and downloads stay", "wrapper stays")
	for _, path := range []string{profile, wrapper} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("after remove: %v", err)
		}
	}
	d.run(t, exitFailed, "stores", "remove", "--store", "my shop")
	d.run(t, exitOK, "stores", "remove", "--store", "my shop", "--purge") // what remove left
	if _, err := os.Stat(profile); err == nil {
		t.Error("the profile is there after a purge")
	}
	_, errs := d.run(t, exitHeld, "stores", "remove", "--store", "demo")
	mustSay(t, errs, "served by another cdpmux")
}
