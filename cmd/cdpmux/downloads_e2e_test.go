package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cdpmux/proxy/download"
	"cdpmux/proxy/proxytest"
)

// downloadEvent is Browser.downloadWillBegin or downloadProgress.
type downloadEvent struct {
	FrameID, GUID, URL, SuggestedFilename, State, FilePath string
}

// agent is a client with a tab that hears of its downloads.
type agent struct {
	*proxytest.Client
	page     proxytest.Page
	site     *proxytest.Site
	gestures int
}

// downloader dials as id and asks for download events, and for a directory of
// its own when behavior is not "default".
func (m *mux) downloader(t *testing.T, site *proxytest.Site, id, behavior, dir string) *agent {
	t.Helper()
	a := &agent{Client: m.dial(t, id), site: site}
	p := params{"behavior": behavior, "eventsEnabled": true}
	if dir != "" {
		p["downloadPath"] = dir
	}
	a.Call("", "Browser.setDownloadBehavior", p)
	a.page = a.NewPage("about:blank")
	a.page.Navigate(site.URL + "/download")
	return a
}

// link is the address of a file of the site.
func link(site *proxytest.Site, path, name, mark string, size int) string {
	return fmt.Sprintf("%s%s?n=%s&mark=%s&size=%d", site.URL, path, url.QueryEscape(name), mark, size)
}

// fetch has the page fetch a file as a link with the download attribute does.
func (a *agent) fetch(address string) {
	quoted, _ := json.Marshal(address)
	a.gesture(`const a = document.createElement("a"); a.href = ` + string(quoted) + `; a.download = ""; a.click()`)
}

// gesture runs a script in the page as if its user had clicked: without that
// Chrome holds popups. It asks its user, whom nobody sees, before the eleventh
// download of a page: so the page is loaded anew now and then.
func (a *agent) gesture(script string) {
	if a.gestures++; a.gestures%8 == 0 {
		a.page.Navigate(a.site.URL + "/download")
	}
	a.page.Call("Runtime.evaluate", params{"expression": "(() => { " + script + " })()", "userGesture": true})
}

// begun awaits the next downloadWillBegin.
func (a *agent) begun(t *testing.T) downloadEvent {
	t.Helper()
	return a.downloadEvent(t, func(m proxytest.Msg) bool { return m.Is("", "Browser.downloadWillBegin") })
}

// ended awaits the last event of a download.
func (a *agent) ended(t *testing.T, guid string) downloadEvent {
	t.Helper()
	return a.downloadEvent(t, func(m proxytest.Msg) bool {
		return m.Is("", "Browser.downloadProgress") && m.Param("guid") == guid && m.Param("state") != "inProgress"
	})
}

func (a *agent) downloadEvent(t *testing.T, match func(proxytest.Msg) bool) (e downloadEvent) {
	t.Helper()
	decode(t, a.Await(match).Params, &e)
	return e
}

// mustArrive awaits a completed download and checks the file it names.
func (a *agent) mustArrive(t *testing.T, guid string, want []byte) string {
	t.Helper()
	e := a.ended(t, guid)
	if e.State != "completed" {
		t.Errorf("download %s: want it completed, got %+v", guid, e)
		return ""
	}
	mustHold(t, e.FilePath, want)
	return e.FilePath
}

func mustHold(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s: want %d bytes %.20q…, got %d bytes %.20q…", path, len(want), want, len(got), got)
	}
}

// downloads is the store's download directory.
func (m *mux) downloads() string { return filepath.Join(m.home, "downloads", "t") }

// visible lists a directory without what is hidden in it.
func visible(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			found = append(found, e.Name())
		}
	}
	return found
}

// mustKeepHomeClean fails the test when Chrome's own download directory grew.
func mustKeepHomeClean(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "Downloads")
	before := len(visible(t, dir))
	t.Cleanup(func() {
		if after := visible(t, dir); len(after) != before {
			t.Errorf("%s: want it as before, got %q", dir, after)
		}
	})
}

// Three clients download files of one name at once, each by a rule of its own:
// every byte arrives, every event is told to its owner alone.
func TestDownloadsHaveOwners(t *testing.T) {
	t.Parallel()
	mustKeepHomeClean(t)
	m := serve(t)
	site := proxytest.StartSite(t)
	dirs := map[string]string{"allow": t.TempDir(), "allowAndName": t.TempDir(), "default": ""}
	var agents []*agent
	for behavior, dir := range dirs {
		agents = append(agents, m.downloader(t, site, behavior, behavior, dir))
	}
	n := scaled(t, 20)
	var all []func()
	for i, a := range agents {
		all = append(all, func() {
			seen := map[string]bool{}
			for j := range n {
				mark := fmt.Sprintf("client %d file %d;", i, j)
				a.fetch(link(site, "/file", "report.csv", url.QueryEscape(mark), 10_000))
				e := a.begun(t)
				path := a.mustArrive(t, e.GUID, proxytest.FileText(mark, 10_000))
				if seen[path] {
					t.Errorf("%s was given twice", path)
				}
				seen[path] = true
			}
			if got := len(a.events("Browser.downloadWillBegin")); got != n {
				t.Errorf("client %d: want word of its own %d downloads, got %d", i, n, got)
			}
		})
	}
	together(all...)
	if got := visible(t, m.downloads()); len(got) != 3*n {
		t.Errorf("files in the store's directory: want %d, got %q", 3*n, got)
	}
	for _, dir := range []string{dirs["allow"], dirs["allowAndName"]} {
		if got := visible(t, dir); len(got) != n {
			t.Errorf("files in %s: want %d, got %q", dir, n, got)
		}
	}
	if arrived, err := download.Arrivals(m.downloads()); err != nil || len(arrived) != 3*n {
		t.Errorf("journal: want %d lines, got %d (%v)", 3*n, len(arrived), err)
	}
	run := start(t, raceBinary(t), "downloads", "--store", "t", "--home", m.home, "--client", "allow", "--json")
	if code := run.wait(t, 10*time.Second); code != 0 {
		t.Errorf("cdpmux downloads: exit code %d: %s", code, &run.stderr)
	}
	var listed []download.Arrival
	decode(t, []byte(run.stdout.String()), &listed)
	if len(listed) != n || listed[0].Client != "allow" || strings.Contains(listed[0].URL, "?") {
		t.Errorf("cdpmux downloads: want %d of client allow without queries, got %s", n, &run.stdout)
	}
}

func (a *agent) events(method string) (found []proxytest.Msg) {
	for _, m := range a.Transcript() {
		if m.Method == method {
			found = append(found, m)
		}
	}
	return found
}

// A download arrives wherever in its client's pages it began.
func TestDownloadsFromEverywhere(t *testing.T) {
	t.Parallel()
	mustKeepHomeClean(t)
	m := serve(t)
	site := proxytest.StartSite(t)
	other := m.downloader(t, site, "other", "default", "")
	a := m.downloader(t, site, "a", "default", "")
	a.page.Call("Page.enable", nil)
	for name, step := range map[string]struct{ script, want string }{
		"iframe":       {`document.getElementById("near").contentDocument.getElementById("file").click()`, "link"},
		"form post":    {`document.getElementById("form").submit()`, "form"},
		"post _blank":  {`const f = document.getElementById("form").cloneNode(true); f.target = "_blank"; document.body.append(f); f.submit()`, "form"},
		"blob":         {`const b = document.createElement("a"); b.download = "b.txt"; b.href = URL.createObjectURL(new Blob(["blob"])); b.click()`, "blob"},
		"data":         {`const d = document.createElement("a"); d.download = "d.txt"; d.href = "data:text/plain,data"; d.click()`, "data"},
		"popup":        {`window.open("/file?n=p.txt&mark=popup")`, "popup"},
		"noopener":     {`window.open("/file?n=p.txt&mark=noopener", "", "noopener")`, "noopener"},
		"a[download]":  {`const c = document.createElement("a"); c.download = "c.txt"; c.href = "/plain"; c.click()`, ""},
		"location":     {`location = "/file?n=l.txt&mark=location"`, "location"},
		"popup's page": {`const w = window.open("/download"); w.onload = () => w.document.getElementById("file").click()`, "link"},
	} {
		a.gesture(step.script)
		e := a.begun(t)
		last := a.ended(t, e.GUID)
		if last.State != "completed" {
			t.Errorf("%s: got %+v", name, last)
			continue
		}
		if step.want != "" {
			mustHold(t, last.FilePath, []byte(step.want))
		}
		if len(a.events("Page.downloadWillBegin")) == 0 && !strings.Contains(name, "popup") && !strings.Contains(name, "blank") && name != "noopener" {
			t.Errorf("%s: no Page.downloadWillBegin on the page's session", name)
		}
	}

	// A link with Ctrl: its tab closes itself.
	at := a.page.Eval(`(() => { const r = document.getElementById("file").getBoundingClientRect(); return [r.x + 2, r.y + 2] })()`)
	var point [2]float64
	decode(t, at, &point)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		a.page.Call("Input.dispatchMouseEvent", params{"type": kind, "x": point[0], "y": point[1], "button": "left", "clickCount": 1, "modifiers": 2})
	}
	a.mustArrive(t, a.begun(t).GUID, []byte("link"))

	// A tab made for the file.
	a.Call("", "Target.createTarget", params{"url": link(site, "/file", "t.txt", "tab", 0)})
	a.mustArrive(t, a.begun(t).GUID, []byte("tab"))

	// A frame of another site, which is a target of its own.
	far := a.NewPage("about:blank")
	far.Call("Target.setAutoAttach", params{"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true})
	far.Navigate(site.URL + "/downloads-afar")
	frame := a.Await(func(m proxytest.Msg) bool { return m.Is(far.Session, "Target.attachedToTarget") })
	inside := a.On("", frame.Param("sessionId"))
	inside.Eval(`new Promise(done => document.readyState == "complete" ? done() : onload = done)`)
	inside.Eval(`document.getElementById("file").click()`)
	a.mustArrive(t, a.begun(t).GUID, []byte("link"))

	// In a context of its own.
	var made struct{ BrowserContextID, TargetID string }
	decode(t, a.Call("", "Target.createBrowserContext", nil), &made)
	decode(t, a.Call("", "Target.createTarget", params{"url": "about:blank", "browserContextId": made.BrowserContextID}), &made)
	private := a.Attach(made.TargetID)
	private.Call("Page.navigate", params{"url": link(site, "/file", "c.txt", "context", 0)})
	a.mustArrive(t, a.begun(t).GUID, []byte("context"))

	if heard := other.events("Browser.downloadWillBegin"); len(heard) != 0 {
		t.Errorf("a neighbour heard of %d downloads, the first %s", len(heard), heard[0])
	}
}

// Names are made safe, and a client's directory is used when it may be.
func TestDownloadNamesAndDirectories(t *testing.T) {
	t.Parallel()
	m := serve(t)
	site := proxytest.StartSite(t)
	a := m.downloader(t, site, "a", "default", "")
	for i, name := range []string{
		strings.Repeat("long", 75) + ".csv", "报告.csv", "😀.txt", ".hidden", "../../up.txt", "a/b.txt", `a\b.txt`, "_prev", "plain",
	} {
		mark := fmt.Sprint("name", i)
		a.fetch(link(site, "/file", name, mark, 0))
		path := a.mustArrive(t, a.begun(t).GUID, []byte(mark))
		base := filepath.Base(path)
		if filepath.Dir(path) != m.downloads() || len(base) > 255 || strings.HasPrefix(base, ".") || base == "_prev" {
			t.Errorf("file called %q: got %s", name, path)
		}
		if (i == 1 || i == 2) && base != name {
			t.Errorf("file called %q: want the name kept, got %s", name, base)
		}
	}

	root := t.TempDir()
	if err := os.Symlink(root, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		filepath.Join(root, "made"):        filepath.Join(root, "made"),
		"relative":                         m.downloads(),
		filepath.Join(root, "link"):        m.downloads(),
		root + "/made/../../x":             m.downloads(),
		"/etc":                             m.downloads(),
		filepath.Join(m.downloads(), "in"): filepath.Join(m.downloads(), "in"),
	} {
		a.Call("", "Browser.setDownloadBehavior", params{"behavior": "allow", "downloadPath": dir, "eventsEnabled": true})
		a.fetch(link(site, "/file", "dir.txt", "dir", 0))
		if path := a.mustArrive(t, a.begun(t).GUID, []byte("dir")); filepath.Dir(path) != want {
			t.Errorf("downloads asked for in %s: want one in %s, got %s", dir, want, path)
		}
	}
	eventually(t, 10*time.Second, "four warnings of directories that may not be used", func() bool {
		return strings.Count(m.stderr.String(), "not in the directory that its client asked for") == 4
	})
	if _, err := os.Stat("/etc/dir.txt"); err == nil {
		t.Error("a file went to /etc")
	}
}

// The one who set a rule leaves, and the next download still arrives; so does
// what its own page had begun.
func TestDownloadsOutliveTheirSetter(t *testing.T) {
	t.Parallel()
	mustKeepHomeClean(t)
	m := serve(t, "--grace", "20s")
	site := proxytest.StartSite(t)
	stays := m.downloader(t, site, "stays", "default", "")
	next := func(after string) {
		t.Helper()
		stays.fetch(link(site, "/file", "next.txt", "next", 0))
		path := stays.mustArrive(t, stays.begun(t).GUID, []byte("next"))
		if filepath.Dir(path) != m.downloads() {
			t.Errorf("after %s: got %s", after, path)
		}
	}
	dir := t.TempDir()
	goes := m.downloader(t, site, "goes", "default", "")
	goes.page.Call("Browser.setDownloadBehavior", params{"behavior": "allowAndName", "downloadPath": dir, "eventsEnabled": true})
	goes.fetch(link(site, "/file", "mine.txt", "mine", 0))
	e := goes.begun(t)
	if path := goes.mustArrive(t, e.GUID, []byte("mine")); path != filepath.Join(dir, e.GUID) {
		t.Errorf("with a rule of its own: got %s", path)
	}
	goes.AwaitEvent(goes.page.Session, "Browser.downloadWillBegin")
	goes.Call("", "Target.detachFromTarget", params{"sessionId": goes.page.Session})
	next("the setter's session was detached")

	goes.page = goes.Attach(goes.page.TargetID)
	goes.Call("", "Browser.setDownloadBehavior", params{"behavior": "allow", "downloadPath": dir, "eventsEnabled": true})
	goes.fetch(link(site, "/file", "late.bin", "late", 16<<20))
	goes.begun(t)
	goes.Drop()
	next("the setter's connection was cut")
	late := filepath.Join(m.downloads(), "late.bin")
	eventually(t, 10*time.Second, "file of a client in grace", func() bool {
		arrived, err := download.Arrivals(m.downloads())
		return err == nil && slices.ContainsFunc(arrived, func(a download.Arrival) bool { return a.Name == "late.bin" && a.Client == "goes" })
	})
	mustHold(t, late, proxytest.FileText("late", 16<<20))
}

// A client's deny and cancel end its own downloads, and nobody else's.
func TestDownloadsCanceled(t *testing.T) {
	t.Parallel()
	m := serve(t)
	site := proxytest.StartSite(t)
	a, b := m.downloader(t, site, "a", "default", ""), m.downloader(t, site, "b", "deny", "")
	a.fetch(link(site, "/hold", "hold.bin", "x", 0))
	held := a.begun(t)
	if _, err := b.CallErr("", "Browser.cancelDownload", params{"guid": held.GUID}); err == nil || err.Code != -32602 || err.Message != "No download item found for the given GUID" {
		t.Errorf("cancel of another's download: got %v", err)
	}
	b.fetch(link(site, "/file", "denied.txt", "denied", 0))
	if e := b.ended(t, b.begun(t).GUID); e.State != "canceled" {
		t.Errorf("a download of who denies: got %+v", e)
	}
	if got := visible(t, m.downloads()); len(got) != 0 {
		t.Errorf("files after a denied download: want none, got %q", got)
	}
	a.Call("", "Browser.cancelDownload", params{"guid": held.GUID})
	if e := a.ended(t, held.GUID); e.State != "canceled" {
		t.Errorf("a cancelled download: got %+v", e)
	}
	a.Call("", "Browser.cancelDownload", params{"guid": held.GUID}) // known still, as to Chrome
	for _, p := range []params{{}, {"behavior": "allow"}, {"behavior": 1}, {"behavior": "deny", "browserContextId": "x"}, {"behavior": "allow", "downloadPath": 1}} {
		_, here := a.CallErr("", "Browser.setDownloadBehavior", p)
		_, there := a.CallErr(a.page.Session, "Browser.setDownloadBehavior", p)
		if here == nil || there == nil || here.Code != -32602 || there.Message != here.Message {
			t.Errorf("setDownloadBehavior %v: want Chrome's error, got %v and %v", p, here, there)
		}
	}
}

// A big file beside a neighbour who works.
func TestDownloadOfABigFile(t *testing.T) {
	t.Parallel()
	m := serve(t)
	site := proxytest.StartSite(t)
	a, neighbour := m.downloader(t, site, "a", "default", ""), m.dial(t, "neighbour").NewPage("about:blank")
	size := scaled(t, 500) << 20
	a.fetch(link(site, "/file", "big.bin", "0123456789", size))
	e := a.begun(t)
	for range 100 {
		within(t, patience, "answer beside a big download", func() { neighbour.Eval("1") })
	}
	last := a.ended(t, e.GUID)
	fi, err := os.Stat(last.FilePath)
	if err != nil || fi.Size() != int64(size) {
		t.Errorf("big file: want %d bytes, got %v (%v)", size, fi, err)
	}
}
