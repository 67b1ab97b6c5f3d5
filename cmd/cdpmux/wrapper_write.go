package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
	"cdpmux/wrapper"
)

// writeOptions are the flags of wrapper write.
type writeOptions struct {
	storeFlags
	real, startURL, tokenFile string
	slots                     uint
	timeout                   seconds
	taskFormat                choice
}

func wrapperWriteCommand() *cobra.Command {
	o := writeOptions{taskFormat: oneOf("hex", "any"), timeout: seconds(wrapper.Defaults().Timeout)}
	cmd := &cobra.Command{
		Use:   "write (--store NAME | --web)",
		Short: "Write a store's wrapper",
		Example: `  cdpmux wrapper write --store shop
  cdpmux wrapper write --store shop --real /opt/agents/venv/bin/browser-use --slots 5`,
		Long: `Write a store's wrapper, and print its path.

What a flag says is remembered for the store: serve and wipe write the same
wrapper again. A store that is new gets its port.`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := fromEnv(cmd.Flags()); err != nil {
			return err
		}
		slug, err := o.slug()
		if err != nil {
			return err
		}
		if err := o.run(slug, cmd.Flags(), cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
			return runtimeError{err}
		}
		return nil
	}
	o.bind(cmd)
	f := cmd.Flags()
	f.StringVar(&o.real, "real", "", "`PATH` of the real browser-use, or of the Python beside it (default: look on PATH)")
	f.StringVar(&o.startURL, "start-url", "", "have the browser started by a POST to this `URL`, instead of cdpmux ensure")
	f.StringVar(&o.tokenFile, "token-file", "", "`FILE`, mode 0600, with the bearer token for --start-url")
	f.UintVar(&o.slots, "slots", uint(wrapper.Defaults().Slots), "workers `N` that --worker may name; 0 is none")
	f.Var(&o.timeout, "timeout", "limit of one call, in whole seconds")
	f.Var(&o.taskFormat, "task-format", "what a task id begins with: 8 hex digits, or any letters and digits")
	return cmd
}

func (o *writeOptions) run(slug string, flags *pflag.FlagSet, stdout, stderr io.Writer) error {
	home, bin, err := openBin(o.home)
	if err != nil {
		return err
	}
	store, err := home.OpenStore(slug, o.id)
	if err != nil {
		return err
	}
	addr, err := store.Addr()
	if err != nil {
		return err
	}
	if err := o.change(store, flags, bin); err != nil {
		return err
	}
	script, err := storeScript(home, bin, store, addr)
	if err != nil {
		return err
	}
	if err := bin.Write(script); err != nil {
		return err
	}
	chosen, format := store.Wrapper, store.TaskFormat
	if err := store.Update(func(s *lifecycle.Store) { s.Wrapper, s.TaskFormat = chosen, format }); err != nil {
		return err
	}
	for _, warning := range warnings(script, store) {
		fmt.Fprintf(stderr, "cdpmux: warning: %s\n", warning)
	}
	_, err = fmt.Fprintln(stdout, bin.Script(slug))
	return err
}

// change merges the flags that are given into what is remembered.
func (o *writeOptions) change(store *lifecycle.Store, flags *pflag.FlagSet, bin wrapper.Bin) error {
	if store.Wrapper == nil {
		store.Wrapper = &lifecycle.WrapperSettings{}
	}
	w := store.Wrapper
	real, err := findReal(o.real, w.Real, bin)
	if err != nil {
		return err
	}
	w.Real = real
	if flags.Changed("start-url") {
		w.StartURL, w.TokenFile = o.startURL, ""
	}
	if flags.Changed("token-file") {
		if w.TokenFile, err = absoluteFile(o.tokenFile); err != nil {
			return err
		}
	}
	if flags.Changed("slots") {
		slots := int(min(o.slots, 1000)) // too many are refused later
		w.Slots = &slots
	}
	if flags.Changed("timeout") {
		if time.Duration(o.timeout)%time.Second != 0 || o.timeout == 0 {
			return fmt.Errorf("--timeout %s: at least 1s, in whole seconds", &o.timeout)
		}
		w.TimeoutS = int(time.Duration(o.timeout) / time.Second)
	}
	if flags.Changed("task-format") {
		store.TaskFormat = ""
		if o.taskFormat.value == "any" {
			store.TaskFormat = "any"
		}
	}
	return nil
}

// absoluteFile is the path of a file with a secret, which nobody else may read.
func absoluteFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("--token-file %s: others can read it; next: chmod 600", path)
	}
	return path, nil
}

// findReal takes the program that was named, else the remembered one while it
// is there, else that of PATH.
func findReal(given, remembered string, bin wrapper.Bin) (string, error) {
	if given == "" && remembered != "" {
		if real, err := wrapper.FindReal(remembered, "", bin.Dir); err == nil {
			return real, nil
		}
	}
	return wrapper.FindReal(given, os.Getenv("PATH"), bin.Dir)
}

// storeScript is the script of a store as its record has it.
func storeScript(home *lifecycle.Home, bin wrapper.Bin, store *lifecycle.Store, addr string) (wrapper.Script, error) {
	s := wrapper.Script{Slug: store.Slug, ID: store.ID, Addr: addr, Home: home.Dir(), Settings: wrapper.Defaults()}
	s.AnyTask = store.TaskFormat == "any"
	w := store.Wrapper
	if w == nil {
		w = &lifecycle.WrapperSettings{}
	}
	s.StartURL, s.TokenFile = w.StartURL, w.TokenFile
	if w.Slots != nil {
		s.Slots = *w.Slots
	}
	if w.TimeoutS != 0 {
		s.Timeout = time.Duration(w.TimeoutS) * time.Second
	}
	var err error
	if s.Cdpmux, err = os.Executable(); err != nil {
		return s, err
	}
	s.Real, err = findReal("", w.Real, bin)
	return s, err
}

// rewrite writes the script of a store's record.
func rewrite(home *lifecycle.Home, bin wrapper.Bin, store *lifecycle.Store) error {
	addr, err := store.Addr()
	if err != nil {
		return err
	}
	script, err := storeScript(home, bin, store, addr)
	if err != nil {
		return err
	}
	return bin.Write(script)
}

// warnings are what an operator should know of a script that works.
func warnings(s wrapper.Script, store *lifecycle.Store) (list []string) {
	if old := wrapper.TooOld(s.Real); old != "" {
		list = append(list, fmt.Sprintf("%s is browser-use %s; 0.13 or later is needed", s.Real, old))
	}
	clients := uint(16)
	if store.MaxClients != nil {
		clients = *store.MaxClients
	}
	if need := uint(2*(1+s.Slots) + 1 + 4); clients != 0 && need > clients {
		list = append(list, fmt.Sprintf("%d worker slots may need %d clients, and --max-clients is %d: raise it, or promise fewer with --slots", s.Slots, need, clients))
	}
	return list
}
