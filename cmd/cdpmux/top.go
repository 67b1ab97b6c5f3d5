package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
)

// topOptions are the flags of top.
type topOptions struct {
	storeFlags
	once bool
}

// topEvery is how often the picture is renewed.
const topEvery = time.Second

func topCommand() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top [--store NAME | --web]",
		Short: "Watch the clients of a store, or every store, renewed each second",
		Long: `Watch the clients of a store, or every store, renewed each second. q or Ctrl-C
ends it. Elsewhere than on a terminal, one picture follows the other.`,
		Example: `  cdpmux top --store shop
  cdpmux top
  cdpmux top --store shop --once`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.fromEnv(cmd); err != nil {
				return err
			}
			slug, err := o.slugIfAny()
			if err != nil {
				return err
			}
			home, err := openHome(o.home)
			if err == nil {
				err = o.run(home, slug, os.Stdin, cmd.OutOrStdout())
			}
			if err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&o.once, "once", false, "print one picture, and end")
	return cmd
}

func (o *topOptions) run(home *lifecycle.Home, slug string, stdin *os.File, stdout io.Writer) error {
	look := func(ctx context.Context, w io.Writer) error { return allStores(ctx, home, w) }
	if slug != "" {
		look = oneStore(home, slug)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	// The first picture tells of mistakes, before the terminal is taken.
	var first bytes.Buffer
	if err := brief(ctx, look, &first); err != nil {
		return err
	}
	if o.once {
		_, err := stdout.Write(first.Bytes())
		return err
	}
	screen, err := openScreen(stdin, stdout, cancel)
	if err != nil {
		return err
	}
	defer screen.close()
	picture := first.Bytes()
	tick := time.NewTicker(topEvery)
	defer tick.Stop()
	for {
		if err := screen.show(picture); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		var next bytes.Buffer
		if err := brief(ctx, look, &next); err != nil {
			next.Reset()
			fmt.Fprintf(&next, "%s  %s; asking again\n", time.Now().Format(time.TimeOnly), plain(err.Error()))
		}
		picture = next.Bytes()
	}
}

func brief(ctx context.Context, look func(context.Context, io.Writer) error, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return look(ctx, w)
}

// oneStore looks at a store, anew each time: its proxy may end and come back.
func oneStore(home *lifecycle.Home, slug string) func(context.Context, io.Writer) error {
	var last *topView
	return func(ctx context.Context, w io.Writer) error {
		served, err := openAdmin(home, slug)
		if err != nil {
			return err
		}
		body, err := served.ask(ctx, http.MethodGet, "/status", nil)
		if err != nil {
			return err
		}
		view := &topView{at: time.Now()}
		if err := json.Unmarshal(body, view); err != nil {
			return fmt.Errorf("status of %s: %w", slug, err)
		}
		view.write(w, last)
		last = view
		return nil
	}
}

func allStores(ctx context.Context, home *lifecycle.Home, w io.Writer) error {
	states, err := statesOf(ctx, home)
	if err != nil {
		return err
	}
	return printStates(w, states)
}
