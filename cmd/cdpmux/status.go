package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/proxy"
)

// statusOptions are the flags of status.
type statusOptions struct {
	storeFlags
	addr string
	json bool
}

func statusCommand() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status (--store NAME | --web)",
		Short: "Show the clients and tabs of a store that is served",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags()); err != nil {
				return err
			}
			slug, err := o.slug()
			if err != nil {
				return err
			}
			if err := o.run(slug, cmd.OutOrStdout()); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	o.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&o.addr, "listen", "", "where it listens (default: the store's remembered address)")
	f.BoolVar(&o.json, "json", false, "print what the proxy answers")
	return cmd
}

func (o *statusOptions) run(slug string, stdout io.Writer) error {
	home, err := openHome(o.home)
	if err != nil {
		return err
	}
	body, err := o.ask(home, slug)
	if err != nil {
		return fmt.Errorf("status of %s: %w", slug, err)
	}
	if o.json {
		_, err := stdout.Write(body)
		return err
	}
	var st proxy.Status
	if err := json.Unmarshal(body, &st); err != nil {
		return fmt.Errorf("status of %s: %w", slug, err)
	}
	return printStatus(stdout, &st, time.Now())
}

// ask gets /status from the proxy that serves the store.
func (o *statusOptions) ask(home *lifecycle.Home, slug string) ([]byte, error) {
	token, err := home.AdminToken(slug)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("it was never served from this state directory")
	}
	if err != nil {
		return nil, err
	}
	addr := o.addr
	if addr == "" {
		if addr, err = home.StoreAddr(slug); err != nil {
			return nil, err
		}
	}
	if addr == "" {
		return nil, errors.New("its port is not remembered; give its address with --listen")
	}
	req, err := http.NewRequest(http.MethodGet, "http://"+addr+"/status", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // without the URL
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("HTTP %s at %s", resp.Status, addr)
	}
	return body, err
}

// printStatus writes a Status as a table: a line for the browser, for each
// client, for each tab.
func printStatus(w io.Writer, st *proxy.Status, now time.Time) error {
	browser := st.Browser.State
	if more := st.Browser.Product + st.Browser.Error; more != "" {
		browser += ", " + more
	}
	fmt.Fprintf(w, "%s: browser %s\n", st.Store, browser)
	if d := st.Downloads; d != (proxy.DownloadStatus{}) {
		fmt.Fprintf(w, "downloads: %d under way, %d arrived, %d failed", d.Active, d.Arrived, d.Failed)
		if d.Error != "" {
			fmt.Fprintf(w, " (the last: %s)", d.Error)
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
			fmt.Fprintf(table, "  %s\t%s\t%s\n", t.ID, strings.TrimSpace(t.State+" "+t.Error), t.URL)
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
