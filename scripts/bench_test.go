package scripts

import (
	"strconv"
	"sync/atomic"
	"testing"
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
