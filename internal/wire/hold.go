package wire

import (
	"cmp"
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
	label := *cmp.Or(e.Label, &r.Label)
	if label == "" {
		return strconv.Itoa(e.Count)
	}
	return strconv.Itoa(e.Count) + " " + label
}

// firstEntry is field for a new hold.
func (r *Redis) firstEntry(label *string) string {
	if label == nil {
		return r.oneEntry // the usual case allocates nothing
	}
	return r.field(Entries{1, label})
}

// SetEntries sets the number of entries of the owner's hold, when a nested one has begun or one of
// several has ended, and the owner's label. It never touches the expiry and may be
// repeated. If the key is not the owner's, ours is false and nothing changes. A hold of a read/write
// lock has up to 99 999 entries.
func (o *onRedis) SetEntries(ctx context.Context, key, owner string, entries Entries) (ours bool, err error) {
	args := append(make([]string, 0, 4), key)
	if o.renew.secondKey != nil {
		args = append(args, o.renew.secondKey(key, owner))
	}
	m, shortfall, err := o.redis.write(ctx, o.setEntries, len(args), append(args, owner, o.redis.field(entries))...)
	if ours, err = parseBool(m, err); ours {
		err = shortfall
	}
	return ours, err
}

// Inspect returns the state of key. Its Key is empty, as users know the key without a prefix. Of a
// semaphore, the Owner is the holder whose lease ends first; of a read/write lock, the writer, or else
// a reader. Those that wait for a fair lock include the dead.
func (o *onRedis) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	keys := o.keys(key)
	return o.parse(o.redis.invoke(ctx, o.inspect, len(keys), keys...))
}
