package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"cdpmux/proxy/proxytest"
)

func fakeCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "fake",
		Short: "Be a fake browser: CDP without pages behind it",
		Long: `Be a fake browser: CDP without pages behind it, fast enough not to be what is
measured. Prints its WebSocket address; Ctrl-C ends it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			browser, err := proxytest.New(proxytest.Options{Addr: addr})
			if err != nil {
				return err
			}
			defer browser.Close()
			fmt.Fprintln(cmd.OutOrStdout(), browser.URL())
			awaitEnd()
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "listen", "127.0.0.1:0", "`ADDR` to listen on")
	return cmd
}

// awaitEnd waits for the signal that ends a server.
func awaitEnd() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
}
