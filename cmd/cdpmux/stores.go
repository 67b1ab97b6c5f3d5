package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cdpmux/wrapper"
)

func storesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stores",
		Short: "The stores of a state directory",
		Example: `  cdpmux stores list
  cdpmux stores add --store shop -- --headless`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(storesListCommand(), storesAddCommand(), storesRemoveCommand(), storesMigrateCommand())
	return cmd
}

func storesMigrateCommand() *cobra.Command {
	var home string
	var apply bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Rename stores whose slug was made by other rules",
		Example: `  cdpmux stores migrate           # shows what would be done
  cdpmux stores migrate --apply`,
		Long: `Rename stores whose slug was made by other rules: profile, downloads and
record. It only shows what it would do, until --apply is given.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags()); err != nil {
				return err
			}
			if err := migrate(home, apply, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "do it")
	bindHome(cmd, &home)
	return cmd
}

func migrate(dir string, apply bool, stdout, stderr io.Writer) error {
	home, bin, err := openBin(dir)
	if err != nil {
		return err
	}
	moves, err := home.Migrate(wrapper.Slug, apply)
	if err != nil {
		return err
	}
	left := 0
	for _, m := range moves {
		if m.Err != nil {
			left++
			fmt.Fprintf(stderr, "cdpmux: %s stays: %v\n", m.From, m.Err)
			continue
		}
		fmt.Fprintf(stdout, "%s -> %s\n", m.From, m.To)
		if apply && m.ID != "" {
			_ = bin.Remove(m.From) // if there is one: it would ask for the old name
			fmt.Fprintf(stdout, "  next: cdpmux wrapper write --store %s --id %s\n", m.To, m.ID)
		}
	}
	switch {
	case left > 0:
		return errors.New("not every store can be renamed")
	case !apply && len(moves) > 0:
		fmt.Fprintln(stdout, "Nothing was renamed; --apply does it.")
	}
	return nil
}
