package scripts

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Readers share, a writer waits for all of them, and readers wait for a writer. The last reader's
// message wakes one, a writer's all, and others are silent.
func TestG1_ReadersShareAndAWriterIsAlone(t *testing.T) {
	r := newReadWrites(t)
	r.shares(ofA(1), ofA(2), ofB(1), ofJ(1))
	r.refused(writer(ofC(1)))
	r.requireEntries("read", ofA(1), ofA(2), ofB(1), ofJ(1))
	r.ends(ofA(1), ofB(1), ofJ(1))
	r.refused(writer(ofC(1)))
	r.requireSaid()
	r.ends(ofA(2))
	r.requireSaid(ReadWriteChannel("k") + " 0")
	require.Empty(t, state(t, r.s))

	r.shares(writer(ofC(1)))
	r.refused(writer(ofA(1)), writer(ofC(2)), ofC(1), ofB(1))
	r.requireEntries("write", writer(ofC(1)))
	r.ends(writer(ofC(1)))
	r.requireSaid(ReadWriteChannel("k") + " 1")
	require.Empty(t, state(t, r.s))
}

// What Redis has of a lock is Redisson's, but for a writer's time-out key and for labels.
func TestLayoutOfReadWriteLocks(t *testing.T) {
	s, _ := start(t)
	n := NewNodeWith(s.Client(t), NodeSettings{Label: "host/1"})
	rw := NewReadWrite(n, clientA)
	for key, braced := range map[string]string{"k": "{k}", "{a}b": "{a}b"} {
		s.Do(t, "FLUSHALL")
		a := ReadWriteAsk{Ask: Ask{key, writer(ofA(1)), 2 * lease}}
		require.True(t, must(rw.Acquire(bounded(t), nil, a))(t).OK)
		a.Owner, a.Beside, a.Lease = ofA(2), a.Owner, lease
		require.Equal(t, Acquired{OK: true}, must(rw.Acquire(bounded(t), nil, a))(t))
		m := s.Do(t, "HGETALL", key)
		require.Equal(t, map[string]string{"mode": "write", writer(ofA(1)): "1", ofA(2): "1"}, must(m.AsStrMap())(t))
		for owner, d := range map[string]time.Duration{writer(ofA(1)): 2 * lease, ofA(2): lease} {
			name := braced + ":" + owner + ":rwlock_timeout:1"
			require.Equal(t, "1 host/1", text(t, s, "GET", name))
			lasts(t, s, name, d)
		}
		lasts(t, s, key, 2*lease)
		require.Len(t, state(t, s), 3)
		require.Equal(t, "redisson_rwlock:"+braced, ReadWriteChannel(key))
	}
}

// A reader whose time-out key has gone is dead, also Java's: whoever asks next removes it, and a
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
	r.s.Do(t, "HSET", "k", "mode", "read")
	require.Zero(t, r.inspects())
	r.s.Do(t, "HSET", "k", "mode", "read")
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

// beside has a reader take the lock beside a writer.
func (r *harness) beside(reader, beside string) Acquired {
	r.t.Helper()
	return must(r.rw(reader).Acquire(bounded(r.t), nil, ReadWriteAsk{Ask: Ask{"k", reader, lease}, Beside: beside}))(r.t)
}

// Java's writer has no time-out key, and lives as long as the lock.
func TestG1_JavasWriter(t *testing.T) {
	r := newReadWrites(t)
	r.s.Do(t, "HSET", "k", "mode", "write", ofJ(1)+":write", "1")
	r.s.Do(t, "PEXPIRE", "k", "60000")
	r.refused(ofA(1), writer(ofA(1)))
	h := r.inspects()
	require.InDelta(t, time.Minute, h.Remaining, float64(slack))
	h.Remaining = 0
	require.Equal(t, Holder{Owner: ofJ(1) + ":write", Entries: 1, Mode: "write"}, h)
}

// A writer may read, and release: others read beside it then, and it is not handed out again.
func TestDowngrade(t *testing.T) {
	r := newReadWrites(t)
	r.wishes("writer", clientC) // it would wait for itself
	r.s.Do(t, "DEL", wishes("k"))
	require.Equal(t, Acquired{Gone: true}, r.beside(ofB(2), writer(ofB(1))), "nobody writes")
	r.shares(writer(ofA(1)))
	r.wishes("writer", clientC)
	require.Equal(t, Acquired{OK: true}, r.beside(ofA(2), writer(ofA(1))))
	require.Equal(t, Acquired{OK: true}, r.beside(ofA(2), writer(ofA(1))), "a repeat")
	require.Equal(t, Acquired{Gone: true}, r.beside(ofB(2), writer(ofB(1))), "the writer is another")
	r.refused(ofB(1), ofA(3), writer(ofB(1)))
	r.ends(writer(ofA(1)))
	r.requireSaid(ReadWriteChannel("k") + " 1")
	r.requireEntries("read", ofA(2))
	r.s.Do(t, "DEL", wishes("k"))
	r.refused(writer(ofB(1)))
	r.shares(ofB(1))
	r.ends(ofA(2), ofB(1))
	require.Empty(t, state(t, r.s))
}

// While a writer waits, later readers wait until it has had its turn, and so do later writers. After
// it, the readers that have waited go before the next writer.
func TestG4_NobodyStarves(t *testing.T) {
	r := newReadWrites(t)
	r.shares(ofA(1))
	require.False(t, r.tries(writer(ofB(1)), wish).OK)
	until(t, func() bool { return r.later() })
	require.False(t, r.tries(writer(ofC(1)), wish).OK)
	require.False(t, r.tries(ofA(2), wish).OK, "later than the writers")
	require.False(t, r.tries(ofB(2), wish).OK)
	r.ends(ofA(1))
	require.False(t, r.tries(ofA(3), wish).OK, "the lock is free, and a writer's")
	r.refused(writer(ofC(1)), writer(ofA(1)))
	require.False(t, r.tries(writer(ofC(1)), wish).OK, "another writer has waited longer")
	r.shares(writer(ofB(1)))
	require.False(t, r.tries(ofC(2), 0).OK)
	r.ends(writer(ofB(1)))
	lasts(t, r.s, wishes("k"), wish)
	require.False(t, r.tries(writer(ofC(3)), wish).OK, "readers of two clients are next")
	require.False(t, r.tries(ofC(2), wish).OK, "a reader that has not waited for a writer")
	r.shares(ofA(4))
	r.ends(ofA(4))
	require.False(t, r.tries(writer(ofC(4)), wish).OK, "one client's are still to come")
	require.False(t, r.tries(ofA(5), wish).OK, "they have had their turn")
	r.shares(ofB(3))
	r.ends(ofB(3))
	r.shares(writer(ofC(5)))
	r.ends(writer(ofC(5)))
	r.shares(ofA(6), ofC(6))
	r.ends(ofA(6), ofC(6))
	require.Empty(t, state(t, r.s))
}

// A wish ends when its client gives it up, which wakes those that let it go first, when its time is
// over, and with the writer's turn if no other waits there.
func TestG4_WishesEnd(t *testing.T) {
	r := newReadWrites(t)
	r.shares(ofA(1))
	require.False(t, r.tries(writer(ofB(1)), wish).OK)
	r.refused(ofA(2))
	require.NoError(t, r.rw(ofA(1)).Withdraw(bounded(t), "k"))
	r.refused(ofA(2))
	r.requireSaid()
	require.NoError(t, r.rw(ofB(1)).Withdraw(bounded(t), "k"))
	r.requireSaid(ReadWriteChannel("k") + " 1")
	r.shares(ofA(2))
	r.requireSaid()

	require.False(t, r.tries(writer(ofB(2)), wish).OK)
	lasts(t, r.s, wishes("k"), wish)
	r.s.Do(t, "HSET", wishes("k"), "writer "+clientB, fmt.Sprintf("%[1]d %[1]d", serverMillis(t, r.s)))
	r.shares(ofA(3))
	r.ends(ofA(1), ofA(2), ofA(3))

	r.shares(writer(ofB(3)))
	require.True(t, r.ended(ReadWriteEnding{Ending: Ending{Key: "k", Owner: writer(ofB(3))}, Wish: wish}).Ours)
	r.refused(ofA(4))
	r.shares(writer(ofB(4)))
	require.NoError(t, r.rw(ofB(4)).Withdraw(bounded(t), "k"))
	require.False(t, r.tries(ofA(4), wish).OK)
	r.ends(writer(ofB(4)))
	lasts(t, r.s, wishes("k"), wish) // of the reader alone, which is next
	r.shares(ofA(4))
	require.Zero(t, number(t, r.s, "EXISTS", wishes("k")))
}

// Those whose turn it is have a third of a wish to take a lock that is free, however many there are,
// and however often they say so.
func TestG4_AFreeLockDoesNotWaitForLong(t *testing.T) {
	r := newReadWrites(t)
	until := func() int64 { return number(t, r.s, "HGET", wishes("k"), "free") }
	r.shares(ofA(1))
	require.False(t, r.tries(writer(ofB(1)), wish).OK)
	require.False(t, r.tries(ofC(1), wish).OK)
	require.Zero(t, number(t, r.s, "HEXISTS", wishes("k"), "free"), "it is not")
	r.ends(ofA(1))
	r.refused(ofC(2))
	require.Zero(t, number(t, r.s, "HEXISTS", wishes("k"), "free"), "a caller that does not wait cannot know how long")
	before := serverMillis(t, r.s)
	a := r.tries(ofC(3), wish)
	require.False(t, a.OK)
	require.LessOrEqual(t, a.Remaining, wish/3, "when to ask again")
	first := until()
	require.GreaterOrEqual(t, first, before+wish.Milliseconds()/3)
	require.False(t, r.tries(ofC(4), wish).OK)
	require.Equal(t, first, until())

	passes := func() { r.s.Do(t, "HSET", wishes("k"), "free", decimal(serverMillis(t, r.s)-1)) }
	passes()
	r.shares(ofC(5))
	require.Zero(t, number(t, r.s, "HEXISTS", wishes("k"), "free"))
	require.False(t, r.tries(ofC(6), wish).OK, "not free: the writer keeps its turn")
	r.ends(ofC(5))
	require.False(t, r.tries(ofC(7), wish).OK, "and has as long again")
	r.shares(writer(ofB(2)))
	require.Zero(t, number(t, r.s, "HEXISTS", wishes("k"), "free"), "it came")
	r.ends(writer(ofB(2)))

	r.wishes("next", clientC)
	require.False(t, r.tries(writer(ofA(2)), wish).OK)
	r.s.Do(t, "HSET", wishes("k"), "free", decimal(serverMillis(t, r.s)+wish.Milliseconds()+60000)) // before the clock jumped back
	require.False(t, r.tries(writer(ofA(3)), wish).OK)
	require.Less(t, until(), serverMillis(t, r.s)+wish.Milliseconds())
	passes()
	r.shares(writer(ofA(4)))
}

// later says whether the server's clock has moved on since its last whole millisecond.
func (r *harness) later() bool {
	before := serverMillis(r.t, r.s)
	return serverMillis(r.t, r.s) > before
}

// A late acquire of an owner that was given up takes nothing, and a late release ends no other hold.
func TestG5_LateCallsOfReadersAndWriters(t *testing.T) {
	r := newReadWrites(t)
	for _, owner := range []string{ofA(1), writer(ofA(1))} {
		r.clear()
		for range 2 {
			require.False(t, r.ended(ReadWriteEnding{Ending: Ending{Key: "k", Owner: owner, Doubt: true}}).Ours)
			require.Equal(t, Acquired{Gone: true}, r.tries(owner, wish))
		}
		r.shares(ofB(1), ofA(2))
		for _, stranger := range []string{owner, ofB(2), writer(ofB(1)), "mode", ofB(1)[:len(ofB(1))-1]} {
			h := ReadWriteEnding{Ending: Ending{Key: "k", Owner: stranger, LastFence: 1}}
			require.Zero(t, must(r.rw(ofA(1)).End(bounded(t), h))(t))
		}
		r.requireEntries("read", ofB(1), ofA(2))
	}
	r.requireSaid()
}

// A renewal needs the entry and the time-out key, renews each by itself, never shortens the lease
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
	must(r.rw(ofA(1)).Acquire(bounded(t), nil, ReadWriteAsk{Ask: Ask{"l", writer(ofA(1)), time.Second}}))(t)
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	keys := []string{"k", "k", "k", "l", "string", "free"}
	owners := []string{ofA(1), ofC(1), ofA(2), writer(ofA(1)), ofA(1), ofA(1)}
	answers := make([]Answer, len(keys))
	require.NoError(t, r.rw(ofA(1)).Renew(bounded(t), lease, keys, owners, answers))
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs, Renewed, NotOurs, NotOurs}, answers)
	lasts(t, r.s, "k", 90*time.Second)
	lasts(t, r.s, timeout("k", ofA(1)), lease)
	lasts(t, r.s, timeout("l", writer(ofA(1))), lease)
	lasts(t, r.s, "l", lease)
	require.Zero(t, number(t, r.s, "EXISTS", timeout("k", ofC(1))))

	r.requireOOM(writer(ofB(7)), "free")
	r.ends(ofA(1), ofB(1)) // Redis has room for less
	r.requireEntries("")
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "0")
}

func (r *harness) requireOOM(owner, key string) {
	r.t.Helper()
	_, err := r.rw(owner).Acquire(bounded(r.t), nil, ReadWriteAsk{Ask: Ask{key, owner, lease}})
	require.Equal(r.t, Unavailable, OutcomeOf(err), err)
	require.Zero(r.t, number(r.t, r.s, "EXISTS", key))
}

// Nested entries are counted, and Inspect tells them, with the label of the owner.
func TestRecountAndInspectReadWriteLocks(t *testing.T) {
	r := newReadWrites(t)
	label := "a label"
	for _, owner := range []string{ofA(1), writer(ofA(1))} {
		r.clear()
		r.shares(owner)
		until := expiry(t, r.s, timeout("k", owner))
		require.True(t, must(r.rw(owner).Recount(bounded(t), "k", owner, Entries{3, &label}))(t))
		require.Equal(t, until, expiry(t, r.s, timeout("k", owner)))
		h, mode := r.inspects(), "read"
		if owner != ofA(1) {
			mode = "write"
			require.Equal(t, errs.HeldBy(label), r.tries(ofB(1), 0).Why)
		}
		require.InDelta(t, lease, h.Remaining, float64(slack))
		h.Remaining = 0
		readers := map[string]int{"read": 1}[mode]
		require.Equal(t, Holder{Owner: owner, Entries: 3, Label: label, Mode: mode, Readers: readers}, h)
		require.False(t, must(r.rw(owner).Recount(bounded(t), "k", ofB(1), Entries{Count: 2}))(t))
		r.dies(owner)
		require.False(t, must(r.rw(owner).Recount(bounded(t), "k", owner, Entries{Count: 2}))(t))
	}
	r.clear()
	r.shares(ofA(1), ofB(1), ofC(1))
	require.Equal(t, 3, r.inspects().Readers)
	all := must(r.rw(ofA(1)).InspectEach(bounded(t), []string{"k", "free", "plain"}))(t)
	require.Equal(t, 3, all[0].Value.Readers)
	require.Zero(t, all[1].Value)
	require.True(t, must(r.rw(ofB(1)).ForceRelease(bounded(t), "k"))(t))
	require.Empty(t, state(t, r.s))
	r.requireSaid(ReadWriteChannel("k") + " 1")
	require.False(t, must(r.rw(ofB(1)).ForceRelease(bounded(t), "k"))(t))
	r.requireSaid()
}

// A writer's fence is larger than all earlier ones, and a reader's lies between those of the
// writers before and after it. Beside its writer, it has none of its own.
func TestG10_FencesOfReadersAndWriters(t *testing.T) {
	r := newReadWrites(t)
	last := int64(0)
	fenced := func(owner string, reserve int64) Acquired {
		a := ReadWriteAsk{Ask: Ask{"k", owner, lease}}
		return must(r.rw(owner).Acquire(bounded(t), &Fencing{Reserve: reserve, Expiry: time.Hour}, a))(t)
	}
	for i := range 20 {
		a := fenced(writer(ofA(i)), 1000)
		require.Greater(t, a.Fence, last)
		used := a.Fence + 5
		require.Equal(t, Acquired{OK: true}, r.beside(ofB(i), writer(ofA(i))))
		require.True(t, r.ended(ReadWriteEnding{Ending: Ending{Key: "k", Owner: writer(ofA(i)), LastFence: used}}).Ours)
		require.Equal(t, decimal(used), text(t, r.s, "GET", counter("k")), "the rest is given back")
		b, c := fenced(ofC(i), 1), fenced(ofC(100+i), 1)
		require.Greater(t, b.Fence, used)
		last = c.Fence
		require.Greater(t, last, b.Fence)
		r.ends(ofC(i), ofC(100+i), ofB(i))
	}
}

// rlock and fair leave a read/write lock alone, and a read/write lock theirs.
func TestF33_KindsDoNotMix(t *testing.T) {
	r := newReadWrites(t)
	for _, owner := range []string{ofA(1), writer(ofA(1))} {
		r.clear()
		r.shares(owner)
		requireRefused(t, "WRONGTYPE", errOf(r.node.Acquire(bounded(t), "k", ofB(1), lease)))
		requireRefused(t, "WRONGTYPE", errOf(r.of(ofB(1)).Acquire(bounded(t), "k", ofB(1), lease)))
		r.clear()
		require.True(t, r.acquire(ofB(1)).OK)
		_, err := r.rw(owner).Acquire(bounded(t), nil, ReadWriteAsk{Ask: Ask{"k", owner, lease}})
		requireRefused(t, "WRONGTYPE", err)
	}
}

// While the slot of a lock moves, the time-out key of a reader may be at either node. No call takes
// it for dead there: neither a writer's acquire, nor a release, nor Inspect, from any side.
func TestG1_ClusterSlotOfAReaderMoves(t *testing.T) {
	redistest.NeedRedis7(t, "6.2 answers ASK")
	c, n := onCluster(t, 2, 0)
	r := NewReadWrite(n, clientA)
	owners := []string{ofA(1), ofA(2)}
	all := []string{"k", timeout("k", owners[0]), timeout("k", owners[1]), wishes("k")}
	for at := range all {
		for _, owner := range owners {
			require.True(t, must(r.Acquire(bounded(t), nil, ReadWriteAsk{Ask: Ask{"k", owner, time.Hour}}))(t).OK)
		}
		require.False(t, must(r.Acquire(bounded(t), nil, ReadWriteAsk{Ask: Ask{"k", writer(ofA(4)), lease}, Wish: wish}))(t).OK)
		slot, to := moving(t, c, "k")
		for moved := range len(all) + 1 {
			if moved > 0 {
				c.MoveKeys(t, slot, to, all[(at+moved-1)%len(all)])
			}
			about := fmt.Sprint(at, moved)
			_, err := r.Acquire(bounded(t), nil, ReadWriteAsk{Ask: Ask{"k", writer(ofA(3)), lease}})
			require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			_, err = r.End(bounded(t), ReadWriteEnding{Ending: Ending{Key: "k", Owner: owners[0]}})
			require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			_, err = r.Inspect(bounded(t), "k")
			require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			answers := make([]Answer, 2)
			if err = r.Renew(bounded(t), time.Hour, []string{"k", "k"}, owners, answers); err != nil {
				require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", about, err)
			}
			require.NotContains(t, answers, NotOurs, about)
		}
		c.EndMigration(t, slot, to)
		require.NoError(t, r.Withdraw(bounded(t), "k"))
		a := must(r.Acquire(bounded(t), nil, ReadWriteAsk{Ask: Ask{"k", writer(ofA(3)), lease}}))(t)
		require.False(t, a.OK)
		for _, owner := range owners {
			require.True(t, must(r.End(bounded(t), ReadWriteEnding{Ending: Ending{Key: "k", Owner: owner}}))(t).Ours)
		}
	}
}

// The names of a lock share its slot, also those that no call declares.
func TestClusterNamesOfReadWriteLocks(t *testing.T) {
	for _, key := range []string{"k", "{tag}k", "k{tag}", "a{b}c{d}"} {
		for _, name := range []string{timeout(key, ofA(1)), wishes(key), witness(key), ReadWriteChannel(key)} {
			require.Equal(t, cluster.Slot(key), cluster.Slot(name), name)
		}
	}
	c, n := onCluster(t, 2, 0)
	r := NewReadWrite(n, clientA)
	for i := range 20 {
		key := fmt.Sprint("k", i)
		for _, owner := range []string{ofA(1), ofA(2), ofA(3)} {
			require.True(t, must(r.Acquire(bounded(t), nil, ReadWriteAsk{Ask: Ask{key, owner, lease}}))(t).OK)
		}
		c.Owner(t, key).Do(t, "DEL", timeout(key, ofA(1)))
		require.Equal(t, 2, must(r.Inspect(bounded(t), key))(t).Readers)
	}
}
