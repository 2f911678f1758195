// Package watchdog keeps many leases alive and knows until when each may be trusted.
//
// A lease is what a server grants to an owner for a bounded time. The holder must renew it in time, and must stop by itself
// before the server can give it to somebody else, even when the server does not answer. One [Watchdog] does both for any
// number of leases, with one goroutine and one timer in all, and one of each for a call in flight. It knows nothing of
// the server: renewing is a function that the user supplies.
//
// # What is authoritative
//
// The server alone decides which owner holds a lease. The watchdog never claims more than the server has promised, and it
// claims less as time goes by: silence ends a lease, only a positive answer prolongs it.
//
// # The trust formula
//
//	trusted deadline = start of the last attempt that succeeded + lease − margin
//	margin           = lease/100 + 2 ms
//
// At first, the attempt is the one that acquired the lease ([Terms].Anchor). It counts from the start, not from the
// answer: the server began to count somewhere in between. The margin allows for clocks that differ in rate by 1 %.
// Only the monotonic clock is read. The deadline only moves later, and never beyond [Terms].MaxHold.
//
// # States of a lease
//
//	           due, each Lease/3            Unanswered, or Lease/6 is over
//	Watch ──► held ──────────────► renewing ───────────────────────► overdue
//	            ▲      Renewed       │  ▲          tries again           │
//	            ├────────────────────┘  └────────────────────────────────┤
//	            └────────────────────────────────────────────────────────┘
//	                                Renewed, late
//
//	any of these ──► ended
//
// A lease is alive in every state but ended, and it may end from each of them:
//
//   - by [NotOurs], immediately: [ErrNotOurs];
//   - by the trusted deadline: [ErrDeadline], or [ErrFixedLease] if it was not to be renewed;
//   - by the end of [Terms].MaxHold: [ErrMaxHold]. The lease is probably still ours then, and should be released;
//   - by [Watchdog.Forget], for which [Config].Ended is not called.
//
// Ended is final. A later answer changes nothing.
//
// # What happens when
//
//   - A call fails or its reply is lost ([Unanswered]): its leases try again after Lease/60, then Lease/30, then
//     each Lease/15, until the trusted deadline. Each of these is at most ⅔ s, and then multiplied by a random factor from
//     0.5 to 1.5.
//   - Eight calls in a row fail: the server is unavailable. From then on, leases try again at instants that all share,
//     at most a second apart, with eight calls at a time. So the server gets a few calls a second, however many leases
//     there are. Other leases are renewed when they are due, and the first answer ends this.
//   - A call is slow: after Lease/6 its context ends, and so does the patience of the scheduler. Its leases try again as
//     above, while other batches have not been delayed.
//   - A call hangs and ignores its context: as above, but it counts as one of the eight until it returns. When
//     eight hang, nothing is renewed any more, and leases end at their deadlines as always.
//   - An answer comes late: NotOurs ends the lease; Renewed counts from the start of its own attempt.
//   - One lease of a batch is lost: the others are not affected.
//   - The process stands still for longer than a lease: on waking, [Lease.Alive] is false before anything has run, and
//     the scheduler ends the lease and does not renew it.
//   - The scheduler is late (a busy machine): Alive looks at the clock itself.
//   - The watchdog is closed: leases run out by the clock, and Ended is not called for them.
//
// # How it works
//
// A heap has each lease at the instant of what comes next: its next attempt; or its trusted deadline, if it is not
// renewed, or as long as its call is under way or waits for another to return. If a deadline moves meanwhile, that is
// noticed when the old one comes.
//
// The scheduler sleeps until the earliest of them, or until the time limit of a call. Watch wakes it only if that
// instant becomes earlier, Forget never does. Short leases, which are forgotten long before they are due, cost two steps
// at the end of the heap under one mutex and nothing else.
//
// Once a lease is due, all that are due within Lease/30 are renewed, batch after batch, up to eight in
// parallel; the goroutine of a call that has returned takes the next batch. So client and server wake up a
// few times for each third of a lease and not for each batch, and leases of one batch stay together: 20 000 leases
// taken over ten seconds settle into batches of about 100.
package watchdog
