package batch

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestJoin(t *testing.T) {
	var g Batcher[string, int, int]
	c, index := g.Join("a", 10, false)
	require.Zero(t, index)
	require.Nil(t, c.Came)
	for i := 1; i < Max; i++ {
		same, index := g.Join("a", 10+i, false)
		require.Same(t, c, same)
		require.Equal(t, i, index)
		require.NotNil(t, c.Came)
	}
	require.Equal(t, Max, g.Size(c))
	for i, ask := range c.Asks {
		require.Equal(t, 10+i, ask)
	}
}

// No ask joins a call that is full, closed, of another kind or to go alone. Closing an older
// call leaves the newer one open.
func TestJoin_Apart(t *testing.T) {
	var g Batcher[string, int, int]
	first := func(kind string, alone bool) *Call[string, int, int] {
		t.Helper()
		c, index := g.Join(kind, 0, alone)
		require.Zero(t, index)
		return c
	}
	full := first("a", false)
	for range Max - 1 {
		_, index := g.Join("a", 0, false)
		require.NotZero(t, index)
	}
	closed := first("a", false)
	g.Seal(closed)
	first("a", false)
	other := first("b", false)
	first("b", true)
	g.Seal(full)
	same, index := g.Join("b", 1, false)
	require.Same(t, other, same)
	require.Equal(t, 1, index)
}

// Every ask is in one call, and every call has one ask at index 0.
func TestJoin_AtOnce(t *testing.T) {
	var g Batcher[int, int, int]
	const askers, times = 8, 2000
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for a := range askers {
		all.Go(func() {
			for i := range times {
				c, index := g.Join(i%2, a*times+i, false)
				if index != 0 {
					continue
				}
				g.Seal(c)
				mu.Lock()
				for _, ask := range c.Asks {
					seen[ask]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, seen, askers*times)
	for ask, n := range seen {
		require.Equal(t, 1, n, ask)
	}
}
