package scripts

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An uncontended lock and unlock: two calls.
func BenchmarkAcquireRelease(b *testing.B) {
	_, n := start(b)
	ctx := b.Context()
	var number atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		key := "k" + strconv.FormatInt(number.Add(1), 10)
		for pb.Next() {
			if a, err := n.Acquire(ctx, key, ownA, lease); err != nil || !a.OK {
				b.Error(a, err)
				return
			}
			if r, err := n.Release(ctx, key, ownA, 0); err != nil || !r.Ours {
				b.Error(r, err)
				return
			}
		}
	})
}

// The time that the server spends in each script, as it counts it itself. What a call
// needs is made before it by plain commands.
func BenchmarkServerTime(b *testing.B) {
	s, n := start(b)
	vote := activated(b, n)
	ctx := b.Context()
	a, other := NewFair(n, settingsOf(clientA)), NewFair(n, settingsOf(clientB))
	do := func(args ...string) { s.Do(b, args...) }
	free := func() { do("DEL", "k", queue("k"), scores("k"), counter("k")) }
	held := func() { free(); do("HSET", "k", ofA(1), "1") }
	waited := func() {
		held()
		do("RPUSH", queue("k"), ofB(1), ofB(2))
		do("ZADD", scores("k"), "9e12", ofB(1), "9e12", ofB(2))
		do("HSET", heartbeats("k"), clientB, "9000000000000", "mute "+clientB, "9000000000000")
	}
	nodeReplies, probed := make([]NodeReply, 1), make([]Probed, 1)
	ask := []Ask{{"k", ofA(1), lease}}
	beat := []Heartbeat{{Key: "k", Owners: []string{ofB(1)}, Distances: make([]time.Duration, 1)}}
	for _, c := range []struct {
		name    string
		prepare func()
		call    func() error
	}{
		{"acquire", free, func() error { _, err := n.Acquire(ctx, "k", ofA(1), lease); return err }},
		{"acquire of a held key", held, func() error { _, err := n.Acquire(ctx, "k", ofA(2), lease); return err }},
		{"acquire_fenced", free, func() error { _, err := n.AcquireFenced(ctx, "k", ofA(1), lease, *fencingHour); return err }},
		{"release", held, func() error { _, err := n.Release(ctx, "k", ofA(1), 0); return err }},
		{"clean_up", held, func() error { _, err := n.CleanUp(ctx, "k", ofA(1)); return err }},
		{"inspect", held, func() error { _, err := n.Inspect(ctx, "k"); return err }},
		{"fair_acquire", free, func() error { _, err := a.Acquire(ctx, "k", ofA(1), lease); return err }},
		{"fair_acquire of a held key", held, func() error { _, err := a.Acquire(ctx, "k", ofA(2), lease); return err }},
		{"fair_enter", held, func() error { _, err := other.Enter(ctx, "k", ofB(1)); return err }},
		{"fair_release", held, func() error { _, err := a.Release(ctx, "k", ofA(1), 0, false); return err }},
		{"fair_release to the next", waited, func() error { _, err := a.Release(ctx, "k", ofA(1), 0, false); return err }},
		{"fair_leave", waited, func() error { _, err := other.Leave(ctx, "k", 0, ofB(2)); return err }},
		{"fair_confirm", held, func() error { _, err := a.Confirm(ctx, "k", ofA(1), lease); return err }},
		{"fair_heartbeat", waited, func() error { return other.Heartbeat(ctx, beat, probed) }},
		{"quorum_acquire", free, func() error { return n.AcquireVoted(ctx, vote, false, ask, nodeReplies) }},
		{"quorum_acquire fenced", free, func() error { return n.AcquireVoted(ctx, vote, true, ask, nodeReplies) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for i := range b.N {
				c.prepare()
				if i == 0 { // Redis may not know the script
					require.NoError(b, c.call())
					c.prepare()
					do("CONFIG", "RESETSTAT")
				}
				require.NoError(b, c.call())
			}
			_, spent := cost(b, s)
			b.ReportMetric(spent["evalsha"]/float64(b.N), "server-µs/op")
		})
	}
}
