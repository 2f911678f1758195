package hall

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// What the doors' options have in common. Errors name the door and its option.

// Check refuses settings that do not go together.
func (c *Config) Check(door string) error {
	if err := scripts.CheckLease(c.Lease); err != nil {
		return fmt.Errorf("%s: WithLease: %w", door, err)
	}
	switch {
	case c.Handover < 0:
		return fmt.Errorf("%s: WithLocalHandover: %v is negative", door, c.Handover)
	case c.Handover > c.Lease:
		return fmt.Errorf("%s: WithLocalHandover: %v is longer than the lease of %v", door, c.Handover, c.Lease)
	case c.MaxWaiters < 0:
		return fmt.Errorf("%s: WithMaxWaiters: %d is negative", door, c.MaxWaiters)
	case c.MaxOutage < 0:
		return fmt.Errorf("%s: WithMaxOutage: %v is negative", door, c.MaxOutage)
	case c.Log == nil:
		return fmt.Errorf("%s: WithLogger: logger is nil", door)
	}
	return nil
}

// FenceExpiry is for how long the counters are kept: as asked, or as usual where
// asked is nil.
func FenceExpiry(door string, fencing bool, asked *time.Duration, usual time.Duration) (time.Duration, error) {
	switch {
	case asked == nil:
		return usual, nil
	case !fencing:
		return 0, fmt.Errorf("%s: WithFenceExpiry needs WithFencing", door)
	case *asked < 0 || *asked%time.Millisecond != 0:
		return 0, fmt.Errorf("%s: WithFenceExpiry: %v is not a whole number of milliseconds from 0", door, *asked)
	}
	return *asked, nil
}

// TermsOf are those of a call on a door of the given lease. longest is that of its
// deployment; 0: there is none.
func TermsOf(door string, opts []holdfast.LockOption, lease, longest time.Duration) (Terms, error) {
	t := Terms{Lease: lease}
	if len(opts) == 0 { // it allocates nothing
		return t, nil
	}
	o, err := holdfast.Options(opts...)
	if err != nil {
		return t, fmt.Errorf("%s: %w", door, err)
	}
	if o.FixedLease != nil && o.MaxHold != nil {
		return t, errors.New(door + ": FixedLease and MaxHold contradict each other")
	}
	if o.FixedLease != nil {
		if err := scripts.CheckLease(*o.FixedLease); err != nil {
			return t, fmt.Errorf("%s: FixedLease: %w", door, err)
		}
		if longest > 0 && *o.FixedLease > longest {
			return t, fmt.Errorf("%s: FixedLease: %v is longer than WithMaxLease, %v", door, *o.FixedLease, longest)
		}
		t.Lease, t.Fixed = *o.FixedLease, true
	}
	if o.WaitAtMost != nil && *o.WaitAtMost < 0 {
		return t, fmt.Errorf("%s: WaitAtMost: %v is negative", door, *o.WaitAtMost)
	}
	t.wait = o.WaitAtMost
	if o.MaxHold != nil {
		if *o.MaxHold <= 0 {
			return t, fmt.Errorf("%s: MaxHold: %v is not greater than zero", door, *o.MaxHold)
		}
		t.MaxHold = *o.MaxHold
	}
	return t, nil
}
