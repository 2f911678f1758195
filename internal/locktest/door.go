// Package locktest is the conformance suite that every door passes: rlock, fair, and
// later multilock. Every sentence of the public docs is a case, every
// guarantee (G1…) and every fault (F1…) has its number in a test's name. It also
// holds the checker of exclusion. For tests only.
package locktest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Door is a way to lock, as the suite sees it: an adapter of a few lines in the
// tests of each door.
type Door struct {
	// Name is the package's name.
	Name string
	// Fair says that waiters stand in a queue in Redis and are granted the key in
	// its order; else they listen to the key's channel and race for it.
	Fair bool
	// Nodes is of how many independent masters a quorum is made that locks keys; 0:
	// one Redis does.
	Nodes int
	// New makes a locker on the Redis of client; it is closed by the test.
	New func(client rueidis.Client, o Options) (Locker, error)
}

// Options are those of a door's New; nil and zero fields leave the default.
type Options struct {
	Lease      time.Duration
	Handover   *time.Duration
	Fencing    bool
	MaxWaiters int
	MaxOutage  *time.Duration
	Logger     *slog.Logger
	// Of fair doors only; others take no notice.
	Stale      time.Duration
	FirstLease time.Duration
	// Of quorums only; others take no notice.
	MaxLease  time.Duration // longest lease: for so long a node that has forgotten has no vote; 0: so long that no test outlives it
	Unguarded bool          // nodes that have forgotten vote at once
}

// Call holds the options of one call; zero fields are left out.
type Call struct {
	FixedLease time.Duration
	MaxHold    time.Duration
}

// Locker is what every door's Locker does.
type Locker interface {
	Do(ctx context.Context, key string, f func(context.Context) error, c ...Call) error
	Lock(ctx context.Context, key string, c ...Call) (Lease, error)
	TryLock(ctx context.Context, key string, c ...Call) (Lease, error)
	TryLockFor(ctx context.Context, key string, wait time.Duration, c ...Call) (Lease, error)
	Inspect(ctx context.Context, key string) (Status, error)
	ForceUnlock(ctx context.Context, key string) (bool, error)
	Close() error
}

// Lease is what every door's Lease does.
type Lease interface {
	Unlock(ctx context.Context) error
	Bind(ctx context.Context) context.Context
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Fence() int64
	Key() string
	Owner() string
}

// Status is what every door's Inspect tells.
type Status struct {
	Held      bool
	Owner     string
	Entries   int
	Remaining time.Duration
}

// Open makes a locker on client and closes it with the test.
func (d Door) Open(t testing.TB, client rueidis.Client, o Options) Locker {
	t.Helper()
	l, err := d.New(client, o)
	if err != nil {
		t.Fatalf("%s: New: %v", d.Name, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
