package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// Readers share, a writer waits for all of them, and readers wait for a writer, but for one beside it, with which
// others read when it has released. The last reader's message wakes one, a writer's all, and others are silent.
func TestG1_ReadersShareAndAWriterIsAlone(t *testing.T) {
	r := newReadWrites(t)
	r.shares(ofA(1), ofA(2), ofB(1), ofJ(1))
	r.refused(writer(ofC(1)))
	r.requireEntries("read", ofA(1), ofA(2), ofB(1), ofJ(1))
	r.ends(ofA(1), ofB(1), ofJ(1))
	r.refused(writer(ofC(1)))
	r.requireSaid()
	r.ends(ofA(2))
	r.requireSaid(scripts.RWLockChannel("k") + " 0")
	require.Equal(t, AcquireReply{Gone: true}, r.beside(ofB(2), writer(ofB(1))), "nobody writes")
	require.Empty(t, state(t, r.s))

	r.shares(writer(ofC(1)))
	r.wishes("writer", clientB) // for which the reader beside it does not wait
	for range 2 {               // repeated
		require.Equal(t, AcquireReply{OK: true}, r.beside(ofC(2), writer(ofC(1))))
	}
	require.Equal(t, AcquireReply{Gone: true}, r.beside(ofB(2), writer(ofB(1))), "the writer is another")
	r.refused(writer(ofA(1)), writer(ofC(3)), ofC(1), ofB(1))
	r.requireEntries("write", writer(ofC(1)), ofC(2))
	r.ends(writer(ofC(1)))
	r.requireSaid(scripts.RWLockChannel("k") + " 1")
	r.s.Do(t, "DEL", wishes("k"))
	r.refused(writer(ofA(1)))
	r.shares(ofB(1))
	r.ends(ofC(2), ofB(1))
	require.Empty(t, state(t, r.s))
}

// What Redis has of a lock is Redisson's, but for a writer's timeout key and for labels.
func TestLayoutOfReadWriteLocks(t *testing.T) {
	s, _ := start(t)
	n := NewRedis(s.Client(t), RedisSettings{Label: "host/1"})
	rw := NewRWLock(n, clientA)
	for key, braced := range map[string]string{"k": "{k}", "{a}b": "{a}b"} {
		s.Do(t, "FLUSHALL")
		a := RWLockAcquireRequest{AcquireRequest: AcquireRequest{Key: key, Owner: writer(ofA(1)), Lease: 2 * lease}}
		require.True(t, must(rw.Acquire(bounded(t), a))(t).OK)
		a.Owner, a.Beside, a.Lease = ofA(2), a.Owner, lease
		require.Equal(t, AcquireReply{OK: true}, must(rw.Acquire(bounded(t), a))(t))
		m := s.Do(t, "HGETALL", key)
		require.Equal(t, map[string]string{"mode": "write", writer(ofA(1)): "1", ofA(2): "1"}, must(m.AsStrMap())(t))
		for owner, d := range map[string]time.Duration{writer(ofA(1)): 2 * lease, ofA(2): lease} {
			name := braced + ":" + owner + ":rwlock_timeout:1"
			require.Equal(t, "1 host/1", text(t, s, "GET", name))
			lasts(t, s, name, d)
		}
		lasts(t, s, key, 2*lease)
		require.Len(t, state(t, s), 3)
		require.Equal(t, "redisson_rwlock:"+braced, scripts.RWLockChannel(key))
	}
}

// Java's writer has no timeout key, and lives as long as the lock.
func TestG1_JavasWriter(t *testing.T) {
	r := newReadWrites(t)
	r.s.Do(t, "HSET", "k", "mode", "write", ofJ(1)+":write", "1")
	r.s.Do(t, "PEXPIRE", "k", "60000")
	r.refused(ofA(1), writer(ofA(1)))
	h := r.inspects()
	require.InDelta(t, time.Minute, h.Remaining, float64(slack))
	h.Remaining = 0
	require.Equal(t, holdfast.Status{Held: true, Owner: ofJ(1) + ":write", Entries: 1, Mode: "write"}, h)
}

// Nested entries are counted, and Inspect tells them, with the label of the owner.
func TestSetEntriesAndInspectReadWriteLocks(t *testing.T) {
	r := newReadWrites(t)
	label := "a label"
	for _, owner := range []string{ofA(1), writer(ofA(1))} {
		r.clear()
		r.shares(owner)
		until := expiry(t, r.s, timeout("k", owner))
		require.True(t, must(r.rw(owner).SetEntries(bounded(t), "k", owner, Entries{3, &label}))(t))
		require.Equal(t, until, expiry(t, r.s, timeout("k", owner)))
		h, mode := r.inspects(), "read"
		if owner != ofA(1) {
			mode = "write"
			require.Equal(t, errs.HeldBy(label), r.tries(ofB(1), 0).Why)
		}
		require.InDelta(t, lease, h.Remaining, float64(slack))
		h.Remaining = 0
		readers := map[string]int{"read": 1}[mode]
		require.Equal(t, holdfast.Status{Held: true, Owner: owner, Entries: 3, Label: label, Mode: mode, Readers: readers}, h)
		require.False(t, must(r.rw(owner).SetEntries(bounded(t), "k", ofB(1), Entries{Count: 2}))(t))
		r.dies(owner)
		require.False(t, must(r.rw(owner).SetEntries(bounded(t), "k", owner, Entries{Count: 2}))(t))
	}
	r.clear()
	r.shares(ofA(1), ofB(1), ofC(1))
	require.Equal(t, 3, r.inspects().Readers)
	all := must(r.rw(ofA(1)).InspectEach(bounded(t), []string{"k", "free", "plain"}))(t)
	require.Equal(t, 3, all[0].Value.Readers)
	require.Zero(t, all[1].Value)
	require.True(t, must(r.rw(ofB(1)).ForceRelease(bounded(t), "k"))(t))
	require.Empty(t, state(t, r.s))
	r.requireSaid(scripts.RWLockChannel("k") + " 1")
	require.False(t, must(r.rw(ofB(1)).ForceRelease(bounded(t), "k"))(t))
	r.requireSaid()
}
