package main

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by releases: -ldflags "-X main.version=v1.2.3".
// Without a commit, what Go has noted of the repository is told.
var version, commit = "dev", ""

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and Go version",
		Example: `  cdpmux version`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine(info))
			return err
		},
	}
}

// versionLine takes nil where a binary carries no build information.
func versionLine(info *debug.BuildInfo) string {
	noted, goVersion := "", "unknown"
	if info != nil {
		goVersion = info.GoVersion
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				noted = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				noted += " (modified)"
			}
		}
	}
	return fmt.Sprintf("cdpmux %s commit %s %s", version, cmp.Or(commit, noted, "unknown"), goVersion)
}
