// Package engine is what the lock kinds share: the wait loop, the local queue and
// hand-over, owners, entries, leases in a context, clean-up. A lock kind brings a
// [Backend], which is [Plain] or [Fair] and says where a hold comes from, and
// shows the result under its own names.
//
// # Who is authoritative
//
// Redis is, for who holds a key. The watchdog is, for how long a holder may
// believe it. This package never concludes from a message that a key is held or
// free: messages only say when to look. The one exception is a grant of a fair
// queue, which names its owner and is trusted from before it can have been made.
//
// # A hold, its leases, their entries
//
//	hold    one owner's field in Redis, and its trusted deadline    hold.go
//	lease   from an outermost Lock to its last Unlock               lease.go
//	Entry   one level of nesting: what a caller has in hand         lease.go, nested.go
//
// A hold serves one lease, or with local hand-over several, one after another.
// An owner is minted for each attempt and never used again, so that a late call
// can hit nobody but itself.
//
// # The way of a key
//
// A key that is held, wanted or being released here has a queue, and at every
// moment exactly one of these has the key in hand:
//
//	       Lock of a key without a queue
//	                 │
//	             first attempt ──── acquired ───────────────┐
//	                 │ refused, others wait                 ▼
//	                 └────────▶ lead ──── acquired ──────▶ hold ─┐ hand-over to
//	                  ▲  ▲    subscribe,                    │    │ the next waiter
//	others wait still │  │    try again,                    │ ◀──┘
//	                  │  │    sleep                  Unlock │
//	                  │  └───────────── lost ───────────────┤
//	                  └──────────── release ◀───────────────┘
//
// The first attempt runs on the caller's goroutine (acquire.go), lead on one of
// its own as long as somebody waits (head.go), a release on that of the Unlock
// (release.go). All others wait without a goroutine, a timer or a command of
// their own. The lock is right without handover.go (the hold goes from lease to
// lease in memory) and turns.go (processes take turns): both only make it fast
// and fair.
//
// # On a fair lock
//
// There each waiter stands in Redis' queue itself, with an owner of its own, and
// Redis says whose turn it is. In the place of the head a key has a line, whose
// loop lives as long as somebody waits and a little longer:
//
//	line.go         tickets, the loop, who joins and who leaves
//	line_enter.go   calls that enter and leave
//	line_grant.go   grants: trusted, confirmed, or given back
//	line_look.go    heartbeats: places kept, what was lost is found
//	run.go          hand-over in the order of Redis' queue
//
// The first attempt, holds, leases, releases and clean-ups are the same. The page
// of package fair tells the protocol.
//
// # When a call to Redis fails
//
//	surely not done   an attempt is repeated after a pause, until MaxOutage
//	unknown           an acquire is undone in the background (its owner leaves a
//	                  tombstone) and tried again by a new owner; a release, a
//	                  renewal and a recount are repeated, which is harmless
//	refused           told to those who wait: waiting does not cure it
//
// Every call has its time (calls.go). A caller that goes away leaves nothing:
// its attempt is undone, what was granted to it meanwhile goes to the next.
package engine
