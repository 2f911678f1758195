package scripts

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// foreign are hashes that are no locks, or not of a kind that we know.
func foreign() map[string][]string {
	java := ofJ(1)
	hashes := map[string][]string{
		"data": {"name", "Ann", "mail", "a@b", "age", "7"}, "one field": {"name", "Ann"}, "no name": {"", "1"},
		"a counter": {"user:1", "5"}, "an id": {"3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01", "1"}, "a name and a number": {"somebody:01", "1"},
		"of the length of an owner": {"3d2f0a8e_5b0c_4f57_9f2a_0d9f5f3f6a01:01", "1"}, "no number": {ownA + "x", "1"},
		"a lock and data": {ownA, "1", "name", "Ann"}, "two owners": {ownA, "1", ownB, "1"},
		"read lock": {"mode", "read", java, "1"}, "write lock": {"mode", "write", java + ":write", "1"}, "mode": {"mode", "read"}, "write owner": {java + ":write", "1"},
	}
	large := []string{}
	for i := range 2000 {
		large = append(large, decimal(int64(i)), "x")
	}
	hashes["large"] = large
	return hashes
}

// What others keep in a hash is refused at once, and left as it is.
func TestF33_ForeignHash(t *testing.T) {
	s, n := start(t)
	least := user(t, s, "least") // it may not do more, and so not read it whole
	others := []string{"recount", "renew", "release", "release fenced", "clean_up"}
	for what, fields := range foreign() {
		s.Do(t, append([]string{"HSET", "k"}, fields...)...)
		before := state(t, s)
		for name, verb := range verbs {
			err := verb(bounded(t), least, "k", ofC(1))
			s.Do(t, "DEL", tombstone("k", ofC(1)))
			if slices.Contains(others, name) { // it is not the owner's
				require.NoError(t, err, "%s: %s", name, what)
				continue
			}
			require.ErrorContains(t, err, "WRONGTYPE", "%s: %s", name, what)
			require.Equal(t, Refused, OutcomeOf(err), name)
		}
		for _, f := range []*Fencing{nil, fencingHour} {
			said := make([]Result[Acquired], 2)
			require.NoError(t, n.AcquireEach(bounded(t), f, []Ask{{"k", ofC(1), lease}, {"free", ofC(1), lease}}, said))
			require.ErrorContains(t, said[0].Err, "WRONGTYPE", what)
			require.True(t, said[1].Value.OK)
			s.Do(t, "DEL", "free", counter("free"))
		}
		_, err := n.AcquireAll(bounded(t), []string{"free", "k"}, []string{ofC(1), ofC(2)}, lease)
		require.ErrorContains(t, err, "WRONGTYPE", what)
		require.Equal(t, before, state(t, s), what)
		s.Do(t, "FLUSHALL")
	}
}

func TestF33_ForeignHashInOrder(t *testing.T) {
	r := newHarness(t)
	least := fairUser(t, r.s, "least")
	calls := fairCalls()
	others := []string{"queue", "release", "leave", "confirm", "release each", "release served", "release in doubt"}
	refused := map[string]bool{}
	for what, fields := range foreign() {
		r.s.Do(t, append([]string{"HSET", "k"}, fields...)...)
		before := state(t, r.s)
		for name, call := range calls {
			err := call(bounded(t), least, "k")
			r.s.Do(t, "DEL", tombstone("k", ofA(1)))
			if err == nil {
				require.Contains(t, others, name, what)
			} else {
				require.ErrorContains(t, err, "WRONGTYPE", "%s: %s", name, what)
				require.Equal(t, Refused, OutcomeOf(err), name)
				refused[name] = true
			}
			require.Equal(t, before, state(t, r.s), "%s: %s", name, what)
		}
		r.s.Do(t, "FLUSHALL")
	}
	for _, name := range []string{"acquire", "acquire each", "enter", "heartbeat", "force_release", "inspect"} {
		require.True(t, refused[name], "%s of %v", name, slices.Sorted(maps.Keys(calls)))
	}
}

// A lock is recognised if we hold it, and if Java does.
func TestForeignIsNoLock(t *testing.T) {
	s, n := start(t)
	for _, owner := range []string{ownA, ownB, ofJ(1), ofJ(4711), clientJ + ":-7516192768", clientJ + ":0"} {
		s.Do(t, "HSET", "k", owner, "3")
		h, err := n.Inspect(bounded(t), "k")
		require.NoError(t, err)
		require.Equal(t, Holder{Owner: owner, Entries: 3, Remaining: NoExpiry}, h)
		a, err := n.Acquire(bounded(t), "k", ofC(1), lease)
		require.NoError(t, err)
		require.Equal(t, Acquired{Remaining: NoExpiry}, a)
		e, err := NewFair(n, settingsOf(clientA)).Enter(bounded(t), "k", ofA(1))
		require.NoError(t, err)
		require.Equal(t, []Place{Waiting}, e.Places)
		existed, err := n.ForceRelease(bounded(t), "k")
		require.NoError(t, err)
		require.True(t, existed)
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
			_, _, err = f.Inspect(bounded(t), "k")
			require.ErrorContains(t, err, "WRONGTYPE", count)
			require.Equal(t, Refused, OutcomeOf(err))
			s.Do(t, "DEL", "k")
		}
	}
	s.Do(t, "HSET", "k", ownA, "1")
	s.Do(t, "PEXPIREAT", "k", "9223372036854775807")
	h, err := n.Inspect(bounded(t), "k")
	require.NoError(t, err)
	require.Greater(t, h.Remaining, time.Hour)
}
