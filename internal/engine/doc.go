// Package engine is what the lock kinds share: waiting, local hand-over, owners, nested
// entries, leases in a context, release and clean-up. A lock kind supplies a [Backend],
// which says how a key is held in Redis, and exposes the result under its own name.
//
// # What is authoritative
//
// Redis decides which owner holds a key. The watchdog decides for how long a holder may believe
// it. A message never makes this package believe that a key is held or free; it only says
// when to try. The one exception is a grant from a queue in Redis: it names its owner, and
// its lease counts from a moment before Redis can have granted it.
//
// # A hold, its sections, their entries
//
//	hold      one owner's field in Redis, and its trusted deadline      hold.go
//	section   from an outermost Lock to the last Unlock                 section.go
//	entry     one level of nesting: a caller's [holdfast.Lease]         section.go, nested.go
//
// A hold serves one section or, with local hand-over, several in turn. Each attempt mints
// an owner that is never used again, so that a late call can affect no other attempt.
//
// # The way of a key
//
// A key that is held, wanted or being released here has a keyState (shard.go). A Lock that
// finds none makes the first attempt, on the caller's goroutine (lock.go, attempt.go). If
// Redis refuses it, the caller becomes a waiter, and so does every later caller. The
// engine gives a waiter no goroutine and no timer. The engine's discipline (discipline.go)
// sends the commands, and gives the waiters the key. The rest of the package calls it through
// that interface, except for places in a queue and for grants to confirm.
//
// Racing waiters (race.go): one loop tries for all of them. At every moment exactly one of
// these has the key in hand:
//
//	   Lock of a key without a keyState
//	              │
//	        first attempt ──── acquired ─────────────────┐
//	              │ refused                              ▼
//	              └──────▶ the race's loop ─ acquired ▶ hold ─┐ hand-over to
//	               ▲  ▲    subscribe, try,               │    │ the next waiter
//	others wait    │  │    sleep, try again              │ ◀──┘
//	               │  └───────────── lost ───────────────┤
//	               └─────────── release ◀────── Unlock ──┘
//
// Racing is correct without handover.go (a hold passes from section to section in memory)
// and turns.go (processes take turns): both only make it fast and fair.
//
// Queued waiters (queue.go): each stands in Redis' queue with an owner of its own, and
// Redis decides whose turn it is. The loop of a queue lives as long as its waiters and a
// little longer:
//
//	queue.go             tickets, the loop, joining and leaving
//	queue_enter.go       calls that enter and leave
//	queue_linger.go      waiters that enter together
//	queue_grant.go       grants: trusted, confirmed, or given back
//	queue_heartbeat.go   heartbeats keep places and find what was lost
//	queue_run.go         hand-over in the order of Redis' queue
//
// The doc page of package fair describes the protocol.
//
// # When a call to Redis fails
//
//	surely not done   a wait repeats the attempt after a pause, until MaxOutage
//	unknown           an acquire is undone in the background (its owner leaves a
//	                  tombstone) and tried again by a new owner; a release, a
//	                  renewal and a recount are repeated, which is harmless; a hold
//	                  whose renewals got no answer is released in the background
//	refused           the waiters get the error: waiting cannot cure it; releases and
//	                  clean-ups go on in the background, as it may end before a lease
//	doubtful          refused in words that no Redis has, as a proxy's: the waiters get
//	                  the error, and the call is undone or repeated as an unknown one
//
// Every call is bounded in time (package calls). A caller that goes away leaves nothing behind:
// its attempt is undone, and a lease that it got meanwhile goes to the next waiter.
//
// # Locks of this process
//
// The lock of a key's shard guards all state of the key. No code calls Redis while holding
// it. Unlocking it notifies the listeners of entries that ended meanwhile.
package engine
