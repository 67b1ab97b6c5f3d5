package keeper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// launch starts the process. The record is there before anything is made and,
// with its pid, right after the start; Chrome that is started and not yet recorded is found by the
// TMPDIR and the cgroup, and quits with us in any case.
func (k *keeper) launch() error {
	k.rec.Cgroup = cgroupFor(k.rec.ID)
	if err := k.rec.write(k.spec.Record); err != nil {
		return err
	}
	if err := os.Mkdir(k.rec.TMPDIR, 0o700); err != nil {
		return err
	}
	var cgroup *os.File
	if k.rec.Cgroup != "" && os.Mkdir(k.rec.Cgroup, 0o755) == nil {
		if dir, err := os.Open(k.rec.Cgroup); err == nil {
			defer dir.Close()
			cgroup = dir
		}
	}
	if cgroup == nil {
		k.rec.Cgroup = "" // not ours to make: without delegation, for one
	}
	cmd, err := k.exec(cgroup)
	if err != nil && cgroup != nil {
		_ = os.Remove(k.rec.Cgroup)
		k.rec.Cgroup = "" // an old kernel, or a filter of system calls
		cmd, err = k.exec(nil)
	}
	if err != nil {
		return &lifecycle.Failure{Kind: lifecycle.BrowserMissing, Text: err.Error(), Hint: "give another binary with --chrome"}
	}
	k.cmd = cmd
	k.rec.Root = proc.Identify(cmd.Process.Pid)
	k.report.Root = k.rec.Root.PID
	go func() {
		_ = cmd.Wait() // its state tells
		close(k.exited)
	}()
	k.watch.Done("exec", true)
	return errors.Join(k.rec.write(k.spec.Record), k.relay())
}

// relay opens the pipe to proxies, if Chrome has no port.
func (k *keeper) relay() error {
	if k.spec.Upstream == "" {
		return nil
	}
	l, err := listenUnix(k.spec.Upstream)
	if err != nil {
		return err
	}
	go func() {
		_ = http.Serve(l, k.pipe)
	}()
	return nil
}

func (k *keeper) exec(cgroup *os.File) (*exec.Cmd, error) {
	out, stderr, err := newOutput(k.printed)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	pipe, ends, err := newPipe()
	if err != nil {
		out.close()
		return nil, err
	}
	cmd := exec.Command(k.spec.Binary, k.spec.Args...)
	cmd.Env = append(k.spec.Env, "TMPDIR="+k.rec.TMPDIR)
	cmd.Stdout, cmd.Stderr = stderr, stderr // an *os.File, which Wait does not wait for
	cmd.ExtraFiles = ends[:]                // as files 3 and 4, where Chrome looks for them
	cmd.SysProcAttr = ownSession(cgroup)
	err = cmd.Start()
	for _, end := range ends {
		end.Close()
	}
	if err != nil {
		out.close()
		pipe.close()
		return nil, err
	}
	k.out, k.pipe = out, pipe
	return cmd, nil
}

// awaitReady waits until Chrome answers where the proxy is to reach it. Its
// own line on stderr gives the address of its port first and cannot be stale;
// the file in the profile is for binaries that hide their stderr.
func (k *keeper) awaitReady(ctx context.Context) (ws string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	said := false // by Chrome itself
	var answers chan error
	if k.spec.Upstream != "" {
		answers = make(chan error, 1)
		go func() { answers <- k.pipe.ask(ctx) }()
	}
	for {
		select {
		case err := <-answers:
			answers = nil
			if err == nil {
				ws = upstreamURL(k.spec.Upstream)
			} // else it ends
		case ws = <-k.out.listening:
			said = true
		case <-poll.C:
			if !said && k.spec.Upstream == "" {
				ws = readActivePort(k.rec.Profile)
			}
		case <-k.exited:
			f := launchFailure(k.cmd.ProcessState.ExitCode(), k.out.rest())
			f.Text = fmt.Sprintf("start %s: %s (%s)", k.cmd.Path, f.Text, rootExit(k.cmd.ProcessState))
			return "", f
		case <-ctx.Done():
			return "", ctx.Err()
		}
		// A Chrome without a usable profile may listen, but never opens a
		// window; one that is given its default profile runs, and never listens.
		if f := launchFailure(anyExit, k.out.lines()); f.Kind == lifecycle.ProfileInvalid {
			return "", f
		}
		if ws != "" && (k.spec.Upstream != "" || Prove(ctx, ws) == nil) {
			return ws, nil
		}
	}
}
