package scripts

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

const (
	maxKey   = 1 << 10                    // bytes
	minLease = 100 * time.Millisecond     // below it, a round trip may outlast the lease
	maxLease = 100 * 365 * 24 * time.Hour // above it, sums of durations come near their limit
	maxStale = 30 * 365 * 24 * time.Hour  // parts/settings.lua takes 12 digits of ms
)

// notSent is an error of a call that ended before anything was sent.
type notSent struct{ error }

func (e notSent) Unwrap() error { return e.error }

func refuse(format string, args ...any) error { return notSent{fmt.Errorf(format, args...)} }

// CheckKey returns an error that says what is wrong if key cannot name a lock: it is
// empty or longer than 1 KiB, or its names would collide with those of another lock, as
// do redisson_lock_queue:{k}, holdfast_node, and {k}, since Redisson puts braces around
// k in names. Any other bytes will do.
func CheckKey(key string) error {
	if key == "" {
		return notSent{errors.New("key is empty")}
	}
	if len(key) > maxKey {
		return refuse("key has %d bytes, at most %d are allowed", len(key), maxKey)
	}
	if why := meets(key); why != "" {
		return notSent{errors.New(why)}
	}
	return nil
}

// CheckLease returns an error that says what is wrong if d cannot be a lease:
// it is shorter than 100 ms, longer than 100 years or not a whole number of
// milliseconds, in which Redis counts.
func CheckLease(d time.Duration) error {
	switch {
	case d < minLease:
		return refuse("lease %v is shorter than %v", d, minLease)
	case d > maxLease:
		return refuse("lease %v is longer than 100 years", d)
	case d%time.Millisecond != 0:
		return refuse("lease %v is not a whole number of milliseconds", d)
	}
	return nil
}

// CheckStale returns an error that says what is wrong if d cannot be the time after which
// a silent client counts as dead: CheckLease's, or it is longer than 30 years.
func CheckStale(d time.Duration) error {
	if err := CheckLease(d); err != nil {
		return err
	}
	if d > maxStale {
		return refuse("%v is longer than 30 years", d)
	}
	return nil
}

func checkHold(key, owner string, lease time.Duration) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if owner == "" {
		return refuse("owner is empty")
	}
	return CheckLease(lease)
}

func checkLastFence(last int64) error {
	if last < 0 || last > 9_999_999_999_999_999 {
		return refuse("last fence: %d is not from 0 to 9999999999999999", last)
	}
	return nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func millis(d time.Duration) string { return decimal(d.Milliseconds()) }
