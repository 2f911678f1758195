package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rlock"
)

func newUnlock(s *server) *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:   "unlock [flags] KEY",
		Short: "Take a lock from whoever holds it",
		Long: `Unlock shows who holds the lock KEY, asks, and frees the lock; the next in its queue gets it. It
takes back all permits of a semaphore, and takes a read/write lock from its writer and all
readers. A holder learns of that at its next renewal, within a third of
its lease, or never if its lease is fixed: until then it goes on, beside the next holder.

The exit status is 1 if the lock was free, the answer was not yes, or another holder had come
meanwhile.`,
		Args: oneKey,
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c.Context(), func(ctx context.Context, client rueidis.Client, o operators) error {
				return unlock(ctx, client, o, args[0], yes, c.InOrStdin(), c.OutOrStdout())
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func unlock(ctx context.Context, client rueidis.Client, o operators, key string, yes bool, in io.Reader, out io.Writer) error {
	free := &failure{statusNo, errors.New("the lock is free already")}
	l, err := o.inspect(ctx, key)
	if err != nil {
		return failed(err)
	}
	if len(l.owners()) == 0 {
		return free
	}
	if err := printLock(out, l, nil); err != nil {
		return written(err)
	}
	if !yes {
		whom := "its holder"
		if n := len(l.owners()) + l.otherReaders(); n > 1 {
			whom = fmt.Sprintf("all %d holders", n)
		}
		fmt.Fprintf(out, "Take it from %s? [y/N] ", whom)
		answer, end := bufio.NewReader(in).ReadString('\n')
		answer = strings.ToLower(strings.TrimSpace(answer))
		if end != nil || answer != "y" && answer != "yes" { // the end of the input means no
			return &failure{statusNo, errors.New("nothing was done")}
		}
		before := l.owners()
		if l, err = o.inspect(ctx, key); err != nil {
			return failed(err)
		}
		switch now := l.owners(); {
		case len(now) == 0:
			return free
		case !slices.Equal(now, before):
			return &failure{statusNo, errors.New("the lock has gone to another holder meanwhile; nothing was done")}
		}
	}
	force := holdfast.Operator(o.fair) // gives the lock to the next in the queue
	switch {
	case l.Kind == "semaphore":
		force = o.semaphores
	case l.Kind == "rwlock":
		force = o.readWrite
	case l.Waiting == 0: // wakes those that wait without one
		plain, err := rlock.New(client)
		if err != nil {
			return failed(err)
		}
		defer plain.Close()
		force = plain
	}
	held, err := force.ForceUnlock(ctx, key)
	switch {
	case err != nil:
		return failed(err)
	case !held:
		return free
	}
	more := ""
	if n := l.otherReaders(); n > 0 {
		more = fmt.Sprintf(", and so have %d other readers", n)
	}
	_, err = fmt.Fprintf(out, "%s has lost the lock%s\n", printable(strings.Join(l.owners(), ", ")), more)
	return written(err)
}
