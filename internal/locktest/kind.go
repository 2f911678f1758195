// Package locktest is the conformance suite that every lock kind passes: rlock, fair, and
// later multilock. Every sentence of the public docs is a case, every
// guarantee (G1…) and every fault (F1…) has its number in a test's name. It also
// holds the checker of exclusion. For tests only.
package locktest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
)

// Kind is a way to lock, as the suite sees it: an adapter of a few lines in the
// tests of each lock kind.
type Kind struct {
	// Name is the package's name.
	Name string
	// Fair says that waiters stand in a queue in Redis and are granted the key in
	// its order; else they listen to the key's channel and race for it.
	Fair bool
	// Nodes is of how many independent masters a quorum is made that locks keys; 0:
	// one Redis does.
	Nodes int
	// New makes a locker on the Redis of client; it is closed by the test.
	New func(client rueidis.Client, o Options) (holdfast.Locker, error)
}

// Options are those of a lock kind's New; nil and zero fields leave the default.
type Options struct {
	Lease      time.Duration
	Handover   *time.Duration
	Fencing    bool
	MaxWaiters int
	MaxOutage  *time.Duration
	Logger     *slog.Logger
	// Of fair locks only; others take no notice.
	Stale      time.Duration
	FirstLease time.Duration
	// Of quorums only; others take no notice.
	MaxLease  time.Duration // longest lease: for so long a node that has forgotten has no vote; 0: so long that no test outlives it
	Unguarded bool          // nodes that have forgotten vote at once
}

// Open makes a locker on client and closes it with the test.
func (d Kind) Open(t testing.TB, client rueidis.Client, o Options) holdfast.Locker {
	t.Helper()
	l, err := d.New(client, o)
	if err != nil {
		t.Fatalf("%s: New: %v", d.Name, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
