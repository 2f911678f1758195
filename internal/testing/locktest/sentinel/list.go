package sentinel

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A list that a failover cuts off says so, as a cursor means nothing to another server. The next
// one is whole.
func testLocks(t *testing.T, k locktest.Kind) {
	const many = 5000
	s := redistest.StartSentinel(t)
	locker := open(t, k, s.Client(t, often))
	s.Master().Do(t, "EVAL", "for i = 1, ARGV[1] do redis.call('HSET', 'key:' .. i, ARGV[2], '1') end", "0", strconv.Itoa(many), locktest.Java)
	replicated(t, s)
	list := func(during func()) (seen map[string]bool, last error) {
		t.Helper()
		seen = map[string]bool{}
		for status, err := range locker.Locks(locktest.Bounded(t), "key:") {
			if last = err; err == nil {
				require.False(t, seen[status.Key], status.Key)
				seen[status.Key] = true
			}
			if len(seen) == 1 {
				during()
			}
		}
		return seen, last
	}
	seen, err := list(func() { s.AwaitMaster(t, s.Failover()) })
	if err == nil { // the old master has told of all, before the client has learnt of the new one
		require.Len(t, seen, many)
	}
	locktest.Await(t, func() bool {
		seen, err = list(func() {})
		return err == nil
	}, "%v", &err)
	require.Len(t, seen, many)
}
