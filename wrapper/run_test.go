package wrapper

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What stands on stdin reaches browser-use byte for byte.
func TestStdin(t *testing.T) {
	t.Parallel()
	odd := "print(\"$HOME\", '`id`', \\n, 店铺)\n\tlast line without its end: é\r"
	for name, text := range map[string]string{
		"nothing": "", "1 byte": "x", "a newline": "\n", "odd": odd, "NUL": "a\x00b",
		"64 KiB and 1": strings.Repeat("0123456789abcdef", 4096) + "x",
		"1 MB":         strings.Repeat(odd, 1_000_000/len(odd)+1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, nil)
			cmd := p.command(t)
			cmd.Stdin = strings.NewReader(text)
			if got := finish(t, cmd); got.code != 0 {
				t.Fatal(got)
			}
			if got := p.note(t, "stdin"); got != text {
				t.Errorf("stdin of browser-use: want %d bytes, got %d: %.100q", len(text), len(got), got)
			}
		})
	}
	t.Run("heredoc", func(t *testing.T) {
		t.Parallel()
		p := newPost(t, nil)
		text := strings.TrimRight(odd, "\n") + "\n"
		if got := p.shell(t, "\"$BU\" --worker 1 'a b' <<'PY'\n"+text+"PY"); got.code != 0 {
			t.Fatal(got)
		}
		mustEqual(t, "stdin", text, p.note(t, "stdin"))
		mustEqual(t, "arguments", "a b\x00", p.note(t, "args"))
	})
	t.Run("closed streams", func(t *testing.T) {
		t.Parallel()
		p := newPost(t, nil)
		for _, redirect := range []string{"<&-", "</dev/null", ">&- 2>&-", "<&- >&- 2>&-"} {
			p.forget(t)
			if got := p.shell(t, `exec "$BU" `+redirect); got.code != 0 {
				t.Errorf("%s: %v", redirect, got)
			}
			mustEqual(t, redirect+": calls", "run\n", p.note(t, "calls"))
			mustEqual(t, redirect+": stdin", "", p.note(t, "stdin"))
		}
	})
}

// shell runs bash code in which $BU is the script.
func (p *post) shell(t *testing.T, code string) outcome {
	t.Helper()
	cmd := p.command(t)
	cmd.Env = append(cmd.Env, "BU="+cmd.Path)
	cmd.Path, cmd.Args = which(t, "bash"), []string{"bash", "-c", code}
	return finish(t, cmd)
}

// Both outputs and the status are those of browser-use, also when it dies.
func TestOutputAndStatus(t *testing.T) {
	t.Parallel()
	for do, want := range map[string]outcome{
		"printf out; printf err >&2; exit 7": {code: 7, stdout: "out", stderr: "err"},
		"kill -KILL $$":                      {code: 137},
		"kill -SEGV $$":                      {code: 139},
		"exit 75":                            {code: 75},
		"exit 255":                           {code: 255},
	} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, nil)
			p.env = append(p.env, "STUB_DO=ulimit -c 0; "+do)
			got := p.call(t)
			got.took = 0
			mustEqual(t, do, want, got)
		})
	}
	t.Run("5 MB", func(t *testing.T) {
		t.Parallel()
		p := newPost(t, nil)
		p.env = append(p.env, `STUB_DO=perl -e 'print "0123456789" x 500000'`)
		got := p.call(t)
		mustEqual(t, "output", 5_000_000, len(got.stdout))
		if left, _ := filepath.Glob(filepath.Join(p.script.Home, "tmp", "*", ".out*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("as it comes", func(t *testing.T) {
		t.Parallel()
		p := newPost(t, nil)
		p.env = append(p.env, "STUB_DO=echo first; while [ ! -e go ]; do sleep 0.05; done; echo last")
		cmd := p.command(t)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 6)
		if _, err := io.ReadFull(out, first); err != nil || string(first) != "first\n" {
			t.Fatalf("while browser-use runs: want first, got %q, %v", first, err)
		}
		if err := os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(out)
		mustEqual(t, "rest", "last\n", string(rest))
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// A reader that goes away takes nothing from the call: it runs to its end, and
// the status is its own.
func TestReaderGoes(t *testing.T) {
	t.Parallel()
	p := newPost(t, nil)
	p.env = append(p.env, `STUB_DO=perl -e 'print "line\n" x 100000'; echo done >"$STUB_DIR/done"; exit 3`)
	got := p.shell(t, `"$BU" | head -1; echo "${PIPESTATUS[0]}"`)
	mustEqual(t, "output", "line\n3\n", got.stdout)
	mustEqual(t, "end of the call", "done\n", p.note(t, "done"))
}

// A daemon that browser-use leaves behind holds neither pipe, and lives on.
func TestDaemonLeftBehind(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]string{
		"after the call":        `perl -e 'sleep 60' & echo $! >pid; echo hi`,
		"in a session":          `perl -MPOSIX -e 'setsid; sleep 60' & echo $! >pid; echo hi`,
		"after the limit":       `perl -e 'sleep 60' & echo $! >pid; echo hi; exec sleep 60`,
		"one that goes on on 1": `perl -e '$|=1; while (1) { print "x" x 1000; select undef, undef, undef, 0.001 }' & echo $! >pid; sleep 0.2; exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := 0
			p := newPost(t, func(s *Script) {
				if name == "after the limit" {
					s.Timeout, want = 4*time.Second, 142
				}
			})
			p.env = append(p.env, "STUB_DO="+do)
			got := p.call(t)
			pid, err := strconv.Atoi(strings.TrimSpace(p.note(t, "pid")))
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Errorf("the daemon, pid %d, is gone: %v", pid, err)
			}
			if got.code != want || got.took > 30*time.Second || name != "one that goes on on 1" && got.stdout != "hi\n" {
				t.Errorf("want exit %d within 30 s, got %v", want, got)
			}
		})
	}
}

// INT, TERM and HUP reach browser-use, whose status the caller gets.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) { // under nohup, and then the script would ignore it, too
				signal.Notify(make(chan os.Signal, 1), sig)
			}
			p := newPost(t, nil)
			name := map[syscall.Signal]string{syscall.SIGINT: "INT", syscall.SIGTERM: "TERM", syscall.SIGHUP: "HUP"}[sig]
			p.env = append(p.env, `STUB_DO=exec perl -MPOSIX -e '$|=1; $SIG{`+name+`} = sub { print "got `+name+`\n"; exit 9 };`+
				` sigprocmask SIG_BLOCK, POSIX::SigSet->new(SIG`+name+`); print "up\n"; alarm 30; sigsuspend(POSIX::SigSet->new)'`)
			cmd := p.command(t)
			var stdout bytes.Buffer
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(&stdout, out, 3); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(&stdout, out)
			_ = cmd.Wait()
			mustEqual(t, "output", fmt.Sprintf("up\ngot %s\n", name), stdout.String())
			mustEqual(t, "status", 9, cmd.ProcessState.ExitCode())
		})
	}
}
