package multilock

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// KeySet is a set of keys for [LockAll]: of one locker or, with [KeySet.And], of several.
type KeySet struct{ parts []lockerKeys }

type lockerKeys struct {
	locker    holdfast.Locker
	orderName string
	keys      []string // sorted, each once
}

// Keys returns a set of keys of a locker of any kind. A key that is named twice counts once.
func Keys(locker holdfast.Locker, keys ...string) KeySet {
	return KeySet{[]lockerKeys{{locker: locker, keys: slices.Compact(slices.Sorted(slices.Values(keys)))}}}
}

// OrderName names the set's locker, the same in every process. LockAll takes the keys of
// several lockers in the order of these names, and then of the keys. A key of a Redis must
// always go by one name, and be of lockers with one prefix: a key with two names has no
// single order, and a call that locks it by both deadlocks.
func (k KeySet) OrderName(name string) KeySet {
	parts := slices.Clone(k.parts)
	for i := range parts {
		parts[i].orderName = name
	}
	return KeySet{parts}
}

// And adds the keys of another locker. Each of the lockers needs its [KeySet.OrderName].
func (k KeySet) And(other KeySet) KeySet {
	return KeySet{slices.Concat(k.parts, other.parts)}
}

// inOrder returns the keys in the order in which LockAll takes them. It fails if one of
// them cannot be locked with opts.
func (k KeySet) inOrder(ctx context.Context, opts []holdfast.LockOption) ([]lockerKeys, error) {
	keys := 0
	for i, p := range k.parts {
		if p.locker == nil {
			return nil, errs.Invalid("multilock: Keys: locker is nil")
		}
		for _, other := range k.parts[:i] {
			if reflect.ValueOf(p.locker).Comparable() && other.locker == p.locker { // its keys would follow the order of two names
				return nil, errs.Invalid("multilock: two calls of Keys are of one locker; name all its keys in one")
			}
			if other.orderName == p.orderName {
				return nil, errs.Invalid("multilock: keys of several lockers need an OrderName for each; two have %q", p.orderName)
			}
			if engine.Paired(engine.Of(p.locker), engine.Of(other.locker)) { // as of one locker
				return nil, errs.Invalid("multilock: %q and %q are the halves of one read/write lock; lock keys of one of them", other.orderName, p.orderName)
			}
		}
		valid := func(_ context.Context, key string, _ []holdfast.LockOption) error { return check.Key(key) }
		if e := engine.Of(p.locker); e != nil { // it may have a prefix, and limits
			valid = e.CheckCall
		}
		for _, key := range p.keys {
			if err := valid(ctx, key, opts); err != nil {
				return nil, fmt.Errorf("holdfast: lock %s: %w", errs.Quote(key), err)
			}
		}
		keys += len(p.keys)
	}
	if keys == 0 {
		return nil, errs.Invalid("multilock: no keys to lock")
	}
	return slices.SortedFunc(slices.Values(k.parts), func(a, b lockerKeys) int { return cmp.Compare(a.orderName, b.orderName) }), nil
}
