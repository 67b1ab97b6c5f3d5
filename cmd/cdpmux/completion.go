package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cdpmux/lifecycle"
	"cdpmux/wrapper"
)

// complete teaches the shells what may follow: store names of the state
// directory, the words that a flag takes, files only where a file is meant.
func complete(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	eachCommand(root, func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil && cmd.Runnable() && cmd.Name() != "help" && cmd.Name() != "man" {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			var words cobra.CompletionFunc
			switch value, isChoice := f.Value.(*choice); {
			case f.Name == "store":
				words = completeStores
			case isChoice:
				words = cobra.FixedCompletions(value.allowed, cobra.ShellCompDirectiveNoFileComp)
			case filesOf[f.Name]:
				return // the shell's own
			case dirsOf[f.Name]:
				words = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
					return nil, cobra.ShellCompDirectiveFilterDirs
				}
			default:
				words = cobra.NoFileCompletions
			}
			_ = cmd.RegisterFlagCompletionFunc(f.Name, words) // once for each flag
		})
	})
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Example = "  cdpmux help serve"
		case "completion":
			cmd.Example = "  cdpmux completion bash > /etc/bash_completion.d/cdpmux"
			for _, shell := range cmd.Commands() {
				shell.Example = "  cdpmux completion " + shell.Name() + " --no-descriptions"
			}
		}
	}
}

// filesOf and dirsOf are the flags that take a file or a directory.
var (
	filesOf = map[string]bool{
		"chrome": true, "real": true, "token-file": true, "close-token-file": true, "active-tasks": true, "ziniao-account": true,
		"policy": true, "audit": true, "tls-cert": true, "tls-key": true,
	}
	dirsOf = map[string]bool{"home": true, "profile": true, "download-roots": true}
)

// eachCommand calls f with every command below root, and with root.
func eachCommand(root *cobra.Command, f func(*cobra.Command)) {
	f(root)
	for _, cmd := range root.Commands() {
		eachCommand(cmd, f)
	}
}

// completeStores are the stores of the state directory that the command line
// names so far. Nothing is made for it.
func completeStores(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	dir, _ := cmd.Flags().GetString("home")
	if dir == "" {
		dir = os.Getenv("CDPMUX_HOME")
	}
	if dir == "" {
		var err error
		if dir, err = lifecycle.DefaultHome(); err != nil {
			return nil, none
		}
	}
	home, err := lifecycle.LookHome(dir)
	if err != nil {
		return nil, none
	}
	stores, err := home.Stores()
	if err != nil {
		return nil, none
	}
	var names []cobra.Completion
	for _, s := range stores {
		if s.Slug != wrapper.Web {
			names = append(names, s.Slug)
		}
	}
	return names, none
}
