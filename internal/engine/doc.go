// Package engine is what the lock kinds share: waiting, local handover, owners, nested
// entries, leases in a context, release and undo. A lock kind supplies a [Backend], which says
// how a key is held in Redis, and exposes the result under its own name.
//
// # What is authoritative
//
// Redis decides which owner holds a key. The watchdog decides how long a holder may trust it.
// A message never makes this package believe that a key is held or free; it only says when to
// try. The one exception is a grant from a queue in Redis: it names its owner, and its lease
// counts from a moment before Redis can have granted it.
//
// # A hold, its sections, their entries
//
//	hold      one owner's field in Redis, and its trusted deadline      hold.go
//	section   from an outermost Lock to the last Unlock                 section.go
//	entry     one level of nesting: a caller's [holdfast.Lease]         section.go, nested.go
//
// A hold serves one section. With local handover, it serves several in turn. Each attempt,
// and each place in a queue, has an owner that is never used again, so that a late call can affect no other.
//
// # How a key is acquired
//
// A key that is held, wanted or being released here has a [Key]. The caller of a Lock that finds none
// makes the first attempt. If the key is not free, it becomes a waiter, and so does every later caller.
// The engine gives a waiter no goroutine, and no timer but that of WaitAtMost or TryLockFor. Its
// [Discipline] sends the commands, and gives the waiters the key: they race with other processes
// (package racing), or stand in a queue in Redis (package queueing). What these keep for a key, a
// waiter and a hold is opaque to the engine.
//
// A key has one hold. With [ManyHolds], as for semaphores, or [SharedHolds], as for readers, it has as many
// as Redis grants. There a caller makes a first attempt unless others wait here, and the discipline serves
// waiters also while the key is held here.
//
// # How a reader acquires
//
// With [SharedHolds], a hold may have several sections at the same time: those of readers. [Pair]
// joins their engine with that of the writers of the same keys. share.go and pair.go say what a reader's
// Lock does in addition to any other; CONTRIBUTING.md has its path.
//
// # The files
//
// From the calls of users down to the state:
//
//	lock.go, operator.go, together.go, options.go    calls of users
//	release.go, close.go, bind.go, list.go           Unlock, Close, Bind, Locks
//	nested.go, handover.go, attempt.go               entries, sections and holds begin
//	await.go                                         how a wait ends
//	outage.go                                        how long calls and waits go on without answers
//	hold.go, section.go, waiters.go                  what they are
//	share.go, pair.go                                readers share a hold, and know the writers
//	undo.go, remains.go                              what no caller wants any more
//	engine.go, watchdogs.go, observe.go, key.go      state of the locker and of a key
//	fences.go, stripe.go, discipline.go, backend.go  what the others build on
//
// # When a call to Redis fails
//
// By its [wire.Outcome]:
//
//	Unavailable  definitely not done: a wait repeats the attempt after a pause, until MaxOutage
//	Unknown      it may have run: an acquire is undone in the background (its owner leaves a
//	             tombstone) and tried again by a new owner; a release, a renewal and setting
//	             entries are repeated, which is harmless; a hold whose renewals got no answer
//	             is released in the background
//	Refused      definitely not done: the waiters get the error, as waiting cannot cure it;
//	             release and undo go on in the background, as it may end before a lease
//	Doubtful     refused in words that no Redis has, as a proxy's: the waiters get the error,
//	             and the call is undone or repeated as an unknown one
//
// Every call is bounded in time (package calls). A caller that goes away leaves nothing behind:
// its attempt is undone, and a lease that it got meanwhile goes to the next waiter.
//
// # Mutexes
//
// The mutex of a key's stripe guards all state of the key: Lock and Unlock of a [Key] are those of
// the mutex. No code calls Redis while it holds one. Unlocking it notifies the listeners of entries
// that ended meanwhile.
package engine
