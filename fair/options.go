package fair

import (
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/queueing"
	"github.com/holdfast-go/holdfast/internal/settings"
	"github.com/holdfast-go/holdfast/scripts"
)

// The defaults of the options that only fair has.
const (
	DefaultWaiterTTL  = 5 * time.Second
	DefaultGrantLease = 5 * time.Second
)

// own are the settings that only fair has.
type own struct {
	waiterTTL  time.Duration
	grantLease *time.Duration // nil: not set
	confirm    bool
}

// WithWaiterTTL sets how long this locker may be silent before its waiters count as dead and
// lose their places. It sends a heartbeat five times in that time, at least every 5 s.
// Default 5 s; from 100 ms to 30 years, in whole milliseconds.
func WithWaiterTTL(d time.Duration) holdfast.Option {
	return settings.Own[own]{Name: "fair.WithWaiterTTL", Set: func(o *own) { o.waiterTTL = d }}
}

// WithGrantLease sets the length of the lease that comes with a grant. The waiter then
// renews it to the lease that it asked for; a waiter that has died unnoticed holds up those
// behind it for that long. Default 5 s, or WithWaiterTTL if that is longer; at least
// WithWaiterTTL, in whole milliseconds.
func WithGrantLease(d time.Duration) holdfast.Option {
	return settings.Own[own]{Name: "fair.WithGrantLease", Set: func(o *own) { o.grantLease = &d }}
}

// WithConfirmedGrants has a waiter confirm a grant that comes as a message by one more call
// before it has the lock. It is for a Redis in which others can read the queues and publish to
// the channels of locks: without it, they can forge grants. With it, a forged message gives
// nobody the lock, but its waiter goes to the end of the queue. A hand-over to another process
// then takes two round trips, and starts no local hand-overs. Default off.
func WithConfirmedGrants() holdfast.Option {
	return settings.Own[own]{Name: "fair.WithConfirmedGrants", Set: func(o *own) { o.confirm = true }}
}

// configure returns the settings of the engine, and those of the scripts.
func configure(opts []holdfast.Option) (c queueing.Config, s scripts.FairSettings, err error) {
	o := own{waiterTTL: DefaultWaiterTTL}
	if c.Config, err = engine.Configure("fair", "New", &o, opts); err != nil {
		return c, s, err
	}
	if err := c.Check(); err != nil {
		return c, s, err
	}
	if err := scripts.CheckWaiterTTL(o.waiterTTL); err != nil {
		return c, s, errs.Invalid("fair: WithWaiterTTL: %w", err)
	}
	first := max(DefaultGrantLease, o.waiterTTL)
	if o.grantLease != nil {
		first = *o.grantLease
	}
	if err := scripts.CheckLease(first); err != nil {
		return c, s, errs.Invalid("fair: WithGrantLease: %w", err)
	}
	if first < o.waiterTTL {
		return c, s, errs.Invalid("fair: WithGrantLease: %v is shorter than WithWaiterTTL's %v", first, o.waiterTTL)
	}
	c.Client, c.WaiterTTL, c.GrantLease, c.ConfirmGrants = uuid.NewString(), o.waiterTTL, first, o.confirm

	s = scripts.FairSettings{Client: c.Client, WaiterTTL: c.WaiterTTL, GrantLease: c.GrantLease}
	if c.Fencing {
		s.Fencing = scripts.Fencing{Reserve: 1, Expiry: *c.FenceExpiry}
	}
	if c.LocalHandover > 0 {
		s.Members = mostMembers
		s.Fencing.Reserve *= min(max(1, c.LocalHandover.Microseconds()), 1_000_000)
	}
	return c, s, nil
}

// mostMembers is how many waiters of one locker may follow the first of a run:
// enough for a tenure of short sections, few enough to be named in a message.
const mostMembers = 64
