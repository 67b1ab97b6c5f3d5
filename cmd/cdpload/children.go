package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// child starts a program, each one a process of its own, and returns the first
// line that it prints. stop interrupts it and waits.
func (b *bench) child(ctx context.Context, env []string, name string, args ...string) (pid int, line string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second // cdpmux ends its browser in peace
	cmd.Stderr = b.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, "", nil, err
	}
	stop = func() {
		_ = cmd.Cancel()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return 0, "", nil, fmt.Errorf("%s %s: no ready line: %w", name, args[0], err)
	}
	return cmd.Process.Pid, strings.TrimSpace(line), stop, nil
}

// startFake starts the fake browser, and the relay and cdpmux before it.
func (b *bench) startFake(ctx context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			defer s() // the last one first
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	pid, address, end, err := b.child(ctx, nil, self, "fake")
	if err != nil {
		return nil, err
	}
	stops = append(stops, end)
	b.fake = address
	b.direct = column{"direct", address, pid}
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	pid, host, end, err := b.child(ctx, nil, self, "relay", at.Host)
	if err != nil {
		return nil, err
	}
	stops = append(stops, end)
	b.relay = column{"relay", "ws://" + host + at.Path, pid}
	b.mux, end, err = b.startMux(ctx, address)
	if err != nil {
		return nil, err
	}
	stops = append(stops, end)
	return stop, nil
}

// startMux starts cdpmux before a browser, with a home of its own.
func (b *bench) startMux(ctx context.Context, browser string) (column, func(), error) {
	return b.startServe(ctx, "--browser", "attach", "--endpoint", browser)
}

func (b *bench) startServe(ctx context.Context, flags ...string) (column, func(), error) {
	home, err := os.MkdirTemp(b.home, "home")
	if err != nil {
		return column{}, nil, err
	}
	var env []string
	if b.profiles != "" && b.mux.pid == 0 { // the first one
		env = []string{"CDPMUX_PPROF=" + pprofAddr}
	}
	args := append([]string{
		"serve", "--store", "bench", "--home", home, "--listen", "127.0.0.1:0",
		"--max-clients", "0", "--tab-cap", "0", "--grace", "0", "--log-level", "error",
	}, flags...)
	pid, line, stop, err := b.child(ctx, env, b.binary, args...)
	if err != nil {
		return column{}, nil, err
	}
	fields := strings.Fields(line)
	address := strings.TrimSuffix(fields[len(fields)-1], "<task_id>")
	return column{"cdpmux", address + "{i}", pid}, stop, nil
}

// pprofAddr is where a cdpmux that was built with -tags pprof serves profiles.
const pprofAddr = "127.0.0.1:6061"

// profile takes a CPU profile until stop.
func (b *bench) profile(ctx context.Context, name string) (stop func()) {
	if b.profiles == "" {
		return func() {}
	}
	seconds := int(b.duration.Seconds()) * b.rounds * len(b.all())
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", pprofAddr, seconds), nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			file, err := os.Create(filepath.Join(b.profiles, name+".pprof"))
			if err != nil {
				return err
			}
			_, err = io.Copy(file, resp.Body)
			return errors.Join(err, file.Close())
		}()
	}()
	return func() {
		if err := <-done; err != nil {
			fmt.Fprintf(b.log, "  profile: %v\n", err)
		}
	}
}

// ready waits until /readyz of a proxy answers 200.
func ready(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
