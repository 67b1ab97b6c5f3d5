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
	for _, path := range slices.Concat([]string{o.chrome.Profile, o.chrome.Path, o.ziniaoAccount}, o.downloadRoots) {
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

// rememberListen makes addr the store's, as serve --listen does.
func rememberListen(store *lifecycle.Store, addr string) error {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return err
	}
	owner, err := store.PortOwner(tcp.Port)
	if err != nil {
		return err
	}
	if owner != "" {
		return fmt.Errorf("port %d belongs to the store %s; choose another with --listen", tcp.Port, owner)
	}
	return store.Remember(tcp)
}
