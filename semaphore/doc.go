// Package semaphore lets up to n holders have a key at the same time, on one Redis: at most five
// exports, or three calls to a partner's API, across all processes.
//
//	locker, err := semaphore.New(client, 5)
//	err = locker.Do(ctx, "exports", func(ctx context.Context) error { … })
//
// Lock takes one of the n permits of a key, and Unlock gives it back. The calls, leases, errors and
// options are those of the locks; with n = 1 it is a mutex. A permit belongs to the caller of Lock,
// and its context re-enters it. A caller that locks a key again without that context asks for
// another permit.
//
// # What is authoritative
//
// Redis says which owners have permits: a sorted set under the key's own name has a member for each,
// whose score is the end of its lease on the clock of the server. An owner has its permit while its
// score is later than that clock. No client's clock counts. A hash, holdfast_permits:{key},
// has the number of permits, and what people see about the owners. A holder trusts its lease until its
// trusted deadline; that and the states of a lease are those of package rlock.
//
// # The number of permits
//
// The first locker that takes a permit writes its n. As long as any permit is taken, a locker with
// another n gets a [holdfast.PermitsError], with both numbers. So a new version of a program with
// another n works as soon as no permit of the old number is taken. To change the number in use,
// call [Locker.Resize] or the command holdfast resize: from then on an operator's number counts for
// all, old programs and new ones, until nobody has used the key for a week.
//
// # At each failure
//
//   - The holder's process dies: its permit is free within one lease. This needs no cleanup: whoever
//     asks next finds that the lease has ended, and waiters of other processes ask when it should
//     have.
//   - The holder's process is paused: its lease ends meanwhile. A renewal that comes late finds it
//     ended, and never brings it back, even if its member is still there.
//   - A reply is lost: repeating is harmless; an acquire is undone, and a tombstone keeps one that
//     arrives later from taking a permit.
//   - A message is lost, or Redis is unavailable: as with package rlock.
//   - Redis loses its memory: others may get permits while holders still trust theirs, until these
//     holders next renew. If the clock of the server jumps ahead, leases end early there, with the
//     same effect; if it jumps back, crashed holders keep their permits for longer.
//   - Somebody deletes the hash, or Redis evicts it: no permit is given until the next renewal of a
//     holder has restored it, with the n of its locker, or all leases have ended. A number that an
//     operator has set is forgotten.
//   - Redis is out of memory: no permit is given; held ones can still be renewed and given back.
//
// # Waiting
//
// A caller asks Redis unless others wait for the key in its locker. The waiters of one locker
// queue in its memory, and one loop talks to Redis for all of them, while others of the locker hold
// permits. A message wakes the loop when a permit has been given back or their number has changed,
// and it goes on until Redis refuses, with twice as many waiters after each round trip: as many get
// permits as there is room for. Within one locker a permit goes from holder to waiter in memory for up
// to [holdfast.WithLocalHandover]; then the locker gives it back, and steps back for as many releases
// of others as there are other processes that listen. A process whose round trip takes a few times as
// long as another's comes too late for most of these turns: it may wait for as long as the nearer one
// has waiters.
//
// Calls of goroutines of one locker that are made at the same time go out as one, like those
// of rlock.
package semaphore
