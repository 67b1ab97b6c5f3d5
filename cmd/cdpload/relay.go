package main

import (
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"
)

func relayCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "relay HOST:PORT",
		Short: "Be a byte relay: the yardstick of what any proxy costs",
		Long: `Be a byte relay to HOST:PORT, a connection for each client: what a proxy costs
that does nothing at all. Prints its address; Ctrl-C ends it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			listener, err := net.Listen("tcp", addr)
			if err != nil {
				return err
			}
			defer listener.Close()
			fmt.Fprintln(cmd.OutOrStdout(), listener.Addr())
			go relay(listener, args[0])
			awaitEnd()
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "listen", "127.0.0.1:0", "`ADDR` to listen on")
	return cmd
}

// relay serves until the listener is closed.
func relay(listener net.Listener, to string) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				return
			}
			go pass(in, out)
			pass(out, in)
		}()
	}
}

// pass copies one way. On Linux the bytes never enter this process (splice).
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // an end is an end, however it came
	to.Close()
	from.Close()
}
