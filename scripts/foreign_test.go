package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lock is recognised if we hold it, and if Java does.
func TestForeignIsNoLock(t *testing.T) {
	s, n := start(t)
	for _, owner := range []string{ownA, ownB, ofJ(1), ofJ(4711), clientJ + ":-7516192768", clientJ + ":0"} {
		s.Do(t, "HSET", "k", owner, "3")
		h := must(n.Inspect(bounded(t), "k"))(t)
		require.Equal(t, Holder{Owner: owner, Entries: 3, Remaining: NoExpiry}, h)
		a := must(n.Acquire(bounded(t), "k", ofC(1), lease))(t)
		require.Equal(t, Acquired{Remaining: NoExpiry}, a)
		e := must(NewFair(n, settingsOf(clientA)).Enter(bounded(t), "k", ofA(1)))(t)
		require.Equal(t, []Place{Waiting}, e.Places)
		require.True(t, must(n.ForceRelease(bounded(t), "k"))(t))
		s.Do(t, "FLUSHALL")
	}
}

// No number of entries that Redis may keep is an unknown outcome.
func TestF33_OddCounts(t *testing.T) {
	s, n := start(t)
	f := NewFair(n, settingsOf(clientA))
	for _, count := range []string{"1795489234623825", "inf", "-inf", "nan", "0x10", "1e400", "1e3", "-1", "1.5", "", " 1", "99999999999999999999"} {
		for _, owner := range []string{ownA, "id"} {
			s.Do(t, "HSET", "k", owner, count)
			_, err := n.Inspect(bounded(t), "k")
			require.ErrorContains(t, err, "WRONGTYPE", count)
			require.Equal(t, Refused, OutcomeOf(err))
			_, err = f.Inspect(bounded(t), "k")
			require.ErrorContains(t, err, "WRONGTYPE", count)
			require.Equal(t, Refused, OutcomeOf(err))
			s.Do(t, "DEL", "k")
		}
	}
	s.Do(t, "HSET", "k", ownA, "1")
	s.Do(t, "PEXPIREAT", "k", "9223372036854775807")
	h := must(n.Inspect(bounded(t), "k"))(t)
	require.Greater(t, h.Remaining, time.Hour)
}
