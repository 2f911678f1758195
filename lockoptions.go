package holdfast

import (
	"fmt"
	"time"
)

// LockOption is a setting of one call of Do, Lock, TryLock or TryLockFor.
type LockOption interface{ apply(*LockOptions) }

// LockOptions are the options of one call, for authors of a [Locker]; nil: not set.
type LockOptions struct {
	FixedLease, MaxHold, WaitAtMost *time.Duration
	OnPlace                         func(place int)
	Label                           *string
}

type lockOption func(*LockOptions)

func (o lockOption) apply(all *LockOptions) { o(all) }

// FixedLease asks for a lease that is never renewed and is gone after d at the latest,
// whatever its holder does. At least 100 ms, in whole milliseconds; with multilock, at most
// WithMaxLease. Not together with MaxHold. A nested call refuses it, as it cannot change the
// lease that it re-enters.
func FixedLease(d time.Duration) LockOption {
	return lockOption(func(o *LockOptions) { o.FixedLease = &d })
}

// MaxHold caps a renewed lease: d after the acquire, the locker releases the key and the
// lease ends with ErrLost. Greater than zero, and at most WithMaxHold. Not together with
// FixedLease. A nested call refuses it.
func MaxHold(d time.Duration) LockOption {
	return lockOption(func(o *LockOptions) { o.MaxHold = &d })
}

// WaitAtMost bounds the wait of Do or Lock. Unlike a deadline of the context, it does not
// bound the function that Do runs. After d the call fails with ErrNotAcquired, or with
// ErrUnavailable or ErrUnknown if Redis is unavailable; 0 makes one attempt. A negative
// wait is refused. TryLock and TryLockFor refuse the option, as they bound the wait
// themselves.
func WaitAtMost(d time.Duration) LockOption {
	return lockOption(func(o *LockOptions) { o.WaitAtMost = &d })
}

// OnPlace, for fair, calls f with the place of the waiting call in the queue of all processes:
// 1 is the next to get the key. f runs on the goroutine of the call, when it has entered the
// queue, and then as it moves up: immediately when this locker gets the key, otherwise with the
// next heartbeat, up to a fifth of fair.WithWaiterTTL later, or three tenths if the call has just
// entered. It costs no call to Redis.
//
// A place may be too high: the dead count until they are removed, and a heartbeat asks only for
// the place of the call that has waited longest in this locker. Places that change quickly may be
// skipped. f should return soon: until it does, the call is not served, and Close waits if the key
// has been granted to the call. If f panics, the call gives up its place. The other kinds have no
// such queue, and refuse the option; the doubles of holdfasttest have one.
func OnPlace(f func(place int)) LockOption {
	return lockOption(func(o *LockOptions) { o.OnPlace = f })
}

// Label names the hold of this call, instead of the locker's label; for its rules see [WithLabel].
// A waiter in the queue of fair still shows the locker's.
//
// A nested call refuses the option. A hold with a label of its own is not handed over to another
// call of the locker, and no other hold is handed to the call, as Redis shows one label for each
// hold.
func Label(label string) LockOption {
	return lockOption(func(o *LockOptions) { o.Label = &label })
}

// NewLockOptions combines the options of one call. It fails with ErrInvalidArgument on a nil option.
func NewLockOptions(opts ...LockOption) (all LockOptions, err error) {
	for _, o := range opts {
		if o == nil {
			return LockOptions{}, fmt.Errorf("%w: lock option is nil", ErrInvalidArgument)
		}
		o.apply(&all)
	}
	return all, nil
}
