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
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// waiter is a place in the queue of a key.
type waiter struct {
	Owner   string `json:"owner"`
	Library string `json:"library"`
	Label   string `json:"label,omitempty"`
	Dead    bool   `json:"dead"` // its process has been silent for too long; Redisson's do not report
}

func newShow(s *server) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "show [flags] KEY",
		Short: "Show who holds a lock and who waits for it",
		Long: `Show tells who holds the lock KEY, and the queue of those that wait for it in order, those
of Redisson included; of a semaphore, how many permits there are, and who holds them; of a
read/write lock, how many read, and who writes or else one of the readers. It does not show
waiters without an order.`,
		Args: oneKey,
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c.Context(), func(ctx context.Context, client rueidis.Client, o operators) error {
				l, err := o.inspect(ctx, args[0])
				if err != nil {
					return failed(err)
				}
				var queue []waiter
				if l.ordered() {
					if queue, err = queueOf(ctx, client, args[0]); err != nil {
						return failed(err)
					}
				}
				if asJSON {
					return written(json.NewEncoder(c.OutOrStdout()).Encode(l.shown(queue)))
				}
				return written(printLock(c.OutOrStdout(), l, queue))
			})
		},
	}
	outputFlag(c, &asJSON, "text", " or json")
	return c
}

// inspect returns the state of a key, whatever kind of lock it is.
func (o operators) inspect(ctx context.Context, key string) (lock, error) {
	s, err := o.fair.Inspect(ctx, key)
	if err != nil && !errors.Is(err, holdfast.ErrWrongType) || s.Held || s.Waiting > 0 {
		return lockOf(s), err
	}
	reply, bad := o.semaphores.Inspect(ctx, key)
	if bad == nil && reply.Permits+len(reply.Holders) > 0 {
		return lockOf(reply), nil
	}
	if err != nil {
		s, err = o.readWrite.Inspect(ctx, key)
	}
	if errors.Is(err, holdfast.ErrWrongType) && bad != nil && !errors.Is(bad, holdfast.ErrWrongType) { // it may be a semaphore
		err = bad
	}
	return lockOf(s), err
}

// holder is one of a semaphore.
type holder struct {
	Owner       string `json:"owner"`
	Label       string `json:"label,omitempty"`
	Entries     int    `json:"entries"`
	RemainingMS int64  `json:"remaining_ms"`
}

// ordered reports whether it may have a queue.
func (l lock) ordered() bool { return l.Kind == "lock" || l.Kind == "fair" }

// shown is what show prints as JSON.
func (l lock) shown(queue []waiter) any {
	switch l.Kind {
	case "rwlock":
		return l
	case "lock", "fair":
		return struct {
			lock
			Queue []waiter `json:"queue"`
		}{l, queue}
	}
	all := make([]holder, len(l.holders))
	for i, h := range l.holders {
		all[i] = holder{h.Owner, h.Label, h.Entries, h.Remaining.Milliseconds()}
	}
	return struct {
		lock
		Holders []holder `json:"holders"`
	}{l, all}
}

func oneKey(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs one key", c.Name())
	}
	return check.Key(args[0])
}

func queueOf(ctx context.Context, client rueidis.Client, key string) ([]waiter, error) {
	var settings wire.RedisSettings
	if client.Mode() == rueidis.ClientModeCluster {
		settings.Cluster = cluster.New(client)
	}
	reply, err := wire.NewFair(wire.NewRedis(client, settings), wire.FairSettings{}).Queue(ctx, key)
	queue := make([]waiter, len(reply))
	for i, w := range reply {
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
	if l.Kind == "semaphore" {
		line("permits  %d", l.Permits)
		line("taken    %d", l.Taken)
		for i, h := range l.holders {
			left := lock{RemainingMS: h.Remaining.Milliseconds()}.left()
			line("%7d  %s (%s)%s", i+1, printable(h.Owner), left, label(h.Label))
		}
		return err
	}
	if l.Mode != "" {
		line("mode     %s", l.Mode)
		line("readers  %d", l.Readers)
	}
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
	if !l.ordered() {
		return err
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
