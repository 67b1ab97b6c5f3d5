package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
)

// serveArgs are the arguments after --, which are serve's. given is false
// without a --.
func serveArgs(cmd *cobra.Command, args []string) (flags []string, given bool, err error) {
	dash := cmd.ArgsLenAtDash()
	if before := args[:max(0, min(dash, len(args)))]; dash < 0 {
		before = args
		if len(before) > 0 {
			return nil, false, fmt.Errorf("unknown argument %q: flags of serve come after --", before[0])
		}
		return nil, false, nil
	} else if len(before) > 0 {
		return nil, false, fmt.Errorf("unknown argument %q", before[0])
	}
	flags = args[dash:]
	_, err = parseServe(flags)
	return flags, true, err
}

// parseServe reads the flags with which a store is to be served. They have to
// mean the same wherever and whenever serve is started with them.
func parseServe(args []string) (*serveOptions, error) {
	o := newServeOptions()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	o.bind(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unknown argument %q of serve", flags.Arg(0))
	}
	for _, name := range []string{"store", "id", "web", "home"} {
		if flags.Changed(name) {
			return nil, fmt.Errorf("give --%s before the --", name)
		}
	}
	if err := fromEnv(flags); err != nil {
		return nil, err
	}
	if _, port, _ := net.SplitHostPort(o.listen); port == "0" {
		return nil, errors.New("--listen with port 0 cannot be found again: give a port, or none")
	}
	for _, path := range slices.Concat([]string{o.chrome.Profile, o.chrome.Path}, o.downloadRoots) {
		if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%s: give the whole path, from /", path)
		}
	}
	o.web, o.store, o.id = true, "", "" // which one is not looked at here
	return o, o.check()
}

// remember makes flags those that ensure starts the store with.
func remember(store *lifecycle.Store, flags []string) error {
	if slices.Equal(store.Serve, flags) {
		return nil
	}
	return store.Update(func(s *lifecycle.Store) { s.Serve = flags })
}
