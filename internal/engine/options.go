package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// What the lock kinds' options have in common. Errors name the lock kind and its option.

// Check refuses settings that do not go together.
func (c *Config) Check(kind string) error {
	if err := scripts.CheckLease(c.Lease); err != nil {
		return fmt.Errorf("%s: WithLease: %w", kind, err)
	}
	switch {
	case c.Handover < 0:
		return fmt.Errorf("%s: WithLocalHandover: %v is negative", kind, c.Handover)
	case c.Handover > c.Lease:
		return fmt.Errorf("%s: WithLocalHandover: %v is longer than the lease of %v", kind, c.Handover, c.Lease)
	case c.MaxWaiters < 0:
		return fmt.Errorf("%s: WithMaxWaiters: %d is negative", kind, c.MaxWaiters)
	case c.MaxOutage < 0:
		return fmt.Errorf("%s: WithMaxOutage: %v is negative", kind, c.MaxOutage)
	case c.Log == nil:
		return fmt.Errorf("%s: WithLogger: logger is nil", kind)
	}
	return nil
}

// FenceExpiry is for how long the counters are kept: as asked, or as usual where
// asked is nil.
func FenceExpiry(kind string, fencing bool, asked *time.Duration, usual time.Duration) (time.Duration, error) {
	switch {
	case asked == nil:
		return usual, nil
	case !fencing:
		return 0, fmt.Errorf("%s: WithFenceExpiry needs WithFencing", kind)
	case *asked < 0 || *asked%time.Millisecond != 0:
		return 0, fmt.Errorf("%s: WithFenceExpiry: %v is not a whole number of milliseconds from 0", kind, *asked)
	}
	return *asked, nil
}

// TermsOf are those of a call on a lock kind of the given lease. longest is that of its
// deployment; 0: there is none.
func TermsOf(kind string, opts []holdfast.LockOption, lease, longest time.Duration) (Terms, error) {
	t := Terms{Lease: lease}
	if len(opts) == 0 { // it allocates nothing
		return t, nil
	}
	o, err := holdfast.Options(opts...)
	if err != nil {
		return t, fmt.Errorf("%s: %w", kind, err)
	}
	if o.FixedLease != nil && o.MaxHold != nil {
		return t, errors.New(kind + ": FixedLease and MaxHold contradict each other")
	}
	if o.FixedLease != nil {
		if err := scripts.CheckLease(*o.FixedLease); err != nil {
			return t, fmt.Errorf("%s: FixedLease: %w", kind, err)
		}
		if longest > 0 && *o.FixedLease > longest {
			return t, fmt.Errorf("%s: FixedLease: %v is longer than WithMaxLease, %v", kind, *o.FixedLease, longest)
		}
		t.Lease, t.Fixed = *o.FixedLease, true
	}
	if o.WaitAtMost != nil && *o.WaitAtMost < 0 {
		return t, fmt.Errorf("%s: WaitAtMost: %v is negative", kind, *o.WaitAtMost)
	}
	t.wait = o.WaitAtMost
	if o.MaxHold != nil {
		if *o.MaxHold <= 0 {
			return t, fmt.Errorf("%s: MaxHold: %v is not greater than zero", kind, *o.MaxHold)
		}
		t.MaxHold = *o.MaxHold
	}
	return t, nil
}
