package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cdpmux/proxy/proxytest"
)

// What was there before a browser starts is moved away, and what a dead one
// left half done is removed.
func TestDownloadsOfBefore(t *testing.T) {
	t.Parallel()
	home := tempHome(t)
	dir := filepath.Join(home, "downloads", "t")
	if err := os.MkdirAll(filepath.Join(dir, ".staging"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"old.csv": "old", ".staging/0-1.crdownload": "half", ".staging/0-2": "whole"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := serveAt(t, home)
	site := proxytest.StartSite(t)
	a := m.downloader(t, site, "a", "default", "")
	if got := visible(t, dir); len(got) != 1 || got[0] != "_prev" {
		t.Errorf("download directory at the browser's start: want _prev alone, got %q", got)
	}
	stamps := visible(t, filepath.Join(dir, "_prev"))
	if len(stamps) != 1 {
		t.Fatalf("want one directory of earlier files, got %q", stamps)
	}
	mustHold(t, filepath.Join(dir, "_prev", stamps[0], "old.csv"), []byte("old"))
	mustHold(t, filepath.Join(dir, "_prev", stamps[0], "0-2"), []byte("whole"))
	if got := visible(t, filepath.Join(dir, ".staging")); len(got) != 0 {
		t.Errorf("staging directory at the browser's start: want it empty, got %q", got)
	}

	// The browser dies in a download: its client hears so. What has arrived
	// stays where the client knows it.
	a.fetch(link(site, "/file", "kept.csv", "kept", 0))
	kept := a.mustArrive(t, a.begun(t).GUID, []byte("kept"))
	a.fetch(link(site, "/hold", "hold.bin", "x", 0))
	held := a.begun(t)
	if err := syscall.Kill(m.browserPID(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := a.ended(t, held.GUID); e.State != "canceled" {
		t.Errorf("a download whose browser died: got %+v", e)
	}
	eventually(t, 30*time.Second, "new browser", func() bool {
		_, err := a.CallErr("", "Browser.getVersion", nil)
		return err == nil
	})
	a.page = a.NewPage("about:blank")
	a.page.Navigate(site.URL + "/download")
	a.fetch(link(site, "/file", "next.csv", "next", 0))
	a.mustArrive(t, a.begun(t).GUID, []byte("next"))
	mustHold(t, kept, []byte("kept"))
	if got := visible(t, filepath.Join(dir, ".staging")); len(got) != 0 {
		t.Errorf("staging directory after the browser's death: want it empty, got %q", got)
	}
}

// A full disk is an error in the log and in the status, and a canceled event;
// when there is room again, downloads arrive again.
func TestDownloadOnAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	home := tempHome(t)
	dir := filepath.Join(home, "downloads", "t")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	m := serveAt(t, home)
	site := proxytest.StartSite(t)
	a := m.downloader(t, site, "a", "default", "")
	a.fetch(link(site, "/file", "big.csv", "big", 3<<20))
	if e := a.ended(t, a.begun(t).GUID); e.State != "canceled" {
		t.Errorf("a download larger than the disk: got %+v", e)
	}
	if got := visible(t, dir); len(got) != 0 {
		t.Errorf("files after it: want none, got %q", got)
	}
	status := start(t, raceBinary(t), "status", "--store", "t", "--home", home)
	if code := status.wait(t, 30*time.Second); code != 0 || !strings.Contains(status.stdout.String(), "1 failed") || !strings.Contains(status.stdout.String(), "disk is full") {
		t.Errorf("status, exit code %d: want one download failed and why, got %s%s", code, &status.stdout, &status.stderr)
	}
	if !strings.Contains(m.stderr.String(), "did not arrive") {
		t.Error("no line in the log of the download that failed")
	}
	eventually(t, 10*time.Second, "empty staging directory", func() bool {
		return len(visible(t, filepath.Join(dir, ".staging"))) == 0
	})
	a.fetch(link(site, "/file", "small.csv", "small", 1<<10))
	a.mustArrive(t, a.begun(t).GUID, proxytest.FileText("small", 1<<10))
}

// Two stores never share a directory, even for one client id and one file name.
func TestDownloadsOfTwoStores(t *testing.T) {
	t.Parallel()
	site := proxytest.StartSite(t)
	var all []func()
	paths := make([]string, 2)
	for i := range paths {
		m := serve(t, "--downloads", "client")
		a := m.downloader(t, site, "same", "default", "")
		all = append(all, func() {
			mark := strings.Repeat("store", i+1)
			a.fetch(link(site, "/file", "report.csv", mark, 0))
			paths[i] = a.mustArrive(t, a.begun(t).GUID, []byte(mark))
			if want := filepath.Join(m.downloads(), "same", "report.csv"); paths[i] != want {
				t.Errorf("file of store %d: want %s, got %s", i, want, paths[i])
			}
		})
	}
	together(all...)
}

// A tab with a download under way is not closed for the sake of the cap.
func TestDownloadKeepsItsTab(t *testing.T) {
	t.Parallel()
	m := serve(t, "--tab-cap", "2")
	site := proxytest.StartSite(t)
	a := m.downloader(t, site, "a", "default", "")
	a.fetch(link(site, "/hold", "hold.bin", "x", 0))
	held := a.begun(t)
	second := a.NewPage("about:blank")
	a.NewPage("about:blank")
	closed := a.AwaitEvent("", "Target.detachedFromTarget")
	if got := closed.Param("sessionId"); got != second.Session {
		t.Errorf("at one tab too many: want the idle tab's session %s ended, got %s", second.Session, got)
	}
	a.Call("", "Browser.cancelDownload", params{"guid": held.GUID})
	if e := a.ended(t, held.GUID); e.State != "canceled" {
		t.Errorf("got %+v", e)
	}
}
