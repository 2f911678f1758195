package faults

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F26_NodeOfAClusterThatSendsElsewhere", testSentElsewhere).real = true
}

// A client that does not follow is sent elsewhere by a node of a Cluster, each time it
// asks: no wait cures that.
func testSentElsewhere(t *testing.T, d Kind) {
	var f Topology
	for range max(d.Nodes, 1) {
		// It has the slot of the marker, so that it is a node of a quorum.
		f = append(f, redistest.Start(t, redistest.ClusterNode(t, "5961", "0-5960 5962-16383")...))
	}
	f.Each(func(s Server) { Real(s).AwaitClusterNode(t) })
	locker := d.Open(t, f.Client(t, func(o *rueidis.ClientOption) { o.ForceSingleClient = true }), Options{Lease: Long})
	refused := func(err error) {
		t.Helper()
		RequireSentinel(t, err, nil)
		require.Regexp(t, "MOVED|CROSSSLOT", err.Error()) // a call may also have the marker, which is in another slot
	}
	ctx := Bounded(t)
	_, err := locker.TryLock(ctx, "k")
	refused(err)
	_, err = locker.TryLockFor(ctx, "k", Long)
	refused(err)
	_, err = locker.Lock(ctx, "k")
	refused(err)
	refused(locker.Do(ctx, "k", func(context.Context) error { return nil }))
	_, err = locker.Inspect(ctx, "k")
	refused(err)
	_, err = locker.ForceUnlock(ctx, "k")
	refused(err)
}
