// Package fair is a re-entrant lock on one Redis that serves first come, first
// served, over all processes. Its contract is that of package rlock, and more:
// the order.
//
//	locker, err := fair.New(client)
//	err = locker.Do(ctx, "order:42", func(ctx context.Context) error { … })
//
// # Who is authoritative
//
// Redis is, for who holds a key and for who comes next: a hash as in rlock, and a
// list of owners. Scripts change both, one at a time; their order is the order. The
// queue is Redisson's, whose waiters may stand in it. Messages are hints, except a grant,
// and a grant is believed only while Redis cannot have taken it back.
//
// # The states of a waiter
//
//	            first attempt: free and nobody waits
//	Lock ──┬────────────────────────────────────────────────────▶ held
//	       │ refused                                             ▲  ▲
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
// Enter puts a fresh owner at the end of the queue. Every script that finds the
// lock free, or frees it, also serves: it makes the first living waiter the holder and
// tells its locker in the same step, so that a hand-over costs one round trip. A grant
// carries a short first lease ([WithFirstLease]); the first renewal sets the lease that
// the waiter asked for.
//
// # The trust formula
//
//	trusted deadline of a grant = start of the first attempt of its owner's enter
//	                              + min(first lease, lease) − margin
//
// An owner enters once in its life and is granted a lock after that, so that Redis
// lets the first lease end no earlier, whatever was late, lost or repeated; no
// later reply and no heartbeat moves it. The minimum, because the first renewal sets
// the locker's lease, which may be the shorter. A grant is confirmed first if it comes
// when more than half of that time is over, if it has no fence where there should be
// one, if its waiter asked for a fixed or capped lease, or if a heartbeat found it: one
// more call, which sets the lease, and from whose start the lease counts. So nobody
// believes a grant that arrives late, or for an owner that has lost its place.
//
// # Which waiters are alive
//
// A locker with waiters sends a heartbeat five times in [WithStale], at least every 5 s,
// one call for many keys. A key is left out if all its waiters entered less
// than half of that period ago: entering counts as a heartbeat. By the server's clock a locker that was silent for
// as long as WithStale is dead, and its waiters are dropped when they come first. A waiter
// that cannot receive its grant, because its connection is closed, is passed over in the
// same step and keeps its place until its locker is dead: a cut connection is not a death.
//
// A locker that may not subscribe says so with its heartbeats. It has its turn all the
// same, and finds that by a heartbeat: 10 to 100 ms later if it was the next at its last
// one, else with its next one. The others wait that long for it, or one first lease if it has died. A
// heartbeat also grants a free lock to the next waiter, finds a grant whose message was
// lost, and notices a lost place.
//
// # At each failure
//
//   - A waiter's process dies: the others lose one round trip at most. One that
//     vanishes without closing its connections (a cut cable, SIGSTOP) is granted
//     the lock if it comes first while its heartbeat is fresh, and costs one first
//     lease then; all its other waiters together cost no more than WithStale. When it
//     wakes it finds its places gone and enters again, at the end. Where somebody
//     listens to all channels (PSUBSCRIBE *), Redis cannot tell who receives a message,
//     and all dead processes cost what a vanished one does.
//   - A waiter dies between grant and wake-up: as above, one first lease.
//   - The holder dies: its lease ends as in rlock; a heartbeat serves the next waiter.
//   - A message, a reply, a subscription is lost; the queue is deleted: the next
//     heartbeat finds out, within two heartbeats.
//   - A caller gives up: its owner leaves the queue, and passes on a grant that
//     came meanwhile. If a call of the owner may still arrive, a tombstone stays
//     for a minute, so that it cannot come back.
//   - The server's clock jumps ahead, or stands, by more than WithStale: waiters may
//     lose their places, all at once if it is by much, and enter again; a lock
//     may end early, which its holder learns at its renewal. Backwards: dead lockers
//     are noticed later by as much. Neither costs progress, nor exclusion among holders
//     that learn of it in time.
//   - Redis is away or forgets: as in rlock.
//
// # Runs
//
// A grant names the waiters of the same locker that follow without a gap. They are served
// one after another in one hold, without Redis, for up to [WithLocalHandover]: the order
// stays that of the queue. They remain in the queue until the release that names them, so
// that nothing changes if it never comes. Only a waiter that entered at the first attempt
// is served so. Waiters that come while a call to enter is under way enter together in the
// next. Where processes take turns, the waiters of one that holds the key or has several
// places first wait up to 2 ms for one another.
//
// Acquires of keys that nobody waits for, and releases without a run, share calls as in
// rlock.
//
// # Beside other locks
//
// Waiters of Redisson's fair lock may stand in the same queue. One is woken as it expects
// and keeps its turn for 3 s, or 250 ms if it does not listen; a Java waiter that dies
// costs so much. Behind a Java waiter the bounds above are those of Java's own rules. A
// key that rlock or Redisson's plain lock holds is simply held: its release tells the
// queue nothing, and the next heartbeat serves. These locks do not see the queue, and may
// take a free key before the waiters in it.
package fair
