package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cdpmux/proxy/download"
	"cdpmux/proxy/proxytest"
)

// downloaders are the client libraries that download, each in its own way, by
// the script downloads.* beside its scenario. It is called with an endpoint, a
// page to start from and addresses of files. It prints "ready", waits for a
// line on stdin, and prints for each file, as JSON, a list of the paths at which
// the file is until stdin ends.
var downloaders = []library{
	{"playwright", []string{"node", "downloads.mjs"}, "http://%s/client-playwright"},
	{"puppeteer", []string{"node", "downloads.mjs"}, "ws://%s/client-puppeteer"},
	{"agent-browser", []string{"node", "downloads.mjs"}, "ws://%s/client-agent-browser"},
	{"browser-use", []string{"python", "downloads.py"}, "http://%s/client-browser-use"},
}

// wanted is a file that a client is to download.
type wanted struct {
	url     string
	content []byte
}

// Four client libraries and a raw client download at once, some files of one
// name: every byte arrives, where each client looks for it and in the store's
// directory, where it stays when Playwright removes its own on leaving. Each
// client hears of its own downloads alone.
func TestDownloadsOfRealClients(t *testing.T) {
	t.Parallel()
	mustKeepHomeClean(t)
	m := serve(t)
	site := proxytest.StartSite(t)
	n := scaled(t, 20)

	files := map[string][]wanted{}
	recorders := map[string]*recorder{}
	for _, client := range []string{"playwright", "puppeteer", "agent-browser", "browser-use", "raw"} {
		recorders[client] = record(t, m.addr)
		for i := range n {
			name := "report.csv"
			if i%3 == 2 {
				name = fmt.Sprint(i, ".csv")
			}
			mark := fmt.Sprintf("file-%d-of-%s,", i, client)
			files[client] = append(files[client], wanted{link(site, "/file", name, mark, 100_000), proxytest.FileText(mark, 100_000)})
		}
	}
	var all []func()
	var preparing sync.WaitGroup
	preparing.Add(len(files))
	atOnce := func(run func(ready func())) {
		here := sync.OnceFunc(preparing.Done)
		all = append(all, func() {
			defer here() // whoever fails before keeps nobody waiting
			run(func() { here(); preparing.Wait() })
		})
	}
	for _, each := range downloaders {
		atOnce(func(ready func()) {
			each.download(t, fmt.Sprintf(each.endpoint, recorders[each.name].addr), site, files[each.name], ready)
		})
	}
	atOnce(func(ready func()) {
		a := (&mux{addr: recorders["raw"].addr}).downloader(t, site, "raw", "default", "")
		ready()
		for _, file := range files["raw"] {
			a.fetch(file.url)
			a.mustArrive(t, a.begun(t).GUID, file.content)
		}
	})
	together(all...)

	m.mustHaveInStore(t, slices.Concat(slices.Collect(maps.Values(files))...))
	arrivals, err := download.Arrivals(m.downloads())
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]string{} // what each client alone may hear of
	for client := range files {
		secrets[client] = []string{"-of-" + client}
	}
	for _, each := range arrivals {
		secrets[each.Client] = append(secrets[each.Client], each.GUID)
	}
	for client, own := range secrets {
		if len(own) != 1+n {
			t.Errorf("journal: want %d downloads of %s, got %d", n, client, len(own)-1)
		}
	}
	for client, recorder := range recorders {
		mustHearOf(t, client, recorder.received(), secrets)
	}
}

// mustHearOf checks that a client received each of its own secrets, and none
// of another's.
func mustHearOf(t *testing.T, client, received string, secrets map[string][]string) {
	t.Helper()
	if strings.Contains(received, "permessage-deflate") {
		t.Errorf("%s received compressed messages: nothing can be found in them", client)
	}
	for owner, all := range secrets {
		for _, secret := range all {
			at := strings.Index(received, secret)
			switch {
			case owner == client && at < 0:
				t.Errorf("%s has not heard of its own %s", client, secret)
			case owner != client && at >= 0:
				t.Errorf("%s received %s of %s: %q", client, secret, owner, around(received, at))
			}
		}
	}
}

// download runs the library's script, calls ready, has it begin, and checks
// each file once it is there.
func (l library) download(t *testing.T, endpoint string, site *proxytest.Site, files []wanted, ready func()) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	home := tempHome(t)
	args := []string{endpoint, site.URL + "/download"}
	for _, file := range files {
		args = append(args, file.url)
	}
	cmd := l.cmd(ctx, t, home, args...)
	var stderr output
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan() // it is ready, or has failed
	ready()
	began := time.Now()
	_, _ = fmt.Fprintln(stdin)
	arrived := 0
	for ; arrived < len(files) && lines.Scan(); arrived++ {
		var paths []string
		if err := json.Unmarshal(lines.Bytes(), &paths); err != nil || len(paths) == 0 {
			t.Errorf("%s printed %q: want a list of paths", l.name, lines.Text())
		}
		for _, path := range paths {
			if !strings.HasPrefix(path, home+"/") {
				t.Errorf("%s: want its file in %s, got %s", l.name, home, path)
			}
			mustHold(t, path, files[arrived].content)
		}
	}
	t.Logf("%s: %d files in %v", l.name, arrived, time.Since(began).Round(time.Millisecond))
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil || arrived < len(files) {
		t.Errorf("%s: %d files of %d, %v; it wrote:\n%s", l.name, arrived, len(files), err, tail(stderr.String(), 40))
	}
	mustLeaveNothing(t, home)
}

// mustHaveInStore checks that these files, and no others, are in the store's
// directory.
func (m *mux) mustHaveInStore(t *testing.T, files []wanted) {
	t.Helper()
	count := map[string]int{}
	for _, file := range files {
		count[string(file.content)]++
	}
	for _, name := range visible(t, m.downloads()) {
		got, err := os.ReadFile(filepath.Join(m.downloads(), name))
		if err != nil {
			t.Error(err)
		}
		if count[string(got)]--; count[string(got)] != 0 {
			t.Errorf("%s in the store's directory: want another file's content, got %.30q… again or unasked", name, got)
		}
	}
	for content, missing := range count {
		if missing > 0 {
			t.Errorf("no file in the store's directory has %.30q…", content)
		}
	}
}
