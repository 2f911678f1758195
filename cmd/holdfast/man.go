package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a directory",
		Long:    "Man writes holdfast.1, and a page for each command, into DIR, which is there already.",
		Example: "  holdfast man /usr/local/share/man/man1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("man needs one directory")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
		RunE: func(c *cobra.Command, args []string) error {
			root := c.Root()
			root.RemoveCommand(slices.DeleteFunc(slices.Clone(root.Commands()), func(c *cobra.Command) bool {
				return c.Name() != "completion" && c.Name() != "help" // which docs/command.md explains
			})...)
			return written(doc.GenManTree(root, &doc.GenManHeader{Source: "holdfast", Manual: "holdfast"}, args[0]))
		},
	}
}
