package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
)

// listed is a line of stores list --json.
type listed struct {
	Store    string   `json:"store"`
	ID       string   `json:"id"`
	Addr     string   `json:"addr,omitempty"`
	Disabled bool     `json:"disabled"`
	Serve    []string `json:"serve"`
}

func storesListCommand() *cobra.Command {
	var home string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the stores, and the flags that ensure starts them with",
		Example: `  cdpmux stores list
  cdpmux stores list --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags()); err != nil {
				return err
			}
			if err := listStores(home, asJSON, cmd.OutOrStdout()); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	bindHome(cmd, &home)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func listStores(dir string, asJSON bool, stdout io.Writer) error {
	home, err := openHome(dir)
	if err != nil {
		return err
	}
	stores, err := home.Stores()
	if err != nil {
		return err
	}
	list := []listed{} // none is [], not null
	for _, s := range stores {
		addr, err := home.StoreAddr(s.Slug)
		if err != nil {
			return err
		}
		list = append(list, listed{s.Slug, s.ID, addr, s.Disabled, append([]string{}, s.Serve...)})
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(list)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STORE\tID\tADDRESS\tENABLED\tFLAGS")
	for _, l := range list {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", l.Store, l.ID, orDash(l.Addr), yesNo(!l.Disabled), orDash(strings.Join(l.Serve, " ")))
	}
	return table.Flush()
}

func storesAddCommand() *cobra.Command {
	var o storeFlags
	cmd := &cobra.Command{
		Use:   "add (--store NAME | --web) [-- FLAGS OF SERVE]",
		Short: "Put a store on the list, with a port of its own",
		Long: `Put a store on the list, with a port of its own. What comes after -- are the
flags with which cdpmux ensure will start it.`,
		Example: `  cdpmux stores add --store shop -- --headless`,
		Args:    cobra.ArbitraryArgs,
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
			if err := addStore(o.home, slug, o.id, flags, given, cmd.OutOrStdout()); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	o.bind(cmd)
	return cmd
}

func addStore(dir, slug, id string, flags []string, given *serveOptions, stdout io.Writer) error {
	home, err := openHome(dir)
	if err != nil {
		return err
	}
	store, err := home.OpenStore(slug, id)
	if err != nil {
		return err
	}
	if given != nil {
		if err := remember(store, flags); err != nil {
			return err
		}
		// A proxy that runs stays where it is, and is to be found.
		_, held, err := home.Holder(slug)
		if err == nil && !held && given.listen != "" {
			err = rememberListen(store, given.listen)
		}
		if err != nil {
			return err
		}
	}
	addr, err := store.Addr()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s %s %s\n", slug, store.ID, addr)
	return err
}

func storesRemoveCommand() *cobra.Command {
	var o storeFlags
	var purge bool
	cmd := o.operate(&cobra.Command{
		Use: "remove (--store NAME | --web)", Args: cobra.NoArgs,
		Short: "Take a store off the list, with its wrapper and state",
		Example: `  cdpmux stores remove --store shop
  cdpmux stores remove --store shop --purge`,
		Long: `Take a store off the list, with its wrapper and state. Its port is not given
again. Its profile, with the logins, its downloads and its log stay, unless
--purge is given. A store that is served is refused: stop it first.`,
	}, func(home *lifecycle.Home, slug string, stdout io.Writer) error {
		return removeStore(home, slug, purge, stdout)
	})
	cmd.Flags().BoolVar(&purge, "purge", false, "delete its profile, downloads and log, too")
	return cmd
}

func removeStore(home *lifecycle.Home, slug string, purge bool, stdout io.Writer) error {
	if _, err := home.Store(slug); err != nil && !(purge && errors.Is(err, fs.ErrNotExist)) {
		return fmt.Errorf("store %s: %w", slug, err)
	}
	lock, err := home.Lock(slug)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	left, err := stopLocked(context.Background(), home, slug)
	if err != nil {
		return err
	}
	if !left.Verified {
		return notSeenGone(slug, left)
	}
	_, bin, err := openBin(home.Dir())
	if err != nil {
		return err
	}
	// One that somebody else wrote stays, as wrapper remove leaves it.
	if err := bin.Remove(slug); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stdout, "%s: its wrapper stays: %v\n", slug, err)
	}
	if err := home.Remove(slug, purge); err != nil {
		return err
	}
	rest := "its profile and downloads stay"
	if purge {
		rest = "with its profile and downloads"
	}
	_, err = fmt.Fprintf(stdout, "%s: removed, %s\n", slug, rest)
	return err
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
