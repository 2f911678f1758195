package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// While a writer waits, later readers wait until it has had its turn, and so do later writers. After
// it, the readers that have waited go before the next writer.
func TestG4_NobodyStarves(t *testing.T) {
	r := newReadWrites(t)
	r.shares(ofA(1))
	require.False(t, r.tries(writer(ofB(1)), wish).OK)
	until(t, func() bool { return r.later() })
	require.Equal(t, errs.HeldBy(""), r.tries(writer(ofC(1)), wish).Why)
	require.NoError(t, r.tries(ofA(2), wish).Why, "readers have it, and this one comes later than the writers")
	require.False(t, r.tries(ofB(2), wish).OK)
	r.ends(ofA(1))
	free := r.tries(ofA(3), wish)
	require.Equal(t, AcquireReply{Remaining: free.Remaining}, free, "the lock is free, and a writer's")
	require.Positive(t, free.Remaining)
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
	r.requireSaid(scripts.RWLockChannel("k") + " 1")
	r.shares(ofA(2))
	r.requireSaid()

	require.False(t, r.tries(writer(ofB(2)), wish).OK)
	lasts(t, r.s, wishes("k"), wish)
	r.s.Do(t, "HSET", wishes("k"), "writer "+clientB, fmt.Sprintf("%[1]d %[1]d", serverMillis(t, r.s)))
	r.shares(ofA(3))
	r.ends(ofA(1), ofA(2), ofA(3))

	r.shares(writer(ofB(3)))
	require.True(t, r.ended(RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: writer(ofB(3))}, Wish: wish}).Ours)
	r.refused(ofA(4))
	r.shares(writer(ofB(4)))
	require.NoError(t, r.rw(ofB(4)).Withdraw(bounded(t), "k"))
	require.False(t, r.tries(ofA(4), wish).OK)
	r.ends(writer(ofB(4)))
	lasts(t, r.s, wishes("k"), wish) // of the reader alone, which is next
	r.shares(ofA(4))
	require.Zero(t, number(t, r.s, "EXISTS", wishes("k")))
	r.ends(ofA(4))

	r.s.Do(t, "HSET", wishes("k"), "reader dead", "1 1")
	r.shares(writer(ofA(5)))
	r.ends(writer(ofA(5)))
	require.Empty(t, state(t, r.s))
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

// later reports whether the server's clock has moved on since its last whole millisecond.
func (r *harness) later() bool {
	before := serverMillis(r.t, r.s)
	return serverMillis(r.t, r.s) > before
}

// A wish from before the clock has jumped back counts from now on. That of a caller with a wish of a
// millisecond is refused as any other.
func TestG4_WishesAndTheClock(t *testing.T) {
	r := newReadWrites(t)
	r.shares(ofA(1))
	r.s.Do(t, "HSET", wishes("k"), "writer "+clientB, fmt.Sprintf("%d %d", serverMillis(t, r.s)+30_000, serverMillis(t, r.s)+50_000))
	require.False(t, r.tries(writer(ofB(1)), wish).OK) // it renews its wish
	until(t, func() bool { return r.later() })
	require.False(t, r.tries(writer(ofC(1)), wish).OK)
	r.ends(ofA(1))
	require.False(t, r.tries(writer(ofC(1)), time.Millisecond).OK)
	r.shares(writer(ofB(1)))
}
