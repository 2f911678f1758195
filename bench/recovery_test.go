package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A waiter that had the key while it was held was not quick: exclusion is broken, unless Redis
// has lost everything.
func TestEarlyWaiter(t *testing.T) {
	asked := time.Now()
	begun := asked.Add(time.Second)
	killed := breakage{lease: 4 * time.Second}
	took := redistest.Must(killed.waited(asked, begun, begun.Add(3*time.Millisecond)))(t)
	require.Equal(t, 3*time.Millisecond, took)
	_, err := killed.waited(asked, begun, begun.Add(-time.Millisecond))
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, "1ms before it was free")

	late := asked.Add(5 * time.Second)
	_, err = killed.waited(asked, late, late.Add(-time.Millisecond))
	require.Error(t, err)
	require.NotErrorIs(t, err, errBroken, "a holder that does not renew may have lost it")

	killed.forgets = true
	require.Zero(t, redistest.Must(killed.waited(asked, begun, begun.Add(-time.Millisecond)))(t))
}

// An election is no lock that happens to have the same key.
func TestElectionCampaigns(t *testing.T) {
	s := emptyServer(t)
	for _, b := range []breakage{leaderKilled, leaderResigns} {
		_, err := b.workload(noVotesName).subjects[0].measure(s, 0)
		require.ErrorContains(t, err, io.ErrUnexpectedEOF.Error(), b.name)
	}
}

// noVotes locks, and fails in elections.
type noVotes struct{ anybody }

const noVotesName = "no votes"

func init() {
	libraries[noVotesName] = &library{open: func(task) locker { return noVotes{} }}
}

func (noVotes) campaign(group string) func(func()) error { return failing{}.cycle(group) }

// A lock that does not exclude is found, and an election of several leaders.
func TestRecoveryWithoutExclusion(t *testing.T) {
	s := emptyServer(t)
	for _, b := range []breakage{holderKilled, connectionsCut, leaderKilled, leaderResigns} {
		_, err := b.workload(anybodyName).subjects[0].measure(s, 0)
		require.ErrorIs(t, err, errBroken, b.name)
	}
}
