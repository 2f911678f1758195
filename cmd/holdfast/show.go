package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/semaphore"
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
of Redisson included; of a semaphore, how many permits there are, and who holds them. Waiters
without an order are not known to Redis.`,
		Args: oneKey,
		RunE: func(c *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o: %q is neither text nor json", output)
			}
			return s.with(c.Context(), func(ctx context.Context, client rueidis.Client, locker *fair.Locker) error {
				status, permits, err := inspect(ctx, client, locker, args[0])
				if err != nil {
					return failed(err)
				}
				if permits {
					l := lockOf(status)
					if output == "json" {
						return written(json.NewEncoder(c.OutOrStdout()).Encode(semaphoreOf(l)))
					}
					return written(printSemaphore(c.OutOrStdout(), l))
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

// inspect returns the state of a lock or, if that is what the key is, of a semaphore.
func inspect(ctx context.Context, client rueidis.Client, locker *fair.Locker, key string) (s holdfast.Status, permits bool, err error) {
	s, err = locker.Inspect(ctx, key)
	if err != nil && !errors.Is(err, holdfast.ErrWrongType) || s.Held || s.Waiting > 0 {
		return s, false, err
	}
	l, bad := semaphore.New(client, 1) // which counts only for locks
	if bad != nil {
		return s, false, bad
	}
	defer l.Close()
	if said, bad := l.Inspect(ctx, key); bad == nil && said.Permits+len(said.Holders) > 0 {
		return said, true, nil
	}
	return s, false, err
}

// holder is one of a semaphore.
type holder struct {
	Owner       string `json:"owner"`
	Label       string `json:"label,omitempty"`
	Entries     int    `json:"entries"`
	RemainingMS int64  `json:"remaining_ms"`
}

// semaphoreOf is what show prints of a semaphore as JSON.
func semaphoreOf(l lock) any {
	all := make([]holder, len(l.holders))
	for i, h := range l.holders {
		all[i] = holder{h.Owner, h.Label, h.Entries, h.Remaining.Milliseconds()}
	}
	return struct {
		lock
		Holders []holder `json:"holders"`
	}{l, all}
}

func printSemaphore(w io.Writer, l lock) error {
	_, err := fmt.Fprintf(w, "key      %s\nkind     %s\npermits  %d\ntaken    %d\n", printable(l.Key), l.Kind, l.Permits, l.Taken)
	for i, h := range l.holders {
		if err == nil {
			left := lock{RemainingMS: h.Remaining.Milliseconds()}.left()
			_, err = fmt.Fprintf(w, "%7d  %s (%s)%s\n", i+1, printable(h.Owner), left, label(h.Label))
		}
	}
	return err
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
