package scripts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The time that the server spends in each call, as it counts it itself.
func BenchmarkServerTime(b *testing.B) {
	r := newHarness(b, fencing(10))
	r.vote = activated(b, r.node)
	c := client{r.node, r.of(clientA), r.vote}
	for _, f := range families {
		for name, call := range f.calls {
			for _, found := range f.situations {
				b.Run(f.name+" "+name+", "+found, func(b *testing.B) {
					var spent float64
					for range b.N {
						r.clear()
						situations[found](r)
						require.NoError(b, call(b.Context(), c, "k", ofA(9))) // Redis knows the script now
						r.clear()
						situations[found](r)
						r.s.Do(b, "CONFIG", "RESETSTAT")
						require.NoError(b, call(b.Context(), c, "k", ofA(1)))
						_, micros := cost(b, r.s)
						spent += micros["evalsha"]
					}
					b.ReportMetric(spent/float64(b.N), "server-µs/op")
				})
			}
		}
	}
}
