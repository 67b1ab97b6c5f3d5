package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/chrome"
	"cdpmux/lifecycle/proc"
)

// stopOptions are the flags of stop.
type stopOptions struct {
	storeFlags
	proxy, force, json bool
	wait               seconds
}

func stopCommand() *cobra.Command {
	o := stopOptions{wait: seconds(30 * time.Second)}
	cmd := &cobra.Command{
		Use: "stop (--store NAME | --web)", Args: cobra.NoArgs,
		Short: "Stop a store's browser, or its proxy as well",
		Example: `  cdpmux stop --store shop
  cdpmux stop --store shop --force
  cdpmux stop --store shop --proxy`,
		Long: `Stop a store's browser, and see that all of it is gone. The next client starts
it again; cdpmux disable keeps that from happening. While clients are connected
it is refused, unless --force is given.

With --proxy the proxy ends too, whoever is connected, as by SIGTERM.`,
	}
	o.operate(cmd, func(home *lifecycle.Home, slug string, stdout io.Writer) error {
		receipt, err := o.run(home, slug)
		if err != nil {
			return err
		}
		return o.report(slug, receipt, stdout)
	})
	f := cmd.Flags()
	f.BoolVar(&o.proxy, "proxy", false, "end the proxy, too")
	f.BoolVar(&o.force, "force", false, "also while clients are connected")
	f.Var(&o.wait, "wait", "how long it may take, as 30s or 30")
	f.BoolVar(&o.json, "json", false, "print the receipt")
	return cmd
}

func (o *stopOptions) run(home *lifecycle.Home, slug string) (lifecycle.Receipt, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(o.wait))
	defer cancel()
	if o.proxy {
		if err := endProxy(ctx, home, slug); err != nil {
			return lifecycle.Receipt{}, err
		}
		return stopLeft(ctx, home, slug)
	}
	served, err := openAdmin(home, slug)
	if errors.As(err, new(notServed)) {
		return stopLeft(ctx, home, slug)
	}
	if err != nil {
		return lifecycle.Receipt{}, err
	}
	var receipt lifecycle.Receipt
	err = served.call(ctx, http.MethodPost, "/v1/browser/stop", map[string]bool{"force": o.force}, &receipt)
	if ctx.Err() != nil {
		err = fmt.Errorf("browser of %s: %w in %s", slug, errNotVerified, time.Duration(o.wait))
	}
	return receipt, err
}

// report says how the stop went. What was not seen gone is an error.
func (o *stopOptions) report(slug string, r lifecycle.Receipt, stdout io.Writer) error {
	switch {
	case o.json:
		if err := json.NewEncoder(stdout).Encode(r); err != nil {
			return err
		}
	case o.proxy && r.Verified:
		fmt.Fprintf(stdout, "%s: no proxy and no browser is running\n", slug)
	case r.Method == lifecycle.MethodNone && r.Verified:
		fmt.Fprintf(stdout, "%s: no browser is running\n", slug)
	case r.Verified:
		risk := ""
		if r.DataRisk {
			risk = "; logins of its last 30 s may be lost"
		}
		fmt.Fprintf(stdout, "%s: browser stopped, %s, in %d ms; nothing of it is left%s\n", slug, r.Method, r.ElapsedMS, risk)
	}
	if !r.Verified {
		return notSeenGone(slug, r)
	}
	return nil
}

func notSeenGone(slug string, r lifecycle.Receipt) error {
	return fmt.Errorf("%s: %w (%d processes: %v)", slug, errNotVerified, r.Survivors, r.Left)
}

// endProxy ends the process that serves the store, as SIGTERM does, and waits
// until it is gone.
func endProxy(ctx context.Context, home *lifecycle.Home, slug string) error {
	holder, held, err := home.Holder(slug)
	if err != nil || !held {
		return err
	}
	pid := holder.PID
	listed := proc.Boot() != "" // this system tells of processes
	server := proc.Identify(pid)
	serves := !listed || proc.HasEntry(proc.Cmdline(pid), "serve") // stop and stores remove hold it, too, for a moment
	// Only who holds the store still is who was looked at, and not one that has
	// its pid by now.
	if again, _, err := home.Holder(slug); err != nil || again.PID != pid || pid == 0 || !serves {
		return errors.Join(err, &lifecycle.Failure{
			Kind: lifecycle.CleanupPending, Text: fmt.Sprintf("the proxy of %s starts or ends just now", slug), Hint: "try again",
		})
	}
	if err := server.Signal(syscall.SIGTERM); err != nil && server.Alive() {
		return fmt.Errorf("end the proxy of %s, pid %d: %w", slug, pid, err)
	}
	for {
		holder, _, err := home.Holder(slug)
		if err != nil {
			return err
		}
		if holder.PID != pid && !(listed && server.Alive()) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: its proxy, pid %d, is still stopping: %w", slug, pid, errNotVerified)
		case <-time.After(pause): // not our child: nobody tells us
		}
	}
}

// stopLeft ends the browser that a proxy which is gone has left with its
// keeper, if there is one.
func stopLeft(ctx context.Context, home *lifecycle.Home, slug string) (lifecycle.Receipt, error) {
	lock, err := home.Lock(slug)
	if err != nil {
		return lifecycle.Receipt{}, err
	}
	defer lock.Unlock()
	return stopLocked(ctx, home, slug)
}

// stopLocked is stopLeft for who has the store's lock.
func stopLocked(ctx context.Context, home *lifecycle.Home, slug string) (lifecycle.Receipt, error) {
	record, err := home.RecordFile(slug)
	if err != nil {
		return lifecycle.Receipt{}, err
	}
	backend, err := chrome.New(chrome.Config{Record: record, Log: zerolog.Nop()})
	if err != nil {
		return lifecycle.Receipt{}, err
	}
	return backend.Stop(ctx), nil
}
