package main

import (
	"github.com/spf13/cobra"

	"cdpmux/lifecycle/keeper"
)

// keeperCommand is what serve starts for its browser; nobody else has a use
// for it.
func keeperCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "keeper",
		Short:  "Hold a browser for cdpmux serve, which starts this by itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := keeper.Main(); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
}
