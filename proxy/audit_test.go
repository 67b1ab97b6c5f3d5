package proxy

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"cdpmux/proxy/proxytest"
	"cdpmux/routing"
)

// startAudited is a server whose decisions go to path.
func startAudited(t *testing.T, path string) *testServer {
	t.Helper()
	audit, err := OpenAudit(path, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	audit.room = 500
	t.Cleanup(func() { // after the server's end
		if err := audit.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return startServer(t, func(s *testServer) { s.Server = New(Config{MaxClients: 16, Logger: zerolog.Nop(), Audit: audit}) })
}

// readAudit reads lines until one has the method.
func readAudit(t *testing.T, r *bufio.Scanner, until string) (lines []auditLine) {
	t.Helper()
	for r.Scan() {
		var l auditLine
		if err := json.Unmarshal(r.Bytes(), &l); err != nil {
			t.Fatalf("%s: %v", r.Bytes(), err)
		}
		if lines = append(lines, l); l.Method == until {
			return lines
		}
	}
	t.Fatalf("%s does not come: %v", until, r.Err())
	return nil
}

// pipe is a file that is read as it is written.
func pipe(t *testing.T) (string, *bufio.Scanner) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return path, bufio.NewScanner(f)
}

func TestAuditSaysWhoDidWhat(t *testing.T) {
	path, lines := pipe(t)
	s := startAudited(t, path)
	c := proxytest.Dial(t, s.ws("/client-a-w2"))
	p := c.NewPage("about:blank")
	c.CallErr(p.Session, "Page.navigate", map[string]any{"url": "file:///etc/passwd?s3cr3t"})
	c.CallErr("", "Browser.crash", map[string]any{"secret": "s3cr3t"})
	c.CallErr("", "Inject.\",\"decision\":\"allowed\n{", nil)
	if status, _, body := s.do(t, http.MethodPut, "/client-a-w2/json/new?FI%09LE:///etc/passwd"); status != http.StatusForbidden || !strings.Contains(body, "--allow-scheme file") {
		t.Errorf("PUT /json/new of a file: %d %s", status, body)
	}
	for _, l := range readAudit(t, lines, "PUT /json/new") {
		if at, err := time.Parse(time.RFC3339, l.Time); err != nil || time.Since(at) > patience {
			t.Errorf("time %q: %v", l.Time, err)
		}
		if l.Client != "a-w2" || strings.Contains(l.Method+l.Target+l.Why, "s3cr3t") {
			t.Errorf("line %+v", l)
		}
		got := strings.TrimSpace(l.Decision + " " + l.Why)
		want := map[string]string{
			"Page.navigate": "refused scheme", "Browser.crash": "refused policy", "PUT /json/new": "refused scheme",
			"Inject.\",\"decision\":\"allowed\n{": "refused unknown",
		}[l.Method]
		if want == "" {
			want = "allowed"
		}
		if onPage := strings.HasPrefix(l.Method, "Page."); got != want || (l.Target == p.TargetID) != onPage {
			t.Errorf("%+v: want %s", l, want)
		}
	}
}

// A disk that does not follow holds the clients up, and costs no line.
func TestAuditLosesNothing(t *testing.T) {
	path, lines := pipe(t)
	s := startAudited(t, path)
	c := proxytest.Dial(t, s.ws("/client-a"))
	c.Call("", "Browser.getVersion", nil) // what waits for the browser comes at once
	const n = 3_000                       // more than the pipe and the room take
	var last *proxytest.Pending
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range n {
			last = c.Go("", "Browser.getVersion", nil)
		}
	}()
	waiting := func() int {
		s.cfg.Audit.mu.Lock()
		defer s.cfg.Audit.mu.Unlock()
		return s.cfg.Audit.held
	}
	for end := time.Now().Add(patience); waiting() < s.cfg.Audit.room; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d lines are held", waiting())
		}
	}
	if most := s.cfg.Audit.room + batchMost; waiting() > most {
		t.Errorf("%d lines are held, want at most %d", waiting(), most)
	}
	got := -1
	for got < n {
		got += len(readAudit(t, lines, "Browser.getVersion"))
	}
	<-sent
	if _, err := last.Wait(); err != nil {
		t.Error(err)
	}
	if got != n {
		t.Errorf("%d lines, want %d", got, n)
	}
}

// A disk that takes nothing is told of once, and tried again.
func TestAuditTriesAgain(t *testing.T) {
	log := make(lines, 10)
	audit, err := OpenAudit("/dev/full", zerolog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	audit.put(&routing.Decision{Method: "Page.enable", Kind: "allowed"})
	if line := string(<-log); !strings.Contains(line, "no space left") || !strings.Contains(line, `"level":"error"`) {
		t.Errorf("log %s", line)
	}
	gone := make(chan struct{})
	close(gone)
	audit.mu.Lock()
	audit.held = auditRoom
	audit.mu.Unlock()
	audit.wait(gone) // who is gone is not held up
	if err := audit.Close(); err != nil {
		t.Error(err)
	}
	if line := string(<-log); !strings.Contains(line, "the end of the audit is not written") {
		t.Errorf("log %s", line)
	}
}

// A decision is put under the lock of all clients: its line is made elsewhere.
func TestAuditPutMakesNoLine(t *testing.T) {
	a := &Audit{lines: make([]decided, 0, 101)}
	a.more = sync.NewCond(&a.mu)
	d := &routing.Decision{Method: "Page.enable", Kind: "allowed"}
	if n := testing.AllocsPerRun(100, func() { a.put(d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAuditFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for range 2 {
		audit, err := OpenAudit(path, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		audit.put(&routing.Decision{Method: "Page.enable", Kind: "allowed"})
		if err := audit.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("a file opened twice has %s, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAudit(path, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others read: %v", err)
	}
}
