package main

import (
	"fmt"
	"net"
	"os"

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
			file := os.NewFile(3, "proxy")
			conn, err := net.FileConn(file)
			if err != nil {
				return fmt.Errorf("serve starts the keeper; it has no use by hand (%w)", err)
			}
			file.Close()
			if err := keeper.Run(conn); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
}
