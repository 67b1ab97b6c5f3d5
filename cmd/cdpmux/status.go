package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/proxy/admin"
)

// statusOptions are the flags of status.
type statusOptions struct {
	storeFlags
	json bool
}

func statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status [--store NAME | --web]",
		Short: "Show the clients and tabs of a store that is served, or the state of every store",
		Example: `  cdpmux status
  cdpmux status --store shop --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags()); err != nil {
				return err
			}
			slug, err := o.slugIfAny()
			if err != nil {
				return err
			}
			run := o.all
			if slug != "" {
				run = func(home *lifecycle.Home, stdout io.Writer) error { return o.one(home, slug, stdout) }
			}
			home, err := openHome(o.home)
			if err == nil {
				err = run(home, cmd.OutOrStdout())
			}
			if err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&o.json, "json", false, "print what the proxy answers; of every store, an array")
	return cmd
}

// one shows a store that is served.
func (o *statusOptions) one(home *lifecycle.Home, slug string, stdout io.Writer) error {
	served, err := openAdmin(home, slug)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	body, err := served.ask(ctx, http.MethodGet, "/status", nil)
	if err != nil {
		return fmt.Errorf("status of %s: %w", slug, err)
	}
	if o.json {
		_, err := stdout.Write(body)
		return err
	}
	return printAnswer(slug, body, stdout)
}

func printAnswer(slug string, body []byte, stdout io.Writer) error {
	var st admin.Status
	if err := json.Unmarshal(body, &st); err != nil {
		return fmt.Errorf("status of %s: %w", slug, err)
	}
	return printStatus(stdout, &st, time.Now())
}

// printStatus writes a Status as a table: a line for the browser, for each
// client, for each tab.
func printStatus(w io.Writer, st *admin.Status, now time.Time) error {
	browser := st.Browser.State
	if more := st.Browser.Product + st.Browser.Error; more != "" {
		browser += ", " + more
	}
	fmt.Fprintf(w, "%s: browser %s\n", st.Store, plain(browser))
	if d := st.Downloads; d != (admin.DownloadStatus{}) {
		fmt.Fprintf(w, "downloads: %d under way, %d arrived, %d failed", d.Active, d.Arrived, d.Failed)
		if d.Error != "" {
			fmt.Fprintf(w, " (the last: %s)", plain(d.Error))
		}
		fmt.Fprintln(w)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range st.Clients {
		state := c.State
		if !c.Until.IsZero() {
			state += " for " + c.Until.Sub(now).Round(time.Second).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%d sessions, %d pending, %d bytes queued\n", clientName(c.ID), state, c.Sessions, c.Pending, c.QueuedBytes)
		for _, t := range c.Tabs {
			fmt.Fprintf(table, "  %s\t%s\t%s\n", t.ID, strings.TrimSpace(t.State+" "+plain(t.Error)), plain(t.URL))
		}
	}
	return table.Flush()
}

func clientName(id string) string {
	if id == "" {
		return "(HTTP)"
	}
	return id
}
