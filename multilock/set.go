package multilock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// Several keys, all or nothing. They are taken one after another in one order that
// is the same in every process, so that callers whose sets overlap never wait for
// each other in a circle, and nobody is overtaken in a fair queue.

// together is what a Locker does that can take several keys with one call.
type together interface {
	TryLockAll(ctx context.Context, keys ...string) ([]*Lease, error)
}

// Part are the keys of one locker in a set.
type Part struct {
	name   string
	locker holdfast.Locker
	keys   []string
}

// The waits of lock beside those of TryLockFor.
const (
	forEver  time.Duration = -1
	notAtAll time.Duration = 0
)

// Keys names keys of a locker of any kind. A key that is named twice is locked once.
func Keys(locker holdfast.Locker, keys ...string) Part {
	if v := reflect.ValueOf(locker); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return Part{} // refused by whoever locks it
	}
	return Part{locker: locker, keys: slices.Compact(slices.Sorted(slices.Values(keys)))}
}

// lock takes one key.
func (p Part) lock(ctx context.Context, key string, wait time.Duration) (*Lease, error) {
	switch wait {
	case forEver:
		return p.locker.Lock(ctx, key)
	case notAtAll:
		return p.locker.TryLock(ctx, key)
	}
	return p.locker.TryLockFor(ctx, key, wait)
}

// Named gives the locker of a part a name, which must be the same in every process:
// a set of several lockers is taken in the order of their names, and then of their
// keys. A key of a Redis must always go by the same name: what goes by two is not in
// one order, and a set that has it by both waits for itself.
func (p Part) Named(name string) Part {
	p.name = name
	return p
}

// Set is several leases as one: it lives as long as all of them do. Safe for
// concurrent use.
type Set struct {
	leases []*Lease        // in the order in which they were taken; immutable
	bound  context.Context // ends with the first of them; immutable
}

// LockAll waits until it has all keys of all parts, or ctx ends. Parts of several
// lockers must be [Part.Named]. A ctx that is bound to leases of some of the keys
// enters those once more.
//
// While it waits for a key it holds those before it, which others then wait for.
// Two calls never wait for each other in a circle, whatever their keys and the
// order in which these are named, as long as each key of a Redis goes by one name
// ([Part.Named]) in all of them. That cannot be promised to whoever holds another
// lock, of a key that comes later in the order, while it calls LockAll, or takes
// single locks in its own order: take all that is needed in one call.
//
// On failure nothing is held. Errors: those of Lock, with the key that failed; that
// a lease was lost while another was waited for is ErrLost.
//
// One round trip for each key that is free, or for all keys of a locker of rlock
// without fencing if all are; else as for single locks.
func LockAll(ctx context.Context, parts ...Part) (*Set, error) {
	return lockAll(ctx, forEver, parts)
}

// TryLockAll makes one attempt for each key, in order, and holds nothing if one
// fails. Errors as for TryLock, with the key that failed.
func TryLockAll(ctx context.Context, parts ...Part) (*Set, error) {
	return lockAll(ctx, notAtAll, parts)
}

// TryLockAllFor is LockAll with a wait of at most the given time for all keys
// together, after which it fails with ErrNotAcquired (or ErrUnavailable or
// ErrUnknown if a Redis is away). A wait of zero is TryLockAll; a negative one is
// refused.
func TryLockAllFor(ctx context.Context, wait time.Duration, parts ...Part) (*Set, error) {
	switch {
	case wait < 0:
		return nil, fmt.Errorf("multilock: TryLockAllFor: wait of %v is negative", wait)
	case wait == 0:
		return lockAll(ctx, notAtAll, parts)
	}
	return lockAll(ctx, wait, parts)
}

func lockAll(ctx context.Context, wait time.Duration, parts []Part) (*Set, error) {
	parts, err := inOrder(parts)
	if err != nil {
		return nil, err
	}
	s := &Set{bound: context.Background()}
	until := time.Now().Add(wait)
	for _, p := range parts {
		if ctx, err = s.take(ctx, p, wait, until); err != nil {
			break
		}
	}
	if lost := s.Err(); lost != nil {
		err = lost
	}
	if err != nil {
		_ = s.Unlock(ctx)
		return nil, err
	}
	return s, nil
}

// take adds the keys of a part, and returns a context that is bound to them: the wait
// for the next key ends when one of them is lost.
func (s *Set) take(ctx context.Context, p Part, wait time.Duration, until time.Time) (context.Context, error) {
	if quick, can := p.locker.(together); can && len(p.keys) > 1 {
		leases, err := p.together(ctx, quick, wait, until)
		for _, l := range leases {
			ctx = s.add(ctx, l)
		}
		if len(leases) > 0 {
			return ctx, nil
		}
		// What a lost answer has left is cleaned up; an attempt right after would meet it.
		over := wait == notAtAll || wait > 0 && !time.Now().Before(until)
		if over && !errors.Is(err, ErrNotAcquired) {
			return ctx, fmt.Errorf("%d keys at once: %w", len(p.keys), err)
		}
	}
	for _, key := range p.keys {
		left := wait
		if wait > 0 {
			left = max(time.Until(until), time.Nanosecond)
		}
		l, err := p.lock(ctx, key, left)
		if err != nil {
			return ctx, fmt.Errorf("key %q: %w", short(key), err)
		}
		ctx = s.add(ctx, l)
	}
	return ctx, nil
}

// together makes one attempt to take all keys of a part with one call.
func (p Part) together(ctx context.Context, quick together, wait time.Duration, until time.Time) ([]*Lease, error) {
	if wait > 0 {
		limited, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		ctx = limited
	}
	return quick.TryLockAll(ctx, p.keys...)
}

func (s *Set) add(ctx context.Context, l *Lease) context.Context {
	s.leases, s.bound = append(s.leases, l), l.Bind(s.bound)
	return l.Bind(ctx)
}

// inOrder returns parts in the order in which they are to be taken.
func inOrder(parts []Part) ([]Part, error) {
	keys := 0
	for i, p := range parts {
		if p.locker == nil {
			return nil, fmt.Errorf("multilock: part %d was not made by Keys of a locker", i)
		}
		for _, other := range parts[:i] {
			if other.name == p.name {
				return nil, fmt.Errorf("multilock: parts of several lockers must have names of their own (Named); %q is there twice", p.name)
			}
			if other.locker == p.locker { // else the order would be that of the names
				return nil, fmt.Errorf("multilock: %q and %q are of one locker; name all its keys in one part", other.name, p.name)
			}
		}
		for _, key := range p.keys { // none is taken if one cannot be
			if err := scripts.CheckKey(key); err != nil {
				return nil, fmt.Errorf("multilock: key %q: %w", short(key), err)
			}
		}
		keys += len(p.keys)
	}
	if keys == 0 {
		return nil, errors.New("multilock: no keys to lock")
	}
	parts = slices.Clone(parts)
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.name, b.name) })
	return parts, nil
}

// short cuts a key at 64 bytes, for errors.
func short(key string) string { return key[:min(len(key), 64)] }

// Unlock ends all leases, the last one first, and joins what each says; see
// [Lease.Unlock].
func (s *Set) Unlock(ctx context.Context) error {
	var errs []error
	for _, l := range slices.Backward(s.leases) {
		if err := l.Unlock(ctx); err != nil {
			errs = append(errs, fmt.Errorf("key %q: %w", short(l.Key()), err))
		}
	}
	return errors.Join(errs...)
}

// Bind derives a context that re-enters each of the leases, and that is cancelled,
// with the reason as its cause, when the first of them ends.
func (s *Set) Bind(ctx context.Context) context.Context {
	for _, l := range s.leases {
		ctx = l.Bind(ctx)
	}
	return ctx
}

// Done returns a channel that is closed when the first of the leases ends.
func (s *Set) Done() <-chan struct{} { return s.bound.Done() }

// Err returns nil while all leases live, and then why the first in the order that
// does not live any more has ended.
func (s *Set) Err() error {
	for _, l := range s.leases {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Deadline returns the earliest of the trusted deadlines.
func (s *Set) Deadline() time.Time {
	first := s.leases[0].Deadline()
	for _, l := range s.leases[1:] {
		if d := l.Deadline(); d.Before(first) {
			first = d
		}
	}
	return first
}

// Fences returns the fence of each lease, in the order of Keys.
func (s *Set) Fences() []int64 {
	fences := make([]int64, len(s.leases))
	for i, l := range s.leases {
		fences[i] = l.Fence()
	}
	return fences
}

// Keys returns the keys in the order in which they were taken: by the names of
// their lockers, and then by themselves.
func (s *Set) Keys() []string {
	keys := make([]string, len(s.leases))
	for i, l := range s.leases {
		keys[i] = l.Key()
	}
	return keys
}
