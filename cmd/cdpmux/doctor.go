package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/doctor"
	"cdpmux/lifecycle/ziniao"
	"cdpmux/wrapper"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	storeFlags
	json bool
}

func doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [--store NAME | --web] [-- FLAGS OF SERVE]",
		Short: "Look for what keeps this machine, or a store, from working",
		Long: `Look for what keeps this machine, or a store, from working: the browser and its
sandbox, the port, the state directory, the profile, browser-use, limits,
proxies, the clock. Each line is ok, warn or fail, and says what to do.

Nothing is changed, and no browser is started. A store is looked at as ensure
would start it; what comes after -- are flags of serve to look at instead.`,
		Example: `  cdpmux doctor
  cdpmux doctor --store shop
  cdpmux doctor --store shop -- --headless --profile /srv/profiles/shop`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.fromEnv(cmd); err != nil {
				return err
			}
			slug, err := o.slugIfAny()
			if err != nil {
				return err
			}
			if cmd.ArgsLenAtDash() != 0 {
				if len(args) > 0 {
					return fmt.Errorf("unknown argument %q: flags of serve come after --", args[0])
				}
				args = nil
			}
			if err := o.run(slug, args, cmd.OutOrStdout()); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON array")
	return cmd
}

// errUnfit says that doctor found what has to be mended first.
var errUnfit = errors.New("not fit to serve: see the lines that begin with fail")

// run prints the findings. flags are serve's; nil: those of the store.
func (o *doctorOptions) run(slug string, flags []string, stdout io.Writer) error {
	dir := o.home
	if dir == "" {
		var err error
		if dir, err = lifecycle.DefaultHome(); err != nil {
			return err
		}
	}
	home, homeErr := lifecycle.LookHome(dir)
	store := &lifecycle.Store{}
	if s, err := home.Store(slug); err == nil {
		store = s
	}
	if flags == nil {
		flags = store.Serve
	}
	serve, err := readServe(flags)
	if err != nil {
		return fmt.Errorf("flags of serve: %w", err)
	}
	var all []doctor.Finding
	plan := doctor.Plan{
		Home: home, HomeErr: homeErr, Store: slug, Listen: serve.listen,
		Browser: serve.browser.value, Chrome: serve.chrome, Endpoint: serve.endpoint, Ziniao: serve.ziniao,
	}
	if serve.ziniaoAccount != "" {
		if plan.Ziniao.Account, err = ziniao.ReadAccount(serve.ziniaoAccount); err != nil {
			all = append(all, doctor.Finding{Check: "account", Level: doctor.Fail, Text: err.Error(), Next: "correct --ziniao-account"})
		}
	}
	all = append(all, doctor.Examine(context.Background(), plan)...)
	if !serve.noWrapper {
		all = append(all, browserUse(store, home))
	}
	if err := o.print(stdout, all); err != nil {
		return err
	}
	if doctor.Worst(all) == doctor.Fail {
		return errUnfit
	}
	return nil
}

// browserUse looks for the browser-use that a store's wrapper runs.
func browserUse(store *lifecycle.Store, home *lifecycle.Home) doctor.Finding {
	f := doctor.Finding{Check: "browser-use", Level: doctor.OK}
	remembered := ""
	if store.Wrapper != nil {
		remembered = store.Wrapper.Real
	}
	real, err := findReal("", remembered, wrapper.Bin{Dir: filepath.Join(home.Dir(), "bin")})
	switch {
	case err != nil:
		f.Level, f.Text, f.Next = doctor.Warn, err.Error(), "install it for agents that use it; other clients need none (serve --no-wrapper)"
	case wrapper.TooOld(real) != "":
		f.Level, f.Text, f.Next = doctor.Fail, fmt.Sprintf("%s is version %s", real, wrapper.TooOld(real)), "install browser-use 0.13 or later, or serve with --no-wrapper"
	default:
		f.Text = real + ", of a version that it does not tell"
		if version := wrapper.Version(real); version != "" {
			f.Text = version + " at " + real
		}
	}
	return f
}

func (o *doctorOptions) print(stdout io.Writer, all []doctor.Finding) error {
	if o.json {
		return json.NewEncoder(stdout).Encode(all)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, f := range all {
		if f.Next != "" {
			f.Text += "; next: " + f.Next
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.Level, f.Check, plain(f.Text))
	}
	return table.Flush()
}
