package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/watchdog"
)

// BenchmarkWatchForget measures short holds, from many goroutines, beside others that stay.
func BenchmarkWatchForget(b *testing.B) {
	for _, others := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			w := watchdog.New(watchdog.Config[*held]{
				Lease: lease,
				Renew: func(_ context.Context, _ []*held, a []watchdog.Answer) { all(a, watchdog.Renewed) },
				Ended: func(*held, error) {},
			})
			defer w.Close()
			terms := watchdog.Terms{Anchor: time.Now(), Lease: lease, Renew: true}
			for i := range others {
				terms.Anchor = time.Now().Add(-lease / 3 * time.Duration(i) / time.Duration(others))
				w.Watch(&held{}, terms)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				holds := make([]held, 1024) // a hold is watched once; leave its allocation out
				terms := terms
				for i := 0; pb.Next(); i++ {
					if i == len(holds) {
						holds, i = make([]held, len(holds)), 0
					}
					terms.Anchor = time.Now()
					w.Watch(&holds[i], terms)
					w.Forget(&holds[i])
				}
			})
		})
	}
}

// BenchmarkMemory measures the heap that one watched lease takes, embedded Lease included.
func BenchmarkMemory(b *testing.B) {
	type bare struct{ watchdog.Lease }
	const n = 100_000
	for range b.N {
		w := watchdog.New(watchdog.Config[*bare]{
			Lease: lease,
			Renew: func(_ context.Context, _ []*bare, _ []watchdog.Answer) {},
			Ended: func(*bare, error) {},
		})
		before := heap()
		for range n {
			w.Watch(&bare{}, watchdog.Terms{Anchor: time.Now(), Lease: lease, Renew: true})
		}
		b.ReportMetric(float64(heap()-before)/n, "B/lease")
		w.Close()
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
