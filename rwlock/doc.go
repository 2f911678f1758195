// Package rwlock is a re-entrant read/write lock on one Redis, a Sentinel set or a Redis Cluster.
//
//	locker, err := rwlock.New(client)
//	err = locker.RLocker().Do(ctx, "catalogue", func(ctx context.Context) error { … }) // many at once
//	err = locker.Do(ctx, "catalogue", func(ctx context.Context) error { … })           // one alone
//
// # What is authoritative
//
// Redis says who holds a key: a hash under its name has a field mode, read or write, and a field
// for each owner with its number of entries; a writer's owner ends with :write. This is the layout
// of Redisson, whose read/write locks are shared. In addition to the hash, each owner has a
// timeout key, which lasts as long as its lease. An owner without one is dead: whoever asks next
// removes it, so a crashed reader delays a writer by at most its lease, however many others renew
// theirs. A holder trusts its lease until its trusted deadline, as described in package rlock.
//
// To find the dead, an acquire, a release and an Inspect cost Redis a PTTL for each hold of the key: 500 of
// them while 500 processes read.
//
// # Readers of one process
//
// They share one hold in Redis, which is renewed once and released by the last of them. For
// [holdfast.WithLocalHandover] after its acquire, a reader that comes reads under it without a call
// to Redis. The next one asks Redis whether its process may continue this way, for as long again: it
// may not while a writer waits. With [holdfast.WithMaxHold], the next one asks for another hold. A reader with a
// lease, a cap or a label of its own has a hold of its own. A call of one hold never changes another.
//
// # Among Go processes nobody starves
//
// A process whose callers wait notes this in Redis as a wish, which counts for 3 s and which it renews
// each second. While a writer has a wish, readers that come later wait, wherever they are. When a
// writer releases, the readers that have waited meanwhile are next: those that share a hold go in
// together, before any writer. If its lease runs out instead, only the readers that were already
// waiting when it got the lock are next. Later readers wait again if another writer does. Of the
// processes with writers that wait, the one that has waited longest is first.
//
// A wish ends with the turn of its process, or when its last waiter has gone; the wish of a process
// that died delays others by at most 3 s. A free lock is left for a second to those whose turn it
// is, however many of them have died. Then whoever asks gets it (one that never waits: after 3 s). If the
// acquire of a writer that has given up arrives late and takes the lock, that is its turn.
// Java neither notes nor honours wishes: its readers pass a waiting writer.
//
// # At each failure
//
//   - A holder dies or is paused, a reply or a message is lost, Redis is unavailable or loses its
//     memory: as in rlock.
//   - A waiting process dies: its wish delays others by at most 3 s.
//   - The wishes are deleted or evicted, or Redis has no memory for them: nobody lets others go first
//     until processes note them again, each second. Exclusion does not depend on them.
//   - A timeout key is deleted or evicted: the hold of its owner has ended, and the owner learns of
//     it at its next renewal. Until then there may be two holders.
//
// # Both at once
//
// A context bound to a write lease may take the read lock of its key, and then release the write
// lock: others read beside it from then on (downgrade). The contexts that are bound to the write lease,
// such as that of its Do, end with it. A context bound to a read lease
// that asks for the write lock gets [holdfast.ErrUpgrade] immediately, as it would deadlock.
//
// # Fences
//
// A writer's number is larger than all earlier ones. A reader's is larger than those of all
// earlier writers, and smaller than those of all later ones. Readers that share a hold share a
// number. A reader beside its own writer has the number of that writer.
package rwlock
