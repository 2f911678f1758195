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
func (c *Config) Check() error {
	kind := c.Kind
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

// termsOf are those of a call.
func (c *Config) termsOf(opts []holdfast.LockOption) (Terms, error) {
	t := Terms{Lease: c.Lease}
	if len(opts) == 0 { // it allocates nothing
		return t, nil
	}
	o, err := holdfast.Options(opts...)
	if err == nil {
		err = c.checkTerms(o)
	}
	if err != nil {
		return t, err
	}
	if o.FixedLease != nil {
		t.Lease, t.Fixed = *o.FixedLease, true
	}
	if o.MaxHold != nil {
		t.MaxHold = *o.MaxHold
	}
	t.wait = o.WaitAtMost
	return t, nil
}

func (c *Config) checkTerms(o holdfast.LockOptions) error {
	if o.FixedLease != nil {
		if err := scripts.CheckLease(*o.FixedLease); err != nil {
			return fmt.Errorf("FixedLease: %w", err)
		}
	}
	switch {
	case o.FixedLease != nil && o.MaxHold != nil:
		return errors.New("FixedLease and MaxHold contradict each other")
	case o.FixedLease != nil && c.Longest > 0 && *o.FixedLease > c.Longest:
		return fmt.Errorf("FixedLease: %v is longer than WithMaxLease, %v", *o.FixedLease, c.Longest)
	case o.MaxHold != nil && *o.MaxHold <= 0:
		return fmt.Errorf("MaxHold: %v is not greater than zero", *o.MaxHold)
	case o.WaitAtMost != nil && *o.WaitAtMost < 0:
		return fmt.Errorf("WaitAtMost: %v is negative", *o.WaitAtMost)
	}
	return nil
}
