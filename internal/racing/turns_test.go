package racing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/pubsub"
)

func seen(messages uint64) pubsub.State {
	return pubsub.State{Epoch: 1, Live: true, Messages: messages}
}

func TestTurnsLetAsManyReleasesPassAsOthersListen(t *testing.T) {
	now := time.Now()
	var turns turns
	messages := uint64(7)
	for range 5 { // each stepping back counts anew
		turns.stepBack(2, seen(messages), now, time.Millisecond)
		turns.published()
		require.True(t, turns.active())
		messages++
		require.False(t, turns.mine(seen(messages), now), "our own message is no turn")
		messages++
		require.False(t, turns.mine(seen(messages), now), "one of two")
		messages++
		require.True(t, turns.mine(seen(messages), now))
		require.False(t, turns.active(), "a turn lasts: from now on each release is a reason to try")
	}
	for _, others := range []int{0, -1} {
		turns.stepBack(others, seen(messages), now, time.Millisecond)
		require.False(t, turns.active())
	}
}

func TestTurnsProbeAfterAFewTripsAndThenEverLater(t *testing.T) {
	now := time.Now()
	var turns turns
	turns.stepBack(3, seen(0), now, time.Millisecond)
	require.Equal(t, now.Add(4*time.Millisecond), turns.probe)
	last := turns.probe
	for range 10 {
		before := last
		turns.probed(before)
		last = turns.probe
		require.GreaterOrEqual(t, last.Sub(now), 2*before.Sub(now))
	}
}

func TestTurnsProbeWhenTheTurnShouldHaveCome(t *testing.T) {
	now := time.Now()
	var turns turns
	turns.stepBack(4, seen(0), now, time.Microsecond)
	require.True(t, turns.mine(seen(4), now.Add(40*time.Millisecond)), "10 ms between releases")
	turns.stepBack(4, seen(4), now, time.Microsecond)
	turns.probed(now)
	require.Equal(t, 50*time.Millisecond, turns.probe.Sub(now), "a quarter more than usual")
}

// A release may be the last: the listeners may have given up.
func TestTurnsProbeSoonAfterAReleaseThatNobodyMayTake(t *testing.T) {
	now := time.Now()
	var turns turns
	turns.stepBack(3, seen(0), now, time.Millisecond)
	turns.probed(now.Add(time.Second))
	later := now.Add(2 * time.Second)
	require.False(t, turns.mine(seen(1), later))
	require.Equal(t, later.Add(4*time.Millisecond), turns.probe)
	require.False(t, turns.mine(seen(1), later.Add(time.Millisecond)), "the same release")
	require.Equal(t, later.Add(4*time.Millisecond), turns.probe)
}

// However long the others usually hold the key, a probe follows soon after each release,
// and finds the key free if no other process wants it any more.
func TestG4_TurnsDoNotSleepOverAReleaseForLong(t *testing.T) {
	now := time.Now()
	var turns turns
	turns.stepBack(3, seen(0), now, time.Millisecond)
	require.True(t, turns.mine(seen(3), now.Add(15*time.Second)), "5 s between releases")
	turns.stepBack(3, seen(3), now, time.Millisecond)
	turns.probed(now.Add(5 * time.Millisecond))
	for n := range 2 {
		later := now.Add(time.Duration(n+1) * 5 * time.Second)
		require.False(t, turns.mine(seen(uint64(4+n)), later))
		require.Equal(t, later.Add(maxIdle), turns.probe)
		turns.probed(later.Add(maxIdle)) // it was held
		require.True(t, turns.probe.After(later.Add(5*time.Second)), "one probe for that release")
	}
}

// A process with several holds of a key may release them while it steps back.
func TestTurnsAreNotPushedAwayByOwnReleases(t *testing.T) {
	now := time.Now()
	var turns turns
	release := func(heard uint64, at time.Time) {
		turns.departs()
		turns.stepBack(2, seen(heard), at, time.Millisecond)
		turns.departed()
		turns.published()
	}
	release(0, now)
	require.Equal(t, now.Add(4*time.Millisecond), turns.probe)
	for i := range uint64(3) {
		at := now.Add(time.Duration(i+1) * time.Millisecond)
		release(i+1, at)
		require.False(t, turns.mine(seen(i+2), at))
		require.Equal(t, now.Add(4*time.Millisecond), turns.probe, "further releases do not delay the probe")
	}
	turns.probed(now.Add(time.Minute)) // the key was held
	later := now.Add(time.Minute + time.Second)
	release(4, later)
	require.Equal(t, later.Add(4*time.Millisecond), turns.probe, "a release brings a late probe nearer")
	require.False(t, turns.mine(seen(6), later), "five of them were ours")
	require.True(t, turns.mine(seen(7), later))
}

// Messages of ours that were lost hide no release of another forever.
func TestTurnsForgetMessagesThatWereLost(t *testing.T) {
	now := time.Now()
	var turns turns
	for range 5 {
		turns.published()
	}
	turns.stepBack(1, seen(1), now, time.Millisecond)
	require.True(t, turns.mine(seen(2), now))
}

func TestTurnsDoNotCountAReleaseOfOursThatIsUnderWay(t *testing.T) {
	now := time.Now()
	var turns turns
	turns.stepBack(1, seen(0), now, time.Millisecond)
	turns.departs()
	require.False(t, turns.mine(seen(1), now), "it may be ours")
	require.Equal(t, now.Add(4*time.Millisecond), turns.probe)
	require.True(t, turns.mine(seen(2), now), "one of two is not")

	turns.stepBack(1, seen(2), now, time.Millisecond)
	require.False(t, turns.mine(seen(3), now))
	turns.departed() // it has published nothing
	require.True(t, turns.mine(seen(3), now))
	turns.departed() // of before these turns
	require.Zero(t, turns.coming)
}
