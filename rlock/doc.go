// Package rlock is a re-entrant lock on one Redis. Package rwlock has locks for readers.
//
//	locker, err := rlock.New(client)
//	err = locker.Do(ctx, "sku:42", func(ctx context.Context) error { … })
//
// # What is authoritative
//
// Redis says which owner holds a key: a hash under the key's own name has one field, the owner,
// whose value counts its entries, and an expiry, the lease. This is Redisson's layout, so locks are
// shared with it. The holder itself knows how long it may believe in its lease: until its trusted
// deadline,
//
//	start of the last acquire or renewal that succeeded + lease − margin
//	margin = lease/100 + 2 ms
//
// on the monotonic clock. It counts from the start, not from the reply, as Redis began the
// lease somewhere in between. So a lease ends here before Redis can give the key to
// anybody else, as long as clocks advance at rates that differ by at most 1 %.
//
// # The states of a lease
//
//	          renewed every third of the lease
//	             ┌──────┐
//	             ▼      │
//	Lock ──▶    held ───┴── Unlock ─────────▶ ErrReleased
//	             │  └────── Close ──────────▶ ErrClosed
//	             ├── Redis says "not yours" ▶ ErrLost, immediately
//	             ├── no answer ─────────────▶ ErrLost, at the trusted deadline
//	             └── MaxHold is over ───────▶ ErrLost, and the key is released
//
// Done, Err and the bound context report the end. A lease that has ended never lives again.
//
// # At each failure
//
//   - The holder's process dies: its keys are free within one lease.
//   - The holder's process is paused: the lease ends meanwhile. When the process wakes, the
//     lease has ended before its code can ask Err, and no renewal brings it back. Only
//     fences protect code that does not ask.
//   - A reply is lost: repeating is harmless; an acquire is undone and tried
//     again under another owner.
//   - A message is lost, the subscription drops: waiters look again when the subscription is back,
//     at the latest when the holder's lease should have ended.
//   - Redis is unavailable: waits ride it out for [holdfast.WithMaxOutage]; holders go on until
//     their trusted deadlines.
//   - Redis loses its memory (restart without persistence, FLUSHALL, failover
//     to a replica that lags): another may get the key while the holder still
//     believes in it, until its next renewal or the end of a fixed lease. One Redis
//     cannot do better; fences still grow, but for the exceptions of G10.
//
// # Waiting
//
// The waiters of one locker for a key queue in its memory, and one loop talks to Redis for
// all of them. The message of a release wakes the loop. Within one locker a key goes from
// waiter to waiter in memory for up to [holdfast.WithLocalHandover]; then the other
// processes have their turns. A process whose round trip takes a few times as long as
// another's comes too late for most turns: it may wait for as long as the nearer one has
// waiters. Package fair serves in order.
//
// # Batches
//
// Acquires that goroutines of one locker are about to send at the same moment go out
// as one call, up to 50 of them, and so do releases: most of the cost of so small a script
// is the call. Each has its own answer, its own refusal and, without an answer, its own
// doubt; a caller that leaves costs the others nothing. Each goes out alone while no more
// than 8 calls are under way, on a Redis Cluster, and with [holdfast.WithReplicas].
package rlock
