package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
)

// ensureOptions are the flags of ensure.
type ensureOptions struct {
	storeFlags
	wait seconds
	json bool
}

func ensureCommand() *cobra.Command {
	o := ensureOptions{wait: seconds(90 * time.Second)}
	cmd := &cobra.Command{
		Use:   "ensure (--store NAME | --web) [-- FLAGS OF SERVE]",
		Short: "Have a store served and its browser up",
		Long: `Have a store served and its browser up.

Starts cdpmux serve when nobody serves the store: in a session of its own, with
its log in log/<store>.log of the state directory. Returns when the browser
answers. However many call it at once, one proxy is started.

What comes after -- are the flags of serve. They are remembered for the store,
in place of those of before, and used whenever ensure starts it; a lone --
forgets them. CDPMUX_* variables count, too, for the serve that this call
starts. A store that is served already goes on with what it was started with.`,
		Example: `  cdpmux ensure --store shop
  cdpmux ensure --store shop -- --headless --grace 10m`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.fromEnv(cmd); err != nil {
				return err
			}
			slug, err := o.slug()
			if err != nil {
				return err
			}
			flags, given, err := serveArgs(cmd, args)
			if err != nil {
				return err
			}
			if err := o.run(slug, flags, given != nil, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	o.bind(cmd)
	f := cmd.Flags()
	f.Var(&o.wait, "wait", "how long it may take, as 90s or 90")
	f.BoolVar(&o.json, "json", false, "print a JSON object")
	return cmd
}

// ensured is what ensure prints with --json.
type ensured struct {
	Store   string `json:"store"`
	ID      string `json:"id"`
	HTTP    string `json:"http"`
	Connect string `json:"connect"`
	Product string `json:"product"`
	Started bool   `json:"started"` // by this call: the proxy
}

func (o *ensureOptions) run(slug string, flags []string, given bool, stdout, stderr io.Writer) error {
	home, err := openHome(o.home)
	if err != nil {
		return err
	}
	store, err := home.OpenStore(slug, o.id)
	if err != nil {
		return err
	}
	if given {
		if err := remember(store, flags); err != nil {
			return err
		}
	}
	if store.Disabled {
		return &lifecycle.Failure{Kind: lifecycle.StoreLocked, Text: fmt.Sprintf("store %s is disabled", slug), Hint: "cdpmux enable --store " + slug}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(o.wait))
	defer cancel()
	e := ensuring{home: home, store: store, args: append(o.serve(home), store.Serve...)}
	product, at, started, err := e.run(ctx)
	if err != nil {
		return err
	}
	if given && !started {
		fmt.Fprintf(stderr, "cdpmux: %s was served already: the flags count from its next start\n", slug)
	}
	if o.json {
		out := json.NewEncoder(stdout)
		out.SetEscapeHTML(false)
		return out.Encode(ensured{slug, store.ID, at.URL, connectForm(at), product, started})
	}
	_, err = fmt.Fprint(stdout, readyText(slug, at))
	return err
}

// serve are the arguments by which serve finds the store.
func (o *ensureOptions) serve(home *lifecycle.Home) []string {
	args := []string{"--home", home.Dir()}
	if o.web {
		return append(args, "--web")
	}
	args = append(args, "--store", o.store)
	if o.id != "" {
		args = append(args, "--id", o.id)
	}
	return args
}

// ensuring is one ensure under way.
type ensuring struct {
	home  *lifecycle.Home
	store *lifecycle.Store
	args  []string

	serve *detached // the proxy that we started; nil: none
}

// pause is between two looks: a proxy that starts or ends tells nobody.
const pause = 50 * time.Millisecond

// run asks for the browser until somebody answers, and starts a proxy whenever
// there is none. started says that the one which answered is ours.
func (e *ensuring) run(ctx context.Context) (product string, at lifecycle.Holder, started bool, err error) {
	for {
		at, held, err := e.home.Holder(e.store.Slug)
		if err != nil {
			return "", at, false, err
		}
		if held && at.Addr != "" {
			token, err := e.home.AdminToken(e.store.Slug)
			if err != nil {
				return "", at, false, fmt.Errorf("admin token of %s: %w", e.store.Slug, err)
			}
			served := adminAPI{e.store.Slug, at, token}
			product, err := served.start(ctx, e.store.ID)
			var none *unreachable
			if !errors.As(err, &none) {
				return product, at, e.serve != nil && e.serve.pid == at.PID, err
			}
		}
		if ctx.Err() != nil {
			return "", at, false, e.late(held)
		}
		if err := e.proxy(held); err != nil {
			return "", at, false, err
		}
	}
}

// proxy starts one when there is none, and waits a moment for what comes of it.
func (e *ensuring) proxy(held bool) (err error) {
	if e.serve == nil && !held {
		if e.serve, err = detach(e.home, e.store.Slug, e.args); err != nil {
			return err
		}
	}
	if e.serve == nil {
		time.Sleep(pause)
		return nil
	}
	end := e.serve.wait(pause)
	switch {
	case end == nil:
		return nil
	case end.code == exitHeld: // somebody else was first
		e.serve = nil
		return nil
	}
	return end
}

// late says what the time was not enough for.
func (e *ensuring) late(held bool) error {
	f := &lifecycle.Failure{Kind: lifecycle.LaunchTimeout, Text: fmt.Sprintf("the browser of store %s is not up in time; it is still being started", e.store.Slug), Hint: "try again, or wait longer with --wait"}
	if !held {
		f.Text = fmt.Sprintf("the proxy of store %s is not up in time", e.store.Slug)
	}
	return f
}
