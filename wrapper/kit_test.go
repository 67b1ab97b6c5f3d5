package wrapper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// post is a store's script in a directory of its own, with stand-ins for
// browser-use and for `cdpmux ensure`.
type post struct {
	dir    string // what the stand-ins note
	script Script
	bin    Bin
	env    []string // besides PATH and HOME
}

func newPost(t *testing.T, change func(*Script)) *post {
	t.Helper()
	home, err := os.MkdirTemp("", "cw") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	p := &post{dir: filepath.Join(home, "notes"), bin: Bin{filepath.Join(home, "bin")}}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.script = Script{Slug: "shop", ID: "id-1", Addr: "127.0.0.1:9400", Home: home, Settings: Defaults()}
	p.script.Cdpmux, p.script.Real = absolute(t, "testdata/cdpmux.sh"), absolute(t, "testdata/tool.sh")
	p.env = []string{"STUB_DIR=" + p.dir}
	if change != nil {
		change(&p.script)
	}
	p.write(t)
	return p
}

func (p *post) write(t *testing.T) {
	t.Helper()
	if err := p.bin.Write(p.script); err != nil {
		t.Fatal(err)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// outcome is how a call ended.
type outcome struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

func (o outcome) String() string {
	return fmt.Sprintf("exit %d after %v\nstdout: %.300s\nstderr: %.600s", o.code, o.took.Round(time.Millisecond), o.stdout, o.stderr)
}

// command is the script, ready to be run under the bash on PATH.
func (p *post) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.bin.Script(p.script.Slug), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.script.Home}, p.env...)
	cmd.Dir = p.dir
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func (p *post) call(t *testing.T, args ...string) outcome {
	t.Helper()
	return finish(t, p.command(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	began := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String(), time.Since(began)}
}

// note reads what a stand-in noted; "" when it was not called.
func (p *post) note(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// toolEnv is the environment that browser-use got.
func (p *post) toolEnv(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, each := range strings.Split(p.note(t, "env"), "\x00") {
		name, value, _ := strings.Cut(each, "=")
		env[name] = value
	}
	return env
}

func (p *post) forget(t *testing.T) {
	t.Helper()
	for _, name := range []string{"args", "env", "stdin", "calls", "ensure", "reloads"} {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

func mustEqual[T comparable](t *testing.T, what string, want, got T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

func which(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
