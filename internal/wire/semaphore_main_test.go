package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// permitted3 is a server with keys that have three permits, and label as the owners' label.
func permitted3(t *testing.T) (*redistest.Server, *Semaphore) {
	s := redistest.Start(t)
	return s, NewSemaphore(NewRedis(s.Client(t), RedisSettings{Label: "label"}), 3)
}

// takes has owners take permits of the key k.
func takes(t *testing.T, p *Semaphore, owners ...string) {
	t.Helper()
	for _, owner := range owners {
		require.Equal(t, AcquireReply{OK: true}, must(p.Acquire(bounded(t), asking("k", owner)))(t), owner)
	}
}

// ended is the answer to the end of an owner's hold of k, and givenUp that of an owner in doubt.
func ended(t *testing.T, p *Semaphore, owner string) ReleaseReply {
	t.Helper()
	return must(p.Release(bounded(t), ReleaseRequest{Key: "k", Owner: owner}))(t)
}

func givenUp(t *testing.T, p *Semaphore, owner string) ReleaseReply {
	t.Helper()
	return must(p.Release(bounded(t), ReleaseRequest{Key: "k", Owner: owner, Doubt: true}))(t)
}

// taken are the owners that have a permit of k.
func taken(t *testing.T, p *Semaphore) (owners []string) {
	t.Helper()
	for _, h := range must(p.Inspect(bounded(t), "k"))(t).Holders {
		owners = append(owners, h.Owner)
	}
	return owners
}

func isFull(t *testing.T, p *Semaphore, owner string) {
	t.Helper()
	a := must(p.Acquire(bounded(t), asking("k", owner)))(t)
	require.False(t, a.OK || a.Gone, owner)
	require.ErrorContains(t, a.Why, "label")
	require.InDelta(t, lease, a.Remaining, float64(slack))
}

// over ends the lease of an owner while Redis has not noticed.
func over(t *testing.T, s *redistest.Server, owner string) {
	t.Helper()
	s.Do(t, "ZADD", "k", "XX", decimal(serverMillis(t, s)), owner)
}
