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
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

func newUnlock(s *server) *cobra.Command {
	yes := false
	c := &cobra.Command{
		Use:   "unlock [flags] KEY",
		Short: "Take a lock from its holder",
		Long: `Unlock shows the holder of the lock KEY, asks, and frees the lock, whoever holds it; the next
in its queue gets it. Of a semaphore it takes back all permits. The holder learns of that at its next renewal, within a third of its
lease, or never if its lease is fixed: until then it goes on, beside the next holder.

The exit status is 1 if the lock was free, or if the answer was not yes.`,
		Args: oneKey,
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c.Context(), func(ctx context.Context, client rueidis.Client, locker *fair.Locker) error {
				return unlock(ctx, client, locker, args[0], yes, c.InOrStdin(), c.OutOrStdout())
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func unlock(ctx context.Context, client rueidis.Client, locker *fair.Locker, key string, yes bool, in io.Reader, out io.Writer) error {
	free := &failure{statusNo, errors.New("the lock is free already")}
	status, permits, err := inspect(ctx, client, locker, key)
	if err != nil {
		return failed(err)
	}
	if !status.Held {
		return free
	}
	l := lockOf(status)
	if permits {
		err = printSemaphore(out, l)
	} else {
		err = printLock(out, l, nil)
	}
	if err != nil {
		return written(err)
	}
	if !yes {
		fmt.Fprint(out, "Take it from its holder? [y/N] ")
		answer, end := bufio.NewReader(in).ReadString('\n')
		answer = strings.ToLower(strings.TrimSpace(answer))
		if end != nil || answer != "y" && answer != "yes" { // an end of the input is no
			return &failure{statusNo, errors.New("nothing was done")}
		}
		if status, permits, err = inspect(ctx, client, locker, key); err != nil {
			return failed(err)
		}
		if status.Held && !slices.Equal(lockOf(status).owners(), l.owners()) {
			return &failure{statusNo, errors.New("the lock has gone to another holder meanwhile; nothing was done")}
		}
	}
	force := holdfast.Operator(locker) // gives the lock to the next in the queue
	switch {
	case permits:
		semaphores, err := semaphore.New(client, 1) // which counts only for locks
		if err != nil {
			return failed(err)
		}
		defer semaphores.Close()
		force = semaphores
	case status.Waiting == 0: // wakes those that wait without one
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
	_, err = fmt.Fprintf(out, "%s has lost the lock\n", printable(strings.Join(l.owners(), ", ")))
	return written(err)
}
