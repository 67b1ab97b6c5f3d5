// Command cdpload drives any CDP WebSocket address and measures how it does:
// a browser, a proxy before one, a relay. It has a fake browser and a byte
// relay to compare with.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "cdpload",
		Short:         "Load for a CDP address, and how it bears it",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(benchCommand(), driveCommand(), fakeCommand(), relayCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.Execute(); err != nil {
		fmt.Fprintf(stderr, "cdpload: %v\n", err)
		return 1
	}
	return 0
}

func driveCommand() *cobra.Command {
	var (
		j                                  job
		kind                               string
		beside                             []string
		clients, inFlight, up, size, burst int
		asJSON, each                       bool
	)
	long := "Drive a CDP address and measure it. Each client opens a page of its own.\n\nKinds:\n"
	for _, k := range kinds {
		long += fmt.Sprintf("  %-9s %s\n", k.Kind, k.what)
	}
	cmd := &cobra.Command{
		Use:   "drive --url-template URL",
		Short: "Drive a CDP address and measure it",
		Long:  long + "  mix       all of them side by side\n\nFails when a reply was lost, came twice, or belongs to somebody else.",
		Example: `  cdpload drive --url-template 'ws://127.0.0.1:9400/client-{i}' --clients 16 --in-flight 32
  cdpload drive --url-template 'ws://127.0.0.1:9400/client-{i}' --clients 1 --in-flight 1 --beside replies`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if j.url == "" {
				return errors.New("--url-template is missing")
			}
			names := append([]string{kind}, beside...)
			if kind == "mix" {
				names = append(mix, beside...)
			}
			for i, name := range names {
				w, err := kindOf(name)
				if err != nil {
					return err
				}
				if i == 0 {
					for flag, to := range map[string][2]*int{
						"clients": {&w.Clients, &clients}, "in-flight": {&w.InFlight, &inFlight},
						"command-size": {&w.Up, &up}, "size": {&w.Size, &size}, "burst": {&w.Burst, &burst},
					} {
						if cmd.Flags().Changed(flag) {
							*to[0] = *to[1]
						}
					}
				}
				w.Each = each
				j.groups = append(j.groups, w)
			}
			r, err := j.run(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				err = e.Encode(r)
			} else {
				r.print(cmd.OutOrStdout())
			}
			if n := r.wrong(); n > 0 && err == nil {
				err = fmt.Errorf("%d times something was lost, doubled, foreign or failed", n)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&j.url, "url-template", "", "`URL` of the WebSocket; {i} is the client's number")
	f.StringVar(&kind, "kind", "commands", "what the clients do")
	f.StringArrayVar(&beside, "beside", nil, "`KIND` that others do meanwhile; may be repeated")
	f.IntVar(&clients, "clients", 0, "how many (default: the kind's)")
	f.IntVar(&inFlight, "in-flight", 0, "commands of each client ahead of their replies (default: the kind's)")
	f.IntVar(&up, "command-size", 0, "bytes of a command (default: the kind's)")
	f.IntVar(&size, "size", 0, "bytes of a reply or an event (default: the kind's)")
	f.IntVar(&burst, "burst", 0, "events before each reply (default: the kind's)")
	f.BoolVar(&each, "write-each", false, "a write for each command, as most clients do; else those that are due leave in one")
	f.DurationVar(&j.duration, "duration", 3*time.Second, "how long")
	f.IntVar(&j.pid, "pid", 0, "process to measure: CPU, memory, write calls (Linux)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
