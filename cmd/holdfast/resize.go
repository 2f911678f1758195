package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/internal/check"
)

func newResize(s *server) *cobra.Command {
	return &cobra.Command{
		Use:   "resize [flags] KEY N",
		Short: "Set how many permits a semaphore has",
		Long: `Resize sets how many permits the semaphore KEY has. From then on the number that programs give
does not count, until nobody has used KEY for a week. More permits let waiters go on; with
fewer, holders keep what they have.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("resize needs a key and a number")
			}
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return fmt.Errorf("%q is not a number of permits", args[1])
			}
			if err := check.Permits(n); err != nil {
				return err
			}
			return check.Key(args[0])
		},
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c.Context(), func(ctx context.Context, _ rueidis.Client, o operators) error {
				n, _ := strconv.Atoi(args[1])
				if err := o.semaphores.Resize(ctx, args[0], n); err != nil {
					return failed(err)
				}
				return nil
			})
		},
	}
}
