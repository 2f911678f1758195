package multilock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// LeaseSet is several leases as one. It lives as long as all of them do. Safe for
// concurrent use.
type LeaseSet struct {
	leases []*holdfast.Lease // in the order in which they were taken; immutable
	bound  context.Context   // ends with the first that ends; immutable
}

func (s *LeaseSet) add(ctx context.Context, l *holdfast.Lease) context.Context {
	s.leases, s.bound = append(s.leases, l), l.Bind(s.bound)
	return l.Bind(ctx)
}

// Unlock ends all leases at the same time, and joins their errors; see [holdfast.Lease.Unlock].
func (s *LeaseSet) Unlock(ctx context.Context) error { return errors.Join(s.unlock(ctx)...) }

// unlock is Unlock that returns the errors of all leases.
func (s *LeaseSet) unlock(ctx context.Context) []error {
	errs := make([]error, len(s.leases))
	var all sync.WaitGroup
	for i, l := range s.leases { // a Redis that hangs must not keep the keys of others
		all.Go(func() { errs[i] = l.Unlock(ctx) })
	}
	all.Wait()
	return errs
}

// Bind derives a context that re-enters each of the leases. The first lease to end cancels it, with
// the reason as its cause.
func (s *LeaseSet) Bind(ctx context.Context) context.Context {
	for _, l := range s.leases {
		ctx = l.Bind(ctx)
	}
	return ctx
}

// Done returns a channel that is closed when the first lease ends.
func (s *LeaseSet) Done() <-chan struct{} { return s.bound.Done() }

// Err returns nil while all leases live, and then the reason of the first lease, in the
// order of the set, that has ended.
func (s *LeaseSet) Err() error {
	for _, l := range s.leases {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Deadline returns the earliest of the trusted deadlines.
func (s *LeaseSet) Deadline() time.Time {
	first := s.leases[0].Deadline()
	for _, l := range s.leases[1:] {
		if d := l.Deadline(); d.Before(first) {
			first = d
		}
	}
	return first
}

// Fences returns the fence of each lease, in the order of [LeaseSet.Keys].
func (s *LeaseSet) Fences() []int64 {
	fences := make([]int64, len(s.leases))
	for i, l := range s.leases {
		fences[i] = l.Fence()
	}
	return fences
}

// Keys returns the keys in the order in which they were taken: by the order names of
// their lockers, and then by themselves.
func (s *LeaseSet) Keys() []string {
	keys := make([]string, len(s.leases))
	for i, l := range s.leases {
		keys[i] = l.Key()
	}
	return keys
}
