package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
)

// serveArgs are the arguments after --, which are serve's, and what they say.
// o is nil without a --.
func serveArgs(cmd *cobra.Command, args []string) (flags []string, o *serveOptions, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0 && len(args) == 0:
		return nil, nil, nil
	case dash < 0:
		return nil, nil, fmt.Errorf("unknown argument %q: flags of serve come after --", args[0])
	case dash > 0:
		return nil, nil, fmt.Errorf("unknown argument %q", args[0])
	}
	o, err = parseServe(args)
	return args, o, err
}

// parseServe reads the flags with which a store is to be served. They have to
// mean the same wherever and whenever serve is started with them.
func parseServe(args []string) (*serveOptions, error) {
	o, err := readServe(args)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Concat([]string{o.chrome.Profile, o.chrome.Path, o.ziniaoAccount, o.door.tlsCert, o.door.tlsKey, o.policyFile, o.auditFile}, o.downloadRoots) {
		if strings.ContainsRune(path, filepath.Separator) && !filepath.IsAbs(path) {
			return nil, fmt.Errorf("%s: give the whole path, from /", path)
		}
	}
	o.web, o.store, o.id = true, "", "" // which one is not looked at here
	return o, o.check()
}

// readServe reads the flags, and the variables, without a look at what they mean.
func readServe(args []string) (*serveOptions, error) {
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
	return o, fromEnv(flags)
}

// remember makes flags those that ensure starts the store with.
func remember(store *lifecycle.Store, flags []string) error {
	if slices.Equal(store.Serve, flags) {
		return nil
	}
	return store.Update(func(s *lifecycle.Store) { s.Serve = flags })
}
