package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/proxy/access"
)

// operate makes cmd a command on one store of the list.
func (o *storeFlags) operate(cmd *cobra.Command, run func(home *lifecycle.Home, slug string, stdout io.Writer) error) *cobra.Command {
	o.bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.fromEnv(cmd); err != nil {
			return err
		}
		slug, err := o.slug()
		if err != nil {
			return err
		}
		home, err := openHome(o.home)
		if err == nil {
			err = run(home, slug, cmd.OutOrStdout())
		}
		if err != nil {
			return runtimeError{err}
		}
		return nil
	}
	return cmd
}

func disableCommand() *cobra.Command {
	var o storeFlags
	return o.operate(&cobra.Command{
		Use: "disable (--store NAME | --web)", Args: cobra.NoArgs,
		Short:   "Let no client into a store",
		Example: `  cdpmux disable --store shop`,
		Long:    "Let no client into a store. Those who are in it stay; cdpmux stop ends its browser.",
	}, func(home *lifecycle.Home, slug string, _ io.Writer) error { return setDisabled(home, slug, true) })
}

func enableCommand() *cobra.Command {
	var o storeFlags
	return o.operate(&cobra.Command{
		Use: "enable (--store NAME | --web)", Args: cobra.NoArgs,
		Short:   "Let clients into a store again",
		Example: `  cdpmux enable --store shop`,
	}, func(home *lifecycle.Home, slug string, _ io.Writer) error { return setDisabled(home, slug, false) })
}

func setDisabled(home *lifecycle.Home, slug string, disabled bool) error {
	store, err := home.Store(slug)
	if err != nil {
		return fmt.Errorf("store %s: %w", slug, err)
	}
	return store.Update(func(s *lifecycle.Store) { s.Disabled = disabled })
}

var clientID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func urlCommand() *cobra.Command {
	var o storeFlags
	var client string
	cmd := &cobra.Command{
		Use: "url (--store NAME | --web) --client ID", Args: cobra.NoArgs,
		Short:   "Print the WebSocket address of a client",
		Example: `  cdpmux url --store shop --client 1a2b3c4d`,
		PreRunE: func(*cobra.Command, []string) error {
			if !clientID.MatchString(client) {
				return fmt.Errorf("--client %q: 1 to 64 characters of A-Z a-z 0-9 _ - are allowed", client)
			}
			return nil
		},
	}
	o.operate(cmd, func(home *lifecycle.Home, slug string, stdout io.Writer) error {
		at, err := holderOf(home, slug)
		if err != nil {
			return err
		}
		token, err := home.StoreToken(slug)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s%s\n", socketURL(at), access.Keys{Store: token}.Path(client, nil))
		return err
	})
	cmd.Flags().StringVar(&client, "client", "", "`ID` of the client")
	return cmd
}

// maxHold is the longest hold that the proxy takes.
const maxHold = 30 * 24 * time.Hour

func holdCommand() *cobra.Command {
	var o storeFlags
	var name string
	var length seconds
	cmd := &cobra.Command{
		Use: "hold (--store NAME | --web) --for D", Args: cobra.NoArgs,
		Short: "Keep a store's browser from being stopped as idle",
		Long: `Keep a store's browser from being stopped as idle, from now on for a while.
A hold starts no browser, and keeps nobody from stopping it.`,
		Example: `  cdpmux hold --store shop --for 30m
  cdpmux hold --store shop --for 0     # ends it`,
		PreRunE: func(*cobra.Command, []string) error {
			if d := time.Duration(length); d != 0 && d < time.Second || d > maxHold {
				return fmt.Errorf("--for %s: from 1s to %s, or 0", d, maxHold)
			}
			return nil
		},
	}
	o.operate(cmd, func(home *lifecycle.Home, slug string, stdout io.Writer) error {
		served, err := openAdmin(home, slug)
		if err != nil {
			return err
		}
		var held struct{ Until time.Time }
		err = served.brief(context.Background(), http.MethodPost, "/v1/hold", map[string]any{"name": name, "ttl_s": int(time.Duration(length).Seconds())}, &held)
		if err != nil {
			return err
		}
		if length == 0 {
			_, err = fmt.Fprintf(stdout, "%s: not held any more by %s\n", slug, name)
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s: held by %s until %s\n", slug, name, held.Until.Format(time.RFC3339))
		return err
	})
	f := cmd.Flags()
	f.Var(&length, "for", "how long, as 30m or 1800; 0 ends the hold")
	f.StringVar(&name, "name", "operator", "`NAME` of who holds it: each has a hold of its own")
	_ = cmd.MarkFlagRequired("for")
	return cmd
}
