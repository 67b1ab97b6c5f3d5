package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"cdpmux/lifecycle"
)

// detached is a serve that was started to outlive us.
type detached struct {
	pid   int
	log   *os.File
	from  int64 // where its part of the log begins
	ended chan struct{}
	state *os.ProcessState // set before ended is closed
}

// serveEnded says that a detached serve has ended, and what it said last.
type serveEnded struct {
	code int
	said string
	log  string
}

func (e *serveEnded) Error() string { return "serve ended: " + e.said }
func (e *serveEnded) Next() string  { return "see " + e.log }

// detach starts serve in a session of its own: it outlives us and our
// terminal, and its output goes to the store's log.
func detach(home *lifecycle.Home, slug string, args []string) (*detached, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := home.OpenLog(slug)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", slug, err)
	}
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		log.Close()
		return nil, err
	}
	cmd := exec.Command(self, append([]string{"serve"}, args...)...)
	cmd.Dir = home.Dir() // ours may be unmounted
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		log.Close()
		return nil, err
	}
	d := &detached{pid: cmd.Process.Pid, log: log, from: from, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		d.state = cmd.ProcessState
		close(d.ended)
	}()
	return d, nil
}

// wait waits for a while, or for serve's end. What it returns says how serve
// ended; nil while it runs.
func (d *detached) wait(limit time.Duration) *serveEnded {
	select {
	case <-d.ended:
	case <-time.After(limit):
		return nil
	}
	end := &serveEnded{code: d.state.ExitCode(), said: d.state.String(), log: d.log.Name()}
	if end.code < 0 {
		end.code = exitFailed // by a signal
	}
	if text, err := io.ReadAll(io.NewSectionReader(d.log, d.from, 1<<20)); err == nil {
		for line := range strings.Lines(string(text)) {
			if said, ok := strings.CutPrefix(line, "cdpmux: "); ok {
				end.said = strings.TrimSpace(said)
			}
		}
	}
	return end
}
