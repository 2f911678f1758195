package holdfast

import "time"

// Observer has the functions that a locker calls to report what it does, for metrics; see
// [WithObserver]. The locker skips nil functions.
//
// The locker calls the functions one at a time, on a goroutine of their own, soon after
// the event. They cannot delay, block or break a lock, and may use the locker themselves. A
// panic or runtime.Goexit is caught, and logged once. Up to 4096 events wait while a function
// runs; Dropped counts those that found no room. Close delivers what still waits, for at most
// a second.
//
// Each entry that a call acquires ends with exactly one Released or Lost, also at a loss, at
// Close, or when its caller has gone. So the locker holds as many entries as there were
// Acquired, minus Released and Lost; dropped ones count in all three. Events of one key come
// in order, except that Released waits for the answer of Redis: the next Acquired may come
// before it.
type Observer struct {
	Acquired    func(AcquiredEvent)
	Failed      func(FailedEvent) // a lock call has failed
	Released    func(ReleasedEvent)
	Lost        func(LostEvent)
	Renewed     func(RenewedEvent)
	Woken       func(WokenEvent)
	Waiters     func(WaitersEvent)
	OutageBegan func(OutageBeganEvent)
	OutageEnded func(OutageEndedEvent)
	Dropped     func(DroppedEvent)
}

// How is the way in which a call got its lock; as a string it is fit for a label.
type How string

const (
	ByCall     How = "call"     // Redis gave it to an attempt of this locker
	ByHandover How = "handover" // from a section of this locker; for readers, perhaps after a call that asks whether a writer waits
	ByGrant    How = "grant"    // fair: Redis gave it to a waiter in its queue
	ByReentry  How = "re-entry" // by a context bound to a lease
)

// AcquiredEvent: an entry has begun. If its caller has already gone, it is released immediately,
// and the call is also Failed.
type AcquiredEvent struct {
	Key    string
	How    How
	Waited time.Duration // since the first attempt, or since the call began to wait
}

// FailedEvent: a call of Do, Lock, TryLock or TryLockFor, or one of multilock for several keys, has failed.
type FailedEvent struct {
	Key    string
	Err    error // that of the call, for errors.Is
	Waited time.Duration
}

// ReleasedEvent: an entry has ended by Unlock or Close.
type ReleasedEvent struct {
	Key  string
	Held time.Duration // until Unlock or Close was called
	Err  error         // that of Unlock, such as ErrUnknown, also where Do does not return it; ErrClosed: by Close
}

// LostEvent: an entry has ended by loss.
type LostEvent struct {
	Key  string
	Held time.Duration
	Err  error // ErrLost with its reason, for errors.Is
}

// RenewedEvent: a renewal of a lease has ended.
type RenewedEvent struct {
	Key  string
	Late time.Duration // after it was due, a third of a lease after the last; two thirds would lose it
	Err  error         // nil: Redis has confirmed it. Otherwise the next try comes soon, or Lost
}

// WokenEvent: a message of Redis has woken the waiters of a key here, for a release or, with
// fair, a grant.
type WokenEvent struct{ Key string }

// WaitersEvent: a call has begun or stopped waiting for a key.
type WaitersEvent struct {
	Key     string
	Waiting int // calls of this locker that wait for the key now; for those of all processes see Status.Waiting
}

// OutageBeganEvent: Redis has not answered a call of this locker to lock, queue, renew or unlock, or only that
// it cannot serve it now, as while it is loading or out of memory; see [ErrUnavailable].
type OutageBeganEvent struct {
	Server string // of a Redis Cluster, as far as it is known; otherwise ""
	Err    error
}

// OutageEndedEvent: Redis has answered again; or another server answers, and no call has gone to this one for
// the length of a lease; or the locker is closed. A locker that makes no call does not notice.
type OutageEndedEvent struct {
	Server string
	Lasted time.Duration
}

// DroppedEvent is how many events of each kind were dropped since the last DroppedEvent.
type DroppedEvent struct {
	Acquired, Failed, Released, Lost, Renewed, Woken, Waiters, OutageBegan, OutageEnded int
}
