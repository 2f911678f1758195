package locktest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

// Owners of which nobody here knows any more, but Redis may: none comes back, and
// none keeps a place or the key.

func init() {
	registerFair("F7_EnterArrivesAfterTheLoss", testEnterAfterLoss)
	registerFair("F7_EnterArrivesAfterTheWait", testEnterAfterWait)
	registerFair("F7_GrantAfterTheLinesEnd", testGrantAfterLine)
	registerFair("F24_LostInARun", testLostInARun)
}

// stranger is an owner of a client that nobody knows.
const stranger = "00000000-0000-4000-8000-000000000000:01"

// lineOver returns when the client of that owner does not look after the key's queue
// any more, as nobody of it waits.
func (r *faultRig) lineOver(key, owner string) {
	r.t.Helper()
	await(r.t, func() bool { return listeners(r.t, r.server, inboxOf(key, owner)) == 0 })
}

// An enter is held up on its way and sent again; its owner is served and loses the
// key. When the first arrives, nobody enters by it, whether or not others wait.
func testEnterAfterLoss(t *testing.T, d Kind) {
	for name, others := range map[string]bool{"others wait": true, "nobody waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sockets
			r := newFaultRig(t, d, Options{Lease: 2 * long, Stale: 2 * long, FirstLease: 2 * long}, s.dialled)
			before := lock(t, r.other, bounded(t), "k")
			held, arrived := delayed(r.proxy, "enter")
			waiting := lockAside(r.locker, bounded(t), "k")
			within(t, held)
			s.drop()
			await(t, func() bool { return len(queued(t, r.server, "k")) == 1 })
			within(t, arrived) // the second
			await(t, func() bool { return listeners(t, r.server, inboxOf("k", queued(t, r.server, "k")[0])) == 1 })
			require.NoError(t, before.Unlock(bounded(t)))
			lost := got(t, waiting)
			var next <-chan acquired
			if others {
				next = r.inLine(bounded(t), "k", 1)
			} else {
				r.lineOver("k", lost.Owner())
			}
			_, err := r.locker.ForceUnlock(bounded(t), "k")
			require.NoError(t, err)
			require.ErrorIs(t, lost.Err(), holdfast.ErrLost)
			await(t, func() bool { return tombstones(r) == 1 }, "it may come back")
			if others {
				require.NoError(t, got(t, next).Unlock(bounded(t)))
			}

			r.proxy.Release()
			within(t, arrived)
			require.Empty(t, r.owner("k"), "it has entered once more")
			require.Empty(t, queued(t, r.server, "k"))
			r.tidy("k")
		})
	}
}

// An enter is held up on its way, and its waiter gives up: before the answer to any
// attempt, or after that to the second.
func testEnterAfterWait(t *testing.T, d Kind) {
	for name, answered := range map[string]bool{"unanswered": false, "answered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sockets
			r := newFaultRig(t, d, Options{Lease: 2 * long, Stale: 2 * long, FirstLease: 2 * long}, s.dialled)
			before := lock(t, r.other, bounded(t), "k")
			held, arrived := delayed(r.proxy, "enter")
			ctx, cancel := context.WithCancel(bounded(t))
			defer cancel()
			leaving := lockAside(r.locker, ctx, "k")
			within(t, held)
			if answered {
				s.drop()
				await(t, func() bool { return len(queued(t, r.server, "k")) == 1 })
				within(t, arrived)    // the second
				r.inLine(ctx, "k", 2) // who enters after the answer
			}
			cancel()
			require.ErrorIs(t, within(t, leaving).err, context.Canceled)
			s.drop()
			await(t, func() bool { return tombstones(r) >= 1 && len(queued(t, r.server, "k")) == 0 }, "it may come back")

			r.proxy.Release()
			within(t, arrived)
			require.Empty(t, queued(t, r.server, "k"), "it has entered once more")
			require.NoError(t, before.Unlock(bounded(t)))
			r.tidy("k")
		})
	}
}

// Redis refuses to let go of one that has given up. Then it grants the key to it, by
// a call of this client, of which nobody waits any more: it is given back at once.
func testGrantAfterLine(t *testing.T, d Kind) {
	gaveUp := make(chan struct{}, 1)
	r := newFaultRig(t, d, Options{
		Lease: 500 * time.Millisecond, Stale: long, FirstLease: long,
		Logger: slog.New(slog.NewTextHandler(toldWhen{"could not leave the queue", gaveUp}, nil)),
	})
	l := lock(t, r.locker, bounded(t), "k", holdfast.FixedLease(long))
	ctx, cancel := context.WithCancel(bounded(t))
	leaving := r.inLine(ctx, "k", 1)
	r.server.Do(t, "ACL", "SETUSER", "default", "-eval", "-evalsha")
	cancel()
	require.ErrorIs(t, within(t, leaving).err, context.Canceled)
	within(t, gaveUp)
	r.server.Do(t, "ACL", "SETUSER", "default", "+@all")
	r.lineOver("k", l.Owner())
	require.Len(t, queued(t, r.server, "k"), 1)
	require.NoError(t, l.Unlock(bounded(t)))
	r.tidy("k")
}

// toldWhen is a log that tells of a line with these words.
type toldWhen struct {
	words string
	told  chan<- struct{}
}

func (l toldWhen) Write(b []byte) (int, error) {
	if strings.Contains(string(b), l.words) {
		select {
		case l.told <- struct{}{}:
		default:
		}
	}
	return len(b), nil
}

// Somebody else has the key that a run was granted, of which one was served. When
// its client finds out, the run's place is given up, whether or not others wait.
func testLostInARun(t *testing.T, d Kind) {
	for name, others := range map[string]bool{"others wait": true, "nobody waits": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const lease = 12 * time.Second
			r := newFaultRig(t, d, Options{Lease: lease, Handover: ptr(lease), FirstLease: long, Stale: 2 * time.Second})
			lost := r.inRun(r.other)
			var last <-chan acquired
			if others {
				last = r.inLine(bounded(t), "k", 2)
			} else {
				r.lineOver("k", lost.Owner())
			}
			behind := queued(t, r.server, "k")[1:]
			r.server.Do(t, "EVAL", "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('HDEL', KEYS[1], ARGV[2])",
				"1", "k", stranger, lost.Owner())
			within(t, lost.Done())
			await(t, func() bool { return slices.Equal(behind, queued(t, r.server, "k")) }, "who was served stands in the queue")
			r.server.Do(t, "DEL", "k")
			if others {
				require.NoError(t, got(t, last).Unlock(bounded(t)))
			}
			r.tidy("k")
		})
	}
}
