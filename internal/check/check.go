// Package check applies the options of a locker, and refuses bad arguments before any I/O, with
// errors that name what is wrong.
package check

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/names"
)

const (
	maxKey   = 1 << 10                    // bytes
	maxLabel = 1 << 10                    // bytes
	minLease = 100 * time.Millisecond     // below it, a round trip may outlast the lease
	MaxLease = 100 * 365 * 24 * time.Hour // above it, sums of durations come near their limit

	MaxPermits = 10_000 // of a key; scripts/parts/permits.lua says it too

	maxWaiterTTL = 30 * 365 * 24 * time.Hour // scripts/parts/settings.lua takes 12 digits of ms
)

// Key returns an error that says what is wrong if key cannot name a lock: it is empty or
// longer than 1 KiB, or its names would collide with those of another lock, see
// [names.Collision]. Any other bytes will do.
func Key(key string) error {
	if err := Length(key); err != nil {
		return err
	}
	if why := names.Collision(key); why != "" {
		return errs.Invalid("%s", why)
	}
	return nil
}

// Length returns the errors of Key that no prefix of a locker mends.
func Length(key string) error {
	if key == "" {
		return errs.Invalid("key is empty")
	}
	if len(key) > maxKey {
		return errs.Invalid("key has %d bytes, at most %d are allowed", len(key), maxKey)
	}
	return nil
}

// Lease returns an error that says what is wrong if d cannot be a lease: it is shorter than
// 100 ms, longer than 100 years or not a whole number of milliseconds, in which Redis
// counts.
func Lease(d time.Duration) error {
	switch {
	case d < minLease:
		return errs.Invalid("%v is shorter than %v", d, minLease)
	case d > MaxLease:
		return errs.Invalid("%v is longer than 100 years", d)
	case d%time.Millisecond != 0:
		return errs.Invalid("%v is not a whole number of milliseconds", d)
	}
	return nil
}

// WaiterTTL returns an error that says what is wrong if d cannot be the time after which a
// silent client counts as dead: Lease's, or it is longer than 30 years.
func WaiterTTL(d time.Duration) error {
	if err := Lease(d); err != nil {
		return err
	}
	if d > maxWaiterTTL {
		return errs.Invalid("%v is longer than 30 years", d)
	}
	return nil
}

// Apply sets opts. function is what users have called, with its package; errors name it.
func Apply(function string, s *holdfast.Settings, opts []holdfast.Option) error {
	for _, o := range opts {
		if o == nil {
			return errs.Invalid("%s: option is nil", function)
		}
		if err := o.Apply(s); err != nil {
			return errs.Invalid("%s: %w", function, err)
		}
	}
	return nil
}

// Own is an option of the one kind whose own settings are a T.
type Own[T any] struct {
	Name string // with that of its package
	Set  func(*T)
}

// Apply implements [holdfast.Option].
func (o Own[T]) Apply(s *holdfast.Settings) error {
	own, ours := s.Own.(*T)
	if !ours {
		return fmt.Errorf("%s is not an option of this lock kind", o.Name)
	}
	o.Set(own)
	return nil
}

// Settings refuses what no locker can have of these settings, and fills in MaxOutage. Its errors begin
// with the option.
func Settings(s *holdfast.Settings) error {
	s.MaxOutage = cmp.Or(s.MaxOutage, new(s.Lease))
	badLease := Lease(s.Lease)
	switch {
	case badLease != nil:
		return errs.Invalid("WithLease: %w", badLease)
	case s.MaxHold != 0 && s.MaxHold < minLease:
		return errs.Invalid("WithMaxHold: %v is shorter than %v", s.MaxHold, minLease)
	case s.MaxHold > MaxLease:
		return errs.Invalid("WithMaxHold: %v is longer than 100 years", s.MaxHold)
	case s.MaxWaiters < 0:
		return errs.Invalid("WithMaxWaiters: %d is negative", s.MaxWaiters)
	case *s.MaxOutage < 0:
		return errs.Invalid("WithMaxOutage: %v is negative", *s.MaxOutage)
	}
	return nil
}

// Label returns an error that says what is wrong if it cannot be a label: it is longer than 1 KiB.
func Label(label string) error {
	if len(label) > maxLabel {
		return errs.Invalid("label has %d bytes, at most %d are allowed", len(label), maxLabel)
	}
	return nil
}

// Permits returns an error that says what is wrong if a key cannot have n permits.
func Permits(n int) error {
	if n < 1 || n > MaxPermits {
		return errs.Invalid("%d permits, 1 to %d are allowed", n, MaxPermits)
	}
	return nil
}

// Options returns the combined options of a call to a locker with this WithMaxHold, or an
// error that names the bad one. WaitAtMost sets wait, that of the call; negative: it has none.
func Options(opts []holdfast.LockOption, maxHold time.Duration, wait *time.Duration) (holdfast.LockOptions, error) {
	o, err := holdfast.NewLockOptions(opts...)
	if err == nil && o.FixedLease != nil {
		if err = Lease(*o.FixedLease); err != nil {
			err = errs.Invalid("FixedLease: %w", err)
		}
	}
	if err == nil && o.Label != nil {
		if err = Label(*o.Label); err != nil {
			err = errs.Invalid("Label: %w", err)
		}
	}
	switch {
	case err != nil:
	case o.FixedLease != nil && o.MaxHold != nil:
		err = errs.Invalid("FixedLease and MaxHold contradict each other")
	case o.MaxHold != nil && *o.MaxHold <= 0:
		err = errs.Invalid("MaxHold: %v is not greater than zero", *o.MaxHold)
	case o.MaxHold != nil && maxHold > 0 && *o.MaxHold > maxHold:
		err = errs.Invalid("MaxHold: %v is longer than WithMaxHold, %v", *o.MaxHold, maxHold)
	case o.WaitAtMost != nil && *o.WaitAtMost < 0:
		err = errs.Invalid("WaitAtMost: %v is negative", *o.WaitAtMost)
	case o.WaitAtMost != nil && *wait >= 0:
		err = errs.ErrWaits
	case o.WaitAtMost != nil:
		*wait = *o.WaitAtMost
	}
	return o, err
}
