package scripts

import (
	"context"
	"time"
)

// ForceRelease frees key, whoever holds it, and announces that on its channel;
// existed tells whether it was held. The holder learns it at its next renewal.
// What is not a lock is left alone and is an error. A repeat may end the
// hold of whoever took the key in between.
func (n *Node) ForceRelease(ctx context.Context, key string) (existed bool, err error) {
	if err := CheckKey(key); err != nil {
		return false, err
	}
	return parseBool(n.run(ctx, forceRelease, 1, key, Channel(key)))
}

// Holder is who holds a key at one moment.
type Holder struct {
	Owner     string        // "" if the key is free
	Entries   int           // how many times the owner has entered
	Remaining time.Duration // of its lease, at least 1 ms; NoExpiry if it has no end
}

// Inspect returns who holds key; the zero Holder if it is free.
func (n *Node) Inspect(ctx context.Context, key string) (Holder, error) {
	if err := CheckKey(key); err != nil {
		return Holder{}, err
	}
	return parseHolder(n.run(ctx, inspect, 1, key))
}
