package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/scripts"
)

// waiter is a place in the queue of a key.
type waiter struct {
	Owner   string `json:"owner"`
	Library string `json:"library"`
	Label   string `json:"label,omitempty"`
	Dead    bool   `json:"dead"` // its process has been silent for too long; Redisson's do not tell
}

func newShow(s *server) *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:   "show [flags] KEY",
		Short: "Show who holds a lock and who waits for it",
		Long: `Show tells who holds the lock KEY, and the queue of those that wait for it in order, those
of Redisson included. Waiters without an order are not known to Redis.`,
		Args: oneKey,
		RunE: func(c *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o: %q is neither text nor json", output)
			}
			return s.with(c.Context(), func(ctx context.Context, client rueidis.Client, locker *fair.Locker) error {
				status, err := locker.Inspect(ctx, args[0])
				if err != nil {
					return failed(err)
				}
				queue, err := queueOf(ctx, client, args[0])
				if err != nil {
					return failed(err)
				}
				l := lockOf(status)
				if output == "json" {
					return written(json.NewEncoder(c.OutOrStdout()).Encode(struct {
						lock
						Queue []waiter `json:"queue"`
					}{l, queue}))
				}
				return written(printLock(c.OutOrStdout(), l, queue))
			})
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "`FORMAT`: text or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // fails only for an unknown flag
	return c
}

func oneKey(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs one key", c.Name())
	}
	return check.Key(args[0])
}

func queueOf(ctx context.Context, client rueidis.Client, key string) ([]waiter, error) {
	var settings scripts.NodeSettings
	if client.Mode() == rueidis.ClientModeCluster {
		settings.Cluster = cluster.New(client)
	}
	said, err := scripts.NewFair(scripts.NewNodeWith(client, settings), scripts.FairSettings{}).Queue(ctx, key)
	queue := make([]waiter, len(said))
	for i, w := range said {
		library := libraryOf(w.Owner)
		queue[i] = waiter{w.Owner, library, w.Label, !w.Alive && library == "holdfast"}
	}
	return queue, err
}

// label is what stands behind a waiter.
func label(text string) string {
	if text == "" {
		return ""
	}
	return " " + printable(text)
}

func printLock(w io.Writer, l lock, queue []waiter) (err error) {
	line := func(format string, args ...any) {
		if err == nil {
			_, err = fmt.Fprintf(w, format+"\n", args...)
		}
	}
	line("key      %s", printable(l.Key))
	line("kind     %s", l.Kind)
	if l.Holder == "" {
		line("holder   none")
	} else {
		line("holder   %s (%s)", printable(l.Holder), l.Library)
		if l.Label != "" {
			line("label    %s", printable(l.Label))
		}
		line("entries  %d", l.Entries)
		line("left     %s", l.left())
	}
	line("waiting  %d", max(l.Waiting, len(queue)))
	for i, w := range queue {
		more := ""
		if w.Dead {
			more = ", dead"
		}
		line("%7d  %s (%s%s)%s", i+1, printable(w.Owner), w.Library, more, label(w.Label))
	}
	return err
}
