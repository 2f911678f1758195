package fair

import (
	"cmp"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/queueing"
)

// The defaults of the options that only fair has.
const (
	DefaultWaiterTTL  = 5 * time.Second
	DefaultGrantLease = 5 * time.Second
)

// own are the settings that only fair has.
type own struct {
	queueing.Config
	grantLease *time.Duration // nil: not set
}

// WithWaiterTTL sets how long this locker may be silent before its waiters count as dead and
// lose their places. It sends a heartbeat five times in that time, at least every 5 s.
// Default 5 s; from 100 ms to 30 years, in whole milliseconds.
func WithWaiterTTL(d time.Duration) holdfast.Option {
	return check.Own[own]{Name: "fair.WithWaiterTTL", Set: func(o *own) { o.WaiterTTL = d }}
}

// WithGrantLease sets the length of the lease that comes with a grant. The waiter then
// renews it to the lease that it asked for; a waiter that has died unnoticed holds up those
// behind it for that long. If it is longer than the lease of the locker, a grant costs one more
// call. Default 5 s, or WithWaiterTTL if that is longer; at least WithWaiterTTL, in whole
// milliseconds.
func WithGrantLease(d time.Duration) holdfast.Option {
	return check.Own[own]{Name: "fair.WithGrantLease", Set: func(o *own) { o.grantLease = &d }}
}

// WithConfirmedGrants makes a waiter confirm a grant that comes as a message by one more call
// before it has the lock. It is for a Redis in which others can read the queues and publish to
// the channels of locks: without it, they can forge grants. With it, a forged message gives
// nobody the lock, but its waiter goes to the end of the queue. A grant to another process
// then takes two round trips, and there is no local handover. Default off.
func WithConfirmedGrants() holdfast.Option {
	return check.Own[own]{Name: "fair.WithConfirmedGrants", Set: func(o *own) { o.ConfirmGrants = true }}
}

// check refuses what no locker can have, and fills in GrantLease.
func (o *own) check() error {
	if err := check.WaiterTTL(o.WaiterTTL); err != nil {
		return errs.Invalid("fair: WithWaiterTTL: %w", err)
	}
	o.GrantLease = *cmp.Or(o.grantLease, new(max(DefaultGrantLease, o.WaiterTTL)))
	if err := check.Lease(o.GrantLease); err != nil {
		return errs.Invalid("fair: WithGrantLease: %w", err)
	}
	if o.GrantLease < o.WaiterTTL {
		return errs.Invalid("fair: WithGrantLease: %v is shorter than WithWaiterTTL's %v", o.GrantLease, o.WaiterTTL)
	}
	return nil
}
