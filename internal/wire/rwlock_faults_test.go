package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// A reader whose timeout key has gone is dead, also Java's: whoever asks next removes it, and a
// lock of which no entry lives is free. The lock lasts as long as the last that lives.
func TestG4_TheDeadHoldNothing(t *testing.T) {
	r := newReadWrites(t)
	for name, ask := range map[string]func(){
		"write":   func() { r.refused(writer(ofC(1))) },
		"inspect": func() { require.Equal(t, 2, r.inspects().Readers) },
		"release": func() { r.shares(ofC(1)); r.ends(ofC(1)) },
	} {
		r.clear()
		r.shares(ofA(1), ofB(1), ofA(2))
		r.s.Do(t, "HSET", "k", ofJ(1), "2", ofK(1), "2")
		r.s.Do(t, "SET", "{k}:"+ofJ(1)+":rwlock_timeout:2", "1", "PX", "90000")
		r.s.Do(t, "PEXPIRE", "k", "900000")
		r.dies(ofA(1), ofB(1))
		ask()
		m := r.s.Do(t, "HGETALL", "k")
		require.Equal(t, map[string]string{"mode": "read", ofA(2): "1", ofJ(1): "2"}, must(m.AsStrMap())(t), name)
		lasts(t, r.s, "k", 90*time.Second)

		r.s.Do(t, "DEL", "{k}:"+ofJ(1)+":rwlock_timeout:2")
		r.dies(ofA(2))
		r.shares(writer(ofC(1)))
		r.requireEntries("write", writer(ofC(1)))
	}
}

// Without entries, mode read locks nobody out, and neither does the entry of a writer that died
// while its reader lives.
func TestG4_NoModeOutlivesItsEntries(t *testing.T) {
	r := newReadWrites(t)
	left := func() { r.s.Do(t, "HSET", "k", "mode", "read"); r.s.Do(t, "PEXPIRE", "k", "60000") }
	left()
	require.Zero(t, r.inspects())
	require.EqualValues(t, 1, number(t, r.s, "HLEN", "k"), "it may be an application's")
	r.shares(writer(ofA(1)))
	r.beside(ofA(2), writer(ofA(1)))
	r.dies(writer(ofA(1)))
	r.shares(ofB(1))
	r.requireEntries("read", ofA(2), ofB(1))

	r.clear()
	r.shares(writer(ofA(1)))
	r.beside(ofA(2), writer(ofA(1)))
	r.dies(ofA(2))
	r.ends(writer(ofA(1)))
	require.Empty(t, state(t, r.s))
}

// A late acquire of an owner that was given up takes nothing, and a late release ends no other hold.
func TestG5_LateCallsOfReadersAndWriters(t *testing.T) {
	r := newReadWrites(t)
	for _, owner := range []string{ofA(1), writer(ofA(1))} {
		r.clear()
		for range 2 {
			require.False(t, r.ended(RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: owner, Doubt: true}}).Ours)
			require.Equal(t, AcquireReply{Gone: true}, r.tries(owner, wish))
		}
		r.shares(ofB(1), ofA(2))
		for _, stranger := range []string{owner, ofB(2), writer(ofB(1)), "mode", ofB(1)[:len(ofB(1))-1]} {
			h := RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: stranger, LastFence: 1}}
			require.Zero(t, must(r.rw(ofA(1)).Release(bounded(t), h))(t))
		}
		r.requireEntries("read", ofB(1), ofA(2))
	}
	r.requireSaid()
}

// A renewal needs the entry and the timeout key, renews each by itself, never shortens the lease
// of another, and works out of memory.
func TestRenewReadWriteLocks(t *testing.T) {
	r := newReadWrites(t)
	r.shares(ofA(1), ofB(1), ofC(1))
	for _, name := range []string{"k", timeout("k", ofB(1))} {
		r.s.Do(t, "PEXPIRE", name, "90000")
	}
	r.dies(ofC(1))
	r.s.Do(t, "SET", timeout("k", ofA(2)), "1", "PX", "1000") // without an entry
	r.s.Do(t, "SET", "string", "x")
	must(r.rw(ofA(1)).Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: asking("l", writer(ofA(1)))}))(t)
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	keys := []string{"k", "k", "k", "l", "string", "free"}
	owners := []string{ofA(1), ofC(1), ofA(2), writer(ofA(1)), ofA(1), ofA(1)}
	answers := make([]watchdog.Answer, len(keys))
	require.NoError(t, r.rw(ofA(1)).Renew(bounded(t), 2*lease, keys, owners, answers))
	require.Equal(t, []watchdog.Answer{watchdog.Renewed, watchdog.NotOurs, watchdog.NotOurs, watchdog.Renewed, watchdog.NotOurs, watchdog.NotOurs}, answers)
	lasts(t, r.s, "k", 90*time.Second)
	lasts(t, r.s, timeout("k", ofA(1)), 2*lease)
	lasts(t, r.s, timeout("l", writer(ofA(1))), 2*lease)
	lasts(t, r.s, "l", 2*lease)
	require.Zero(t, number(t, r.s, "EXISTS", timeout("k", ofC(1))))

	r.ends(ofA(1), ofB(1)) // Redis has room for less
	r.requireEntries("")
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "0")
}

// While the slot of a lock moves, the timeout key of a reader may be at either node. No call takes
// it for dead there: neither a writer's acquire, nor a release, nor Inspect, from any side.
func TestG1_ClusterSlotOfAReaderMoves(t *testing.T) {
	redistest.NeedRedis7(t, "6.2 answers ASK")
	c, n := onCluster(t, 2, 0)
	r := NewRWLock(n, clientA)
	owners := []string{ofA(1), ofA(2)}
	all := []string{"k", timeout("k", owners[0]), timeout("k", owners[1]), wishes("k")}
	for at := range all {
		for _, owner := range owners {
			require.True(t, must(r.Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: AcquireRequest{Key: "k", Owner: owner, Lease: time.Hour}}))(t).OK)
		}
		require.False(t, must(r.Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: asking("k", writer(ofA(4))), Wish: wish}))(t).OK)
		slot, to := moving(t, c, "k")
		for moved := range len(all) + 1 {
			if moved > 0 {
				c.MoveKeys(t, slot, to, all[(at+moved-1)%len(all)])
			}
			about := fmt.Sprint(at, moved)
			_, err := r.Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: asking("k", writer(ofA(3)))})
			require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			_, err = r.Release(bounded(t), RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: owners[0]}})
			require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			_, err = r.Inspect(bounded(t), "k")
			require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			answers := make([]watchdog.Answer, 2)
			if err = r.Renew(bounded(t), time.Hour, []string{"k", "k"}, owners, answers); err != nil {
				require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			}
			require.NotContains(t, answers, watchdog.NotOurs, about)
		}
		c.EndMigration(t, slot, to)
		require.NoError(t, r.Withdraw(bounded(t), "k"))
		a := must(r.Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: asking("k", writer(ofA(3)))}))(t)
		require.False(t, a.OK)
		for _, owner := range owners {
			require.True(t, must(r.Release(bounded(t), RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: owner}}))(t).Ours)
		}
	}
}

// The names of a lock share its slot, also those that no call declares.
func TestClusterNamesOfReadWriteLocks(t *testing.T) {
	for _, key := range []string{"k", "{tag}k", "k{tag}", "a{b}c{d}"} {
		for _, name := range []string{timeout(key, ofA(1)), wishes(key), absentKey(key), scripts.RWLockChannel(key)} {
			require.Equal(t, cluster.Slot(key), cluster.Slot(name), name)
		}
	}
	c, n := onCluster(t, 2, 0)
	r := NewRWLock(n, clientA)
	for i := range 20 {
		key := fmt.Sprint("k", i)
		for _, owner := range []string{ofA(1), ofA(2), ofA(3)} {
			require.True(t, must(r.Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: asking(key, owner)}))(t).OK)
		}
		c.Owner(t, key).Do(t, "DEL", timeout(key, ofA(1)))
		require.Equal(t, 2, must(r.Inspect(bounded(t), key))(t).Readers)
	}
}

// A new entry puts off an expiry of the lock that a renewal of Java's has left too short.
func TestG1_TheLockLastsAsLongAsItsEntries(t *testing.T) {
	r := newReadWrites(t)
	for _, ask := range []AcquireRequest{{Key: "k", Owner: ofA(1), Lease: 2 * time.Hour}, {Key: "k", Owner: ofB(1), Lease: time.Hour}} {
		must(r.rw(ask.Owner).Acquire(bounded(t), RWLockAcquireRequest{AcquireRequest: ask}))(t)
		lasts(t, r.s, "k", 2*time.Hour)
		r.s.Do(t, "PEXPIRE", "k", "60000")
	}
}
