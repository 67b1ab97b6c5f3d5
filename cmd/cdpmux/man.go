package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write a man page for each command",
		Long: `Write a man page for each command into a directory, which is made when it is
missing. Their date is SOURCE_DATE_EPOCH, or today.`,
		Example: `  cdpmux man ~/.local/share/man/man1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeMan(cmd.Root(), args[0]); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
}

func writeMan(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true // it would date each page by the day it is made
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "cdpmux " + version, Manual: "cdpmux"}, dir)
}
