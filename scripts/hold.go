package scripts

import (
	"context"
	"time"
)

var (
	setEntries = load("plain/set_entries.lua")
	inspect    = showing("plain/inspect.lua")
)

// SetEntries sets the number of entries of the owner's hold, when a nested one has begun or one of
// several has ended, and the owner's label. It never touches the expiry and may be
// repeated. If the key is not the owner's, ours is false and nothing changes.
func (r *Redis) SetEntries(ctx context.Context, key, owner string, entries Entries) (ours bool, err error) {
	return r.setEntries(ctx, setEntries, entries, owner, key)
}

// setEntries runs a script of that kind. keys are the key itself and what else it is given.
func (r *Redis) setEntries(ctx context.Context, s script, entries Entries, owner string, keys ...string) (ours bool, err error) {
	if err := CheckKey(keys[0]); err != nil {
		return false, err
	}
	if entries.Count < 1 || entries.Count > 999_999_999 {
		return false, refuse("entries: %d is not from 1 to 999999999", entries.Count)
	}
	m, short, err := r.write(ctx, s, len(keys), append(keys, owner, r.field(entries))...)
	if ours, err = parseBool(m, err); ours {
		err = short
	}
	return ours, err
}

// Holder is the holder of a key at one moment.
type Holder struct {
	Owner     string        // "" if the key is free
	Entries   int           // how many times the owner has entered
	Remaining time.Duration // of its lease, at least 1 ms; NoExpiry if it has no end
	Label     string        // of the owner; "" if it has none
	Mode      string        // of a read/write lock: read or write
	Readers   int           // of a read/write lock
	Waiting   int           // of Fair: how many wait, the dead included, also if the key is free
	Permits   int           // of semaphores: how many there are; 0 if that is not agreed, as the key is idle
	Holders   []Holder      // of semaphores: all, the first to end first
}

// Inspect returns the holder of key; the zero Holder if it is free.
func (r *Redis) Inspect(ctx context.Context, key string) (Holder, error) {
	return parseHolder(r.invokeFor(ctx, key, inspect, 1, key))
}
