package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"cdpmux/proxy/download"
)

// downloadsOptions are the flags of downloads.
type downloadsOptions struct {
	storeFlags
	client string
	json   bool
}

func downloadsCommand() *cobra.Command {
	var o downloadsOptions
	cmd := &cobra.Command{
		Use:   "downloads (--store NAME | --web)",
		Short: "Show the files that a store's clients downloaded",
		Example: `  cdpmux downloads --store shop
  cdpmux downloads --store shop --client 1a2b3c4d --json`,
		Long: "Show the files that a store's clients downloaded since its browser was started. No proxy needs to run.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnv(cmd.Flags()); err != nil {
				return err
			}
			slug, err := o.slug()
			if err != nil {
				return err
			}
			if err := o.run(slug, cmd.Flags().Changed("client"), cmd.OutOrStdout()); err != nil {
				return runtimeError{fmt.Errorf("downloads of %s: %w", slug, err)}
			}
			return nil
		},
	}
	o.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&o.client, "client", "", "only this client's files")
	f.BoolVar(&o.json, "json", false, "print a JSON array")
	return cmd
}

// run lists one client's files, or all.
func (o *downloadsOptions) run(slug string, one bool, stdout io.Writer) error {
	home, err := openHome(o.home)
	if err != nil {
		return err
	}
	if _, err := home.StoreAddr(slug); errors.Is(err, fs.ErrNotExist) {
		return errors.New("it was never served from this state directory; check --store and --id, or name its directory with --home")
	} else if err != nil {
		return err
	}
	dir, err := home.Downloads(slug)
	if err != nil {
		return err
	}
	all, err := download.Arrivals(dir)
	if err != nil {
		return err
	}
	if one {
		all = slices.DeleteFunc(all, func(a download.Arrival) bool { return a.Client != o.client })
	}
	if o.json {
		return json.NewEncoder(stdout).Encode(append([]download.Arrival{}, all...)) // none is [], not null
	}
	return printArrivals(stdout, dir, all)
}

// printArrivals writes a line for the directory and one for each file.
func printArrivals(w io.Writer, dir string, all []download.Arrival) error {
	fmt.Fprintf(w, "files in %s: %d (earlier ones are in its _prev)\n", dir, len(all))
	if len(all) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ARRIVED (UTC)\tCLIENT\tBYTES\tFILE\tURL")
	for _, a := range all {
		client := a.Client
		if client == "" {
			client = "(nobody)"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", a.Time.UTC().Format(time.DateTime), client, a.Size, a.Name, a.URL)
	}
	return table.Flush()
}
