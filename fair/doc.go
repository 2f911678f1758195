// Package fair is a re-entrant lock on one Redis that serves the waiters of all processes
// first come, first served. It adds this order to the contract of package rlock.
//
//	locker, err := fair.New(client)
//	err = locker.Do(ctx, "order:42", func(ctx context.Context) error { … })
//
// # What is authoritative
//
// Redis says which owner holds a key and which comes next: in a hash, as in rlock, and in a
// list of owners. Scripts change both, one at a time; the order in which they run counts. The
// layout of the queue is Redisson's, and Redisson's waiters may stand in it. Messages are hints,
// except a grant, and a waiter believes a grant only while Redis cannot have taken it back.
//
// # The states of a waiter
//
//	            first attempt: free, no waiters
//	Lock ──┬────────────────────────────────────────────────────▶ held
//	       │ not free                                            ▲  ▲
//	       ▼            enter           grant, young enough      │  │
//	    outside ─────────────────▶ waiting ──────────────────────┘  │ ours
//	       ▲                        │  │ │ grant, old or only found │
//	       │  place lost: new owner │  │ └──────────▶ confirming ───┤
//	       ├────────────────────────┘  │                 │ not ours │
//	       └───────────────────────────┼─────────────────┘          │
//	                                   │ cancel, time over, Close   │
//	                                   ▼                            ▼
//	                                 leave                        release
//
// Enter puts a fresh owner at the end of the queue. A script that frees the lock also serves, as do
// enters, heartbeats and first attempts that find it free: it makes the first live waiter the holder
// and tells its locker in the same step, so a grant costs one round trip, or two if the waiter confirms
// it. A grant carries a short lease ([WithGrantLease]); the first renewal sets the lease that the
// waiter asked for.
//
// # The trust formula
//
//	trusted deadline of a grant = start of the first attempt of its owner's enter
//	                              + grant lease − margin
//
// An owner enters only once, and Redis grants it a lock only after that. So the grant lease
// cannot end earlier in Redis, whatever was late, lost or repeated, and no later reply and
// no heartbeat moves the deadline.
//
// A waiter first confirms a grant if one of these is so:
//   - more than half of the grant lease has passed since that start: 2.5 s by default;
//   - it lacks a fence, with fencing on;
//   - the grant lease is longer than the lease, for which a holder that dies may keep the key;
//   - it is for a fixed or capped lease, or for one with a [holdfast.Label];
//   - a call only found that the owner holds the key, as a heartbeat does after a lost message;
//   - its locker still knows of a hold of the key;
//   - the locker has [holdfast.WithReplicas]; or [WithConfirmedGrants], and a message brought it.
//
// The confirmation is one more call, which sets the lease, and the lease counts from the start of
// that call. So no waiter believes a grant that arrives late, or that is for an owner that has
// lost its place.
//
// A Redis user with the right to publish can forge a message. So the number of a waiter's
// owner ends with digits that only its locker can make, and the locker ignores a message for
// any other owner. Until the grant, these digits are only in Redis' queue. A user that reads
// the queue and publishes to the inbox can still forge a grant, unless [WithConfirmedGrants]
// is set.
//
// # A message at the wrong server
//
// A locker's subscription may be on a different server than its calls: on a master that has
// become a replica, say, after the name of the master moved. A replica passes on what its
// master publishes, but the master does not count that listener. So a script sends a grant
// only if the inbox has a subscriber on its own server. The same script then never takes the
// grant back: a grant that somebody can hear is the hold that Redis has. If the inbox has no
// subscriber there, nothing is sent, and the script passes over the waiter.
//
//   - The old master keeps the subscription, the new one carries out the calls: the new one
//     counts no subscriber. The waiter is served by its own heartbeat, whose reply has the
//     grant, until its subscription has moved too.
//   - A connection that has died unseen still counts as a subscriber: the grant stays for
//     its grant lease, in which a heartbeat finds it.
//   - A replica passes on an earlier grant late. Replicas get the hold before its message.
//     The waiter trusts the message only while that hold lasts, by the formula above, or
//     confirms it. If its owner has been served or has left since, the message is for nobody.
//   - A failover loses the hold together with its message, or the hold alone after the message was
//     heard: the lock is lost like any that a replica lacks, see rlock.
//
// Two servers that both carry out calls are two memories, not one Redis with a lock.
//
// # Which waiters are alive
//
// A locker with waiters sends a heartbeat five times in [WithWaiterTTL], at least every 5 s,
// one call for many keys. It leaves out a key if all waiters of the key entered less than half the
// time between two heartbeats ago, as entering counts as one. A locker that was silent for
// WithWaiterTTL, by the server's clock, is dead, and its waiters are dropped when they reach
// the front. If a waiter cannot receive its grant because its connection is closed, the
// script passes over it in the same step, and sends nothing. The waiter keeps its place
// until its locker is dead: a cut connection is not a death.
//
// A locker that is not allowed to subscribe says so in its heartbeats. It still gets its turn,
// and a heartbeat finds the grant: after 10 to 100 ms if the last heartbeat found its waiter
// next in the queue, otherwise when the next regular heartbeat is due. The others wait that
// long for it, or one grant lease if it has died. A heartbeat also grants a free lock to the
// next waiter, finds a grant whose message was lost, and notices a lost place.
//
// # At each failure
//
//   - A waiter's process dies: the script passes over it. A process that vanishes without
//     closing its connections (a cut cable, SIGSTOP) gets the lock if it
//     comes first while its heartbeat is fresh, and then costs one grant lease; all its
//     other waiters together cost no more than WithWaiterTTL. When it wakes, it finds its
//     places gone and enters again, at the end. If some client listens to all channels
//     (PSUBSCRIBE *), Redis cannot tell whether the waiter receives a message, and each
//     dead process costs as much as a vanished one.
//   - A waiter dies between grant and wake-up: as above, one grant lease.
//   - The holder dies: its lease ends as in rlock; a heartbeat serves the next waiter.
//   - A message, a reply or a subscription is lost, or the queue is deleted: a heartbeat
//     finds out, within two periods.
//   - A caller gives up: its owner leaves the queue, and passes on a grant that
//     came meanwhile. If a call of the owner may still arrive, a tombstone stays
//     for a minute, so that it cannot come back. While Redis is unavailable, the call is repeated
//     until the owner can no longer have anything: a minute, WithWaiterTTL and a lease. An owner
//     that still gets the key gives it back when its message comes, or when a heartbeat finds it.
//   - The server's clock jumps ahead, or the server stands still, by more than WithWaiterTTL:
//     waiters may lose their places (all of them after a large jump) and enter again. A lock
//     may end early, and its holder learns of that at its renewal. The clock jumps back: dead
//     lockers are noticed that much later. Neither stops progress or breaks exclusion among
//     holders that learn of it in time.
//   - Redis is unavailable or loses its memory: as in rlock.
//
// # Runs
//
// A grant names the waiters of the same locker that follow without a gap. One hold serves
// them in turn, without Redis, for up to [holdfast.WithLocalHandover]: the queue's order is kept.
// They remain in the queue until the release that names them, so a release that never comes
// changes nothing. A run only serves waiters that entered at the first attempt. Waiters that come
// while a call to enter is under way enter together in the next. When processes take turns, and
// one of them holds the key or has several places, its new waiters first linger for up to 2 ms, to
// enter together.
//
// Acquires of keys without waiters, and releases without a run, go out in batches as in
// rlock.
//
// # Beside other locks
//
// Waiters of Redisson's fair lock may stand in the same queue. Such a waiter is woken as it
// expects and keeps its turn for 3 s, or for 250 ms if it does not listen; one that has died
// costs the same. Behind a Java waiter, Java's own rules set the bounds. To fair, a key that
// rlock or Redisson's plain lock holds is simply held: its release sends the queue no
// message, and the next heartbeat serves. Those locks do not see the queue, and may take a
// free key before its waiters.
package fair
