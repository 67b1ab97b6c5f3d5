package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
	"cdpmux/wrapper"
)

func wrapperCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wrapper",
		Short: "The browser-use that an agent finds on its PATH",
		Example: `  cdpmux wrapper write --store shop
  PATH=$(cdpmux wrapper path --store shop) agent`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(wrapperWriteCommand(), wrapperRemoveCommand(), wrapperWipeCommand(),
		wrapperGuardCommand(), wrapperPathCommand(), wrapperListCommand())
	return cmd
}

// storeFlags name a store and its state directory.
type storeFlags struct {
	store, id, home string
	web             bool
}

func (o *storeFlags) bind(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.store, "store", "", "`NAME` of the store")
	f.StringVar(&o.id, "id", "", "`ID` of the store, if its name was made from it")
	f.BoolVar(&o.web, "web", false, "the browser without a store, instead of --store")
	bindHome(cmd, &o.home)
}

func bindHome(cmd *cobra.Command, home *string) {
	cmd.Flags().StringVar(home, "home", "", "state directory `DIR` (default: ~/.cdpmux)")
}

func (o *storeFlags) slug() (string, error) { return storeSlug(o.store, o.id, o.web) }

// slugIfAny is slug where no store may be named; then it is "".
func (o *storeFlags) slugIfAny() (string, error) {
	if o.store == "" && !o.web {
		return "", nil
	}
	return o.slug()
}

// fromEnv takes these flags, and no others of a command, from the environment.
func (o *storeFlags) fromEnv(cmd *cobra.Command) error {
	return fromEnv(only(cmd, "store", "id", "web", "home"))
}

// only has some of a command's flags.
func only(cmd *cobra.Command, names ...string) *pflag.FlagSet {
	some := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	for _, name := range names {
		some.AddFlag(cmd.Flags().Lookup(name))
	}
	return some
}

// storeSlug is the slug of the store that the flags name.
func storeSlug(store, id string, web bool) (string, error) {
	switch {
	case web == (store != ""):
		return "", errors.New("give either --store NAME or --web")
	case web:
		return wrapper.Web, nil
	}
	if err := lifecycle.CheckID(id); err != nil {
		return "", err
	}
	return wrapper.Slug(store, id)
}

// openBin opens the state directory and that of the wrappers in it.
func openBin(dir string) (*lifecycle.Home, wrapper.Bin, error) {
	home, err := openHome(dir)
	if err != nil {
		return nil, wrapper.Bin{}, err
	}
	bin, err := home.Bin()
	return home, wrapper.Bin{Dir: bin}, err
}

// storeCommand is a command on one store's wrapper.
func storeCommand(use, short string, run func(home *lifecycle.Home, bin wrapper.Bin, slug string, stdout io.Writer) error) *cobra.Command {
	var o storeFlags
	cmd := &cobra.Command{Use: use + " (--store NAME | --web)", Short: short, Args: cobra.NoArgs, Example: "  cdpmux wrapper " + use + " --store shop"}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := fromEnv(cmd.Flags()); err != nil {
			return err
		}
		slug, err := o.slug()
		if err != nil {
			return err
		}
		home, bin, err := openBin(o.home)
		if err == nil {
			err = run(home, bin, slug, cmd.OutOrStdout())
		}
		if err != nil {
			return runtimeError{err}
		}
		return nil
	}
	o.bind(cmd)
	return cmd
}

func wrapperRemoveCommand() *cobra.Command {
	return storeCommand("remove", "Delete a store's wrapper", func(_ *lifecycle.Home, bin wrapper.Bin, slug string, _ io.Writer) error {
		return bin.Remove(slug)
	})
}

func wrapperPathCommand() *cobra.Command {
	return storeCommand("path", "Print the PATH for an agent of a store", func(_ *lifecycle.Home, bin wrapper.Bin, slug string, stdout io.Writer) error {
		if _, err := os.Stat(bin.Script(slug)); err != nil {
			return fmt.Errorf("no wrapper for %s: %w; next: cdpmux wrapper write", slug, err)
		}
		if err := bin.WriteGuard(); err != nil {
			return err
		}
		_, err := fmt.Fprintln(stdout, bin.Path(slug, os.Getenv("PATH")))
		return err
	})
}

// binCommand is a command on all wrappers.
func binCommand(use, short string, run func(cmd *cobra.Command, home *lifecycle.Home, bin wrapper.Bin, args []string) error) *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, Example: "  cdpmux wrapper " + use}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := fromEnv(cmd.Flags()); err != nil {
			return err
		}
		home, bin, err := openBin(dir)
		if err == nil {
			err = run(cmd, home, bin, args)
		}
		if err != nil {
			return runtimeError{err}
		}
		return nil
	}
	bindHome(cmd, &dir)
	return cmd
}

func wrapperGuardCommand() *cobra.Command {
	return binCommand("guard", "Write the guard that stands behind the wrappers, and print where it is",
		func(cmd *cobra.Command, _ *lifecycle.Home, bin wrapper.Bin, _ []string) error {
			if err := bin.WriteGuard(); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), bin.Guard())
			return err
		})
}

func wrapperListCommand() *cobra.Command {
	return binCommand("list", "List the wrappers", func(cmd *cobra.Command, _ *lifecycle.Home, bin wrapper.Bin, _ []string) error {
		list, err := bin.List()
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "SLUG\tFORMAT\tID\tPROXY\tPATH")
		for _, e := range list {
			if e.Err != nil {
				fmt.Fprintf(table, "-\t-\t-\t-\t%s (%v)\n", e.Path, e.Err)
				continue
			}
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", e.Slug, e.Format, e.ID, e.Addr, e.Path)
		}
		return table.Flush()
	})
}

func wrapperWipeCommand() *cobra.Command {
	var known []string
	cmd := binCommand("wipe", "Write out-of-date wrappers anew, and delete those of no store",
		func(cmd *cobra.Command, home *lifecycle.Home, bin wrapper.Bin, args []string) error {
			stores, err := home.Stores()
			if err != nil { // then no store is known, and nothing is an orphan
				fmt.Fprintf(cmd.ErrOrStderr(), "cdpmux: store list: %v\n", err)
			}
			ids := append(known, args...)
			if !cmd.Flags().Changed("known") {
				for _, store := range stores {
					ids = append(ids, store.ID)
				}
			}
			results, err := bin.Wipe(ids, func(h wrapper.Header) error {
				i := slices.IndexFunc(stores, func(s *lifecycle.Store) bool { return s.ID == h.ID && s.Slug == h.Slug })
				if i < 0 {
					return fmt.Errorf("store %s with id %s is not on the store list", h.Slug, h.ID)
				}
				return rewrite(home, bin, stores[i])
			})
			for _, r := range results {
				out := cmd.OutOrStdout()
				if r.Action == wrapper.Deleted || r.Action == wrapper.Failed {
					out = cmd.ErrOrStderr()
				}
				fmt.Fprintf(out, "%s %s: %s\n", r.Action, r.Path, r.Why)
			}
			return err
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().StringSliceVar(&known, "known", nil, "`IDS` of all stores (default: the store list); more may follow as arguments")
	return cmd
}
