package main

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/semaphore"
)

// ourCommands are the commands that our scripts call, without the INFO of the quorum's, which
// INFO counts as well. No subject of ours sends the others itself.
var ourCommands = slices.DeleteFunc(slices.Concat(scripts.Commands(), scripts.FairCommands(), scripts.SemaphoreCommands(), scripts.RWLockCommands(), scripts.QuorumCommands(), []string{"spublish"}), func(c string) bool {
	return strings.HasPrefix(c, "eval") || c == "script|load" || c == "info"
})

// anyKind is the Locker of a lock kind.
type anyKind interface {
	holdfast.Locker
	holdfast.Operator
}

// newOurs makes a locker of one lock kind for a task.
type newOurs func(clients []rueidis.Client, t task, lease holdfast.Option) anyKind

// newOf makes one on one Redis, with the New of its package.
func newOf[L anyKind](open func(rueidis.Client, ...holdfast.Option) (L, error), opts ...holdfast.Option) newOurs {
	return func(clients []rueidis.Client, _ task, lease holdfast.Option) anyKind {
		return must(open(clients[0], append(opts, lease)...))
	}
}

// newSemaphore makes one with as many permits as the task has room.
func newSemaphore(clients []rueidis.Client, t task, lease holdfast.Option) anyKind {
	return must(semaphore.New(clients[0], int(t.room()), lease))
}

// newMultilock makes no call.
func newMultilock(clients []rueidis.Client, _ task, lease holdfast.Option) anyKind {
	return must(multilock.New(clients, lease))
}

// newMultilockWithVotes also gives fresh nodes their vote.
func newMultilockWithVotes(clients []rueidis.Client, _ task, lease holdfast.Option) anyKind {
	l := must(multilock.New(clients, lease))
	check(l.DeclareNothingHeld(always))
	return l
}

func oursLibrary(open newOurs) *library {
	return &library{inner: ourCommands, open: func(t task) locker { return openOurs(t, open) }}
}

// ours is a locker of any kind with its clients.
type ours struct {
	clients []rueidis.Client
	locker  anyKind
	readers holdfast.Locker // for cycles that share the key: locker, unless that is only for writers
}

func openOurs(t task, open newOurs) *ours {
	l := &ours{}
	for _, opt := range t.clients() {
		l.clients = append(l.clients, must(rueidis.NewClient(opt)))
	}
	l.locker = open(l.clients, t, holdfast.WithLease(t.lease()))
	l.readers = l.locker
	if rw, ok := l.locker.(*rwlock.Locker); ok {
		l.readers = rw.RLocker()
	}
	return l
}

func (l *ours) cycle(key string) func(func()) error { return cycleOf(l.locker, key) }

func cycleOf(l holdfast.Locker, key string) func(func()) error {
	return func(inside func()) error {
		lease, err := l.Lock(always, key)
		if err != nil {
			return err
		}
		inside()
		return lease.Unlock(always)
	}
}

func (l *ours) campaign(group string) func(func()) error {
	return func(inside func()) error {
		e, err := election.New(l.locker, group)
		if err != nil {
			return err
		}
		return e.Run(always, func(context.Context) error {
			inside()
			return nil
		})
	}
}

func (l *ours) keep(key string) (kept, error) { return l.locker.Lock(always, key) }

func (l *ours) try(key string) (bool, error) {
	_, err := l.locker.TryLock(always, key)
	return unlessRefused(err, holdfast.ErrNotAcquired)
}

func (l *ours) close() {
	_ = l.locker.Close() // what is not released now ends with its lease
	for _, client := range l.clients {
		client.Close()
	}
}
