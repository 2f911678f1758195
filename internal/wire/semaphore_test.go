package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/watchdog"
)

func TestG1_AsManyOwnersAsPermits(t *testing.T) {
	s, p := permitted3(t)
	takes(t, p, ofA(1), ofA(2), ofB(1))
	isFull(t, p, ofB(2))
	takes(t, p, ofA(1)) // again
	require.Equal(t, ReleaseReply{Ours: true}, ended(t, p, ofA(1)))
	require.Equal(t, ReleaseReply{}, ended(t, p, ofA(1)))
	takes(t, p, ofB(2))
	isFull(t, p, ofA(3))
	require.Equal(t, []string{ofA(2), ofB(1), ofB(2)}, taken(t, p))
	over(t, s, ofB(1)) // at this very millisecond
	takes(t, p, ofA(3))
	isFull(t, p, ofA(4))
	require.ElementsMatch(t, []string{ofA(2), ofB(2), ofA(3)}, taken(t, p))
	require.EqualValues(t, 3, number(t, s, "ZCARD", "k"))
	require.ElementsMatch(t, []string{"permits", ofA(2), ofB(2), ofA(3)}, listed(t, s, "HKEYS", permitRecord("k")), "the label of the ended one is gone")
}

// Both keys last until the last lease ends, and go with the last permit.
func TestG7_PermitsLeaveNothing(t *testing.T) {
	s, p := permitted3(t)
	must(p.Acquire(bounded(t), AcquireRequest{Key: "k", Owner: ofA(1), Lease: time.Hour}))(t)
	takes(t, p, ofA(2))
	for _, name := range []string{"k", permitRecord("k")} {
		lasts(t, s, name, time.Hour)
	}
	ended(t, p, ofA(1))
	answers := make([]watchdog.Answer, 1)
	require.NoError(t, p.Renew(bounded(t), lease, []string{"k"}, []string{ofA(2)}, answers))
	require.Equal(t, []watchdog.Answer{watchdog.Renewed}, answers)
	for _, name := range []string{"k", permitRecord("k")} {
		lasts(t, s, name, lease)
	}
	ended(t, p, ofA(2))
	require.Empty(t, state(t, s))

	// The last release takes along what is over, although its keys were to last longer.
	takes(t, p, ofA(3), ofA(4))
	must(p.Acquire(bounded(t), AcquireRequest{Key: "k", Owner: ofA(5), Lease: time.Hour}))(t)
	over(t, s, ofA(3))
	ended(t, p, ofA(5))
	require.Equal(t, []string{ofA(4)}, taken(t, p))
	require.Equal(t, ReleaseReply{}, ended(t, p, ofA(3)), "it was over")
	ended(t, p, ofA(4))
	require.Empty(t, state(t, s))
}

func TestF7_AnOwnerThatIsGivenUpTakesNoPermit(t *testing.T) {
	_, p := permitted3(t)
	takes(t, p, ofA(1))
	require.True(t, givenUp(t, p, ofA(1)).Ours)
	require.False(t, givenUp(t, p, ofA(2)).Ours)
	for _, owner := range []string{ofA(1), ofA(2)} {
		require.True(t, must(p.Acquire(bounded(t), asking("k", owner)))(t).Gone)
	}
	require.Empty(t, taken(t, p))
}

func TestPermitsAreAgreed(t *testing.T) {
	s, p := permitted3(t)
	other := NewSemaphore(p.redis, 5)
	takes(t, p, ofA(1))
	before := state(t, s)
	require.Equal(t, AcquireReply{Agreed: 3}, must(other.Acquire(bounded(t), asking("k", ofB(1))))(t))
	results := make([]Result[AcquireReply], 2)
	require.NoError(t, other.AcquireEach(bounded(t), []AcquireRequest{asking("k", ofB(1)), asking("free", ofB(1))}, results))
	require.Equal(t, []Result[AcquireReply]{{Value: AcquireReply{Agreed: 3}}, {Value: AcquireReply{OK: true}}}, results)
	must(other.Release(bounded(t), ReleaseRequest{Key: "free", Owner: ofB(1)}))(t)
	require.Equal(t, before, state(t, s))
	ended(t, p, ofA(1))
	takes(t, other, ofB(1), ofB(2), ofB(3), ofB(4), ofB(5))
	for i := range 5 {
		over(t, s, ofB(i+1))
	}
	takes(t, p, ofA(1), ofA(2), ofA(3)) // although the entries of the others may still be there
	isFull(t, p, ofA(4))
}

// Somebody has deleted the permit record. No permit is given until a renewal has restored it,
// or those that were given are back.
func TestF31_PermitsWithoutRegister(t *testing.T) {
	s, p := permitted3(t)
	other := NewSemaphore(p.redis, 5)
	takes(t, p, ofA(1))
	s.Do(t, "DEL", permitRecord("k"))
	takes(t, p, ofA(1)) // again
	for _, l := range []*Semaphore{p, other} {
		a := must(l.Acquire(bounded(t), asking("k", ofB(1))))(t)
		require.False(t, a.OK)
		require.Zero(t, a.Agreed)
		require.InDelta(t, lease, a.Remaining, float64(slack))
	}
	require.NoError(t, p.Renew(bounded(t), lease, []string{"k"}, []string{ofA(2)}, make([]watchdog.Answer, 1)))
	require.EqualValues(t, 0, number(t, s, "EXISTS", permitRecord("k")), "that owner has no permit")
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	answers := make([]watchdog.Answer, 2)
	require.NoError(t, p.Renew(bounded(t), lease, []string{"free", "k"}, []string{ofA(1), ofA(1)}, answers))
	require.Equal(t, []watchdog.Answer{watchdog.NotOurs, watchdog.Renewed}, answers)
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	lasts(t, s, permitRecord("k"), lease)
	require.Equal(t, AcquireReply{Agreed: 3}, must(other.Acquire(bounded(t), asking("k", ofB(1))))(t))
	takes(t, p, ofA(2), ofA(3))
	s.Do(t, "DEL", permitRecord("k"))
	for i := range 3 {
		ended(t, p, ofA(i+1))
	}
	takes(t, other, ofB(1), ofB(2), ofB(3), ofB(4))
}

// Whatever a user may not do, all keys have an expiry, also where labels stayed of owners that went
// with the sorted set, and where somebody has deleted the permit record.
func TestG7_PermitsWithoutRightsHaveAnExpiry(t *testing.T) {
	for _, resized := range []bool{false, true} {
		for _, right := range []string{"hset", "zadd", "pexpire"} {
			for _, gone := range []string{"k", permitRecord("k")} {
				t.Run(fmt.Sprint(resized, right, gone), func(t *testing.T) {
					s, p := permitted3(t)
					takes(t, p, ofA(1))
					if resized {
						require.NoError(t, p.Resize(bounded(t), "k", 3))
					}
					s.Do(t, "DEL", gone)
					s.Do(t, "ACL", "SETUSER", "default", "-"+right)
					_ = p.Renew(bounded(t), lease, []string{"k"}, []string{ofA(1)}, make([]watchdog.Answer, 1))
					if gone == "k" {
						_, err := p.Acquire(bounded(t), asking("k", ofA(2)))
						require.Error(t, err)
					}
					s.Do(t, "ACL", "SETUSER", "default", "+@all")
					for _, key := range listed(t, s, "KEYS", "*") {
						require.Positive(t, number(t, s, "PTTL", key), key)
					}
				})
			}
		}
	}
}

// What an operator says counts for all lockers, also after an idle time.
func TestResize(t *testing.T) {
	s, p := permitted3(t)
	other := NewSemaphore(p.redis, 7)
	takes(t, p, ofA(1), ofA(2), ofA(3))
	require.NoError(t, p.Resize(bounded(t), "k", 4))
	takes(t, other, ofB(1))
	isFull(t, p, ofA(4))
	require.NoError(t, p.Resize(bounded(t), "k", 2))
	require.Len(t, taken(t, p), 4, "holders keep their permits")
	require.NoError(t, p.Renew(bounded(t), lease, []string{"k"}, []string{ofA(3)}, make([]watchdog.Answer, 1)))
	for _, owner := range []string{ofA(1), ofA(2), ofA(3)} {
		isFull(t, p, ofA(4))
		ended(t, p, owner)
	}
	takes(t, p, ofA(5))
	isFull(t, other, ofB(2))
	ended(t, p, ofA(5))
	ended(t, p, ofB(1))
	const week = 7 * 24 * time.Hour
	lasts(t, s, permitRecord("k"), week)
	require.ElementsMatch(t, []string{"permits", "resized"}, listed(t, s, "HKEYS", permitRecord("k")))
	takes(t, p, ofB(6), ofB(7))
	isFull(t, p, ofB(8))
	lasts(t, s, "k", lease)
	require.True(t, must(p.ForceRelease(bounded(t), "k"))(t))
	require.False(t, must(p.ForceRelease(bounded(t), "k"))(t))
	require.ElementsMatch(t, []string{"permits", "resized"}, listed(t, s, "HKEYS", permitRecord("k")))
	h := must(p.Inspect(bounded(t), "k"))(t)
	require.Equal(t, holdfast.Status{Permits: 2}, h)
	must(p.Acquire(bounded(t), AcquireRequest{Key: "k", Owner: ofB(9), Lease: 30 * 24 * time.Hour}))(t)
	lasts(t, s, permitRecord("k"), 30*24*time.Hour)
	require.NoError(t, p.Resize(bounded(t), "k", 3))
	lasts(t, s, permitRecord("k"), 30*24*time.Hour)
	for _, n := range []int{0, -1, check.MaxPermits + 1} {
		requireRefused(t, "permits", p.Resize(bounded(t), "k", n))
	}
}

// All leases have ended, and Redis has removed their owners at once: their labels do not stay.
func TestG7_NoLabelOutlivesItsOwner(t *testing.T) {
	s, p := permitted3(t)
	for _, resized := range []bool{false, true} {
		takes(t, p, ofA(1), ofA(2))
		if resized {
			require.NoError(t, p.Resize(bounded(t), "k", 2))
		}
		s.Do(t, "DEL", "k")
		takes(t, p, ofA(3))
		want := []string{"permits", ofA(3)}
		if resized {
			want = append(want, "resized")
		}
		require.ElementsMatch(t, want, listed(t, s, "HKEYS", permitRecord("k")))
		s.Do(t, "DEL", "k", permitRecord("k"))
	}
	for i := range 250 { // as many as two calls and a half remove
		s.Do(t, "ZADD", "k", "1", ofB(i+1))
		s.Do(t, "HSET", permitRecord("k"), ofB(i+1), "x", "permits", "3")
	}
	for i := range 3 {
		require.EqualValues(t, 250-100*i+i, number(t, s, "ZCARD", "k"), "a call removes 100")
		takes(t, p, ofA(10+i))
	}
	require.EqualValues(t, 4, number(t, s, "HLEN", permitRecord("k")))
	isFull(t, p, ofA(20))
}

func TestLabelsOfPermits(t *testing.T) {
	s, p := permitted3(t)
	takes(t, p, ofA(1))
	label := "mine"
	require.True(t, must(p.SetEntries(bounded(t), "k", ofA(1), Entries{Count: 2, Label: &label}))(t))
	require.Equal(t, label, must(p.Inspect(bounded(t), "k"))(t).Label)
	require.Equal(t, 2, must(p.Inspect(bounded(t), "k"))(t).Entries)
	label = ""
	require.True(t, must(p.SetEntries(bounded(t), "k", ofA(1), Entries{Count: 1, Label: &label}))(t))
	require.Empty(t, must(p.Inspect(bounded(t), "k"))(t).Label)
	require.Equal(t, 1, must(p.Inspect(bounded(t), "k"))(t).Entries)
	s.Do(t, "DEL", permitRecord("k"))
	require.True(t, must(p.SetEntries(bounded(t), "k", ofA(1), Entries{Count: 2}))(t))
	require.EqualValues(t, 0, number(t, s, "EXISTS", permitRecord("k")))
	require.Equal(t, 0, must(p.Inspect(bounded(t), "k"))(t).Permits)
}

// Out of memory, what keeps or ends a lease works.
func TestF30_PermitsOutOfMemory(t *testing.T) {
	s, p := permitted3(t)
	takes(t, p, ofA(1), ofA(2), ofA(3))
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	answers := make([]watchdog.Answer, 2)
	require.NoError(t, p.Renew(bounded(t), 2*lease, []string{"k", "k"}, []string{ofA(1), ofA(2)}, answers))
	require.Equal(t, []watchdog.Answer{watchdog.Renewed, watchdog.Renewed}, answers)
	lasts(t, s, "k", 2*lease)
	label := "another"
	require.True(t, must(p.SetEntries(bounded(t), "k", ofA(1), Entries{Count: 2, Label: &label}))(t))
	require.Equal(t, "2 another", text(t, s, "HGET", permitRecord("k"), ofA(1)))
	require.True(t, ended(t, p, ofA(1)).Ours)
	require.True(t, givenUp(t, p, ofA(2)).Ours)
	require.EqualValues(t, 1, number(t, s, "EXISTS", tombstone("k", ofA(2))))
	require.True(t, must(p.ForceRelease(bounded(t), "k"))(t))
}
