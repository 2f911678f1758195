package main

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The token visits all participants in turn, each in another process than the one before. Each
// step is one call and one message, and one more call with a queue.
func TestRing(t *testing.T) {
	for name, queue := range map[string]bool{"bare": false, "with a queue": true} {
		t.Run(name, func(t *testing.T) { testRing(t, queue) })
	}
}

func testRing(t *testing.T, queue bool) {
	s := emptyServer(t)
	const count, goroutines, laps = 3, 2, 20

	var rings []*ring
	for p := range count {
		r := openRing(queue)(task{Addrs: s.addrs(), Process: p, Processes: count, Goroutines: goroutines})
		defer r.close()
		rings = append(rings, r.(*ring))
	}
	var visits []int // guarded by the token
	var group sync.WaitGroup
	errs := make(chan error, count*goroutines)
	did := s.during(func() {
		for i := range count * goroutines {
			cycle := rings[i%count].cycle("hot")
			group.Go(func() {
				for range laps {
					if err := cycle(func() { visits = append(visits, i) }); err != nil {
						errs <- err
					}
				}
			})
		}
		require.NoError(t, finish(0, &group))
	})
	require.Empty(t, errs)
	for i, visitor := range visits {
		require.Equal(t, i%(count*goroutines), visitor, "visit %d", i)
	}
	require.Len(t, visits, count*goroutines*laps)
	calls := len(visits)
	require.Equal(t, calls, did.calls["publish"])
	if queue {
		require.Equal(t, calls, did.calls["lpop"])
		require.Equal(t, calls, did.calls["rpush"])
		calls *= 2
	}
	require.Equal(t, calls, did.calls["evalsha"])
}

// The wait for the token ends without a section when the load is over, or the ring is closed.
func TestRingEnds(t *testing.T) {
	s := emptyServer(t)
	for name, end := range map[string]func(*ring){"over": (*ring).over, "close": (*ring).close} {
		r := openRing(false)(task{Addrs: s.addrs(), Process: 1, Processes: 2, Goroutines: 1}) // where the token does not begin
		defer r.close()
		waited := make(chan error)
		cycle := r.cycle("hot")
		go func() { waited <- cycle(func() { t.Error("had a section") }) }()
		end(r.(*ring))
		require.NoError(t, <-waited, name)
	}
}
