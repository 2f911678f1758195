package wire

import (
	"context"
	"strconv"

	"github.com/holdfast-go/holdfast"
)

var (
	setEntries = load("set_entries")
	inspect    = showing("inspect")
)

// Entries are the entries of a hold.
type Entries struct {
	Count int
	Label *string // of their owner, for people; nil: that of the Redis
}

// field is what the field of a hold holds: the number of its entries, and behind a space the
// label. Java never looks at the field of an owner that is not its own.
func (r *Redis) field(e Entries) string {
	label := r.Label
	if e.Label != nil {
		label = *e.Label
	}
	if label == "" {
		return strconv.Itoa(e.Count)
	}
	return strconv.Itoa(e.Count) + " " + label
}

// SetEntries sets the number of entries of the owner's hold, when a nested one has begun or one of
// several has ended, and the owner's label. It never touches the expiry and may be
// repeated. If the key is not the owner's, ours is false and nothing changes.
func (r *Redis) SetEntries(ctx context.Context, key, owner string, entries Entries) (ours bool, err error) {
	return r.setEntries(ctx, setEntries, entries, owner, key)
}

// setEntries runs a script of that kind. keys are the key itself and what else it is given.
func (r *Redis) setEntries(ctx context.Context, s script, entries Entries, owner string, keys ...string) (ours bool, err error) {
	if entries.Count < 1 || entries.Count > 999_999_999 {
		return false, refuse("entries: %d is not from 1 to 999999999", entries.Count)
	}
	m, shortfall, err := r.write(ctx, s, len(keys), append(keys, owner, r.field(entries))...)
	if ours, err = parseBool(m, err); ours {
		err = shortfall
	}
	return ours, err
}

// Inspect returns the state of key. Its Key is empty, as users know the key without a prefix.
func (r *Redis) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	return parseStatus(r.invoke(ctx, inspect, 1, key))
}
