package contract

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var operatorCases = []testCase{
	{"Inspect_TellsWhoHoldsAKey", ownRedis, defaults, inspectHolder},
	{"Inspect_OfAKeyThatIsNotOurs", servers | ofLocks, defaults, inspectForeign},
	{"Label_IsShown", servers | ofOneHolder, locktest.Options{Lease: 30 * time.Second, Label: labelled}, labelShown},
	{"Label_OfTheFirstAttempt", servers | ofOneHolder, locktest.Options{Label: labelled}, labelAtFirst},
	{"Label_OfACall", ofOneHolder, locktest.Options{Lease: locktest.Long}, labelOfACall},
	{"ForceUnlock_OwnHolderIsToldAtOnce", anywhere, locktest.Options{Lease: locktest.Long}, forceOwn},
	{"ForceUnlock_OthersAreToldAtTheirRenewal", ofOneHolder, locktest.Options{Lease: 30 * time.Second}, forceOthers},
	{"ForceUnlock_Unanswered", servers, locktest.Options{Lease: locktest.Long}, forceNoReply},
	{"ForceUnlock_WakesWaiters", ofOneHolder, locktest.Options{Lease: locktest.Long}, forceWakes},
	{"ForceUnlock_LeavesAForeignKeyAlone", servers, defaults, forceForeign},
}

func inspectHolder(c *harness) {
	c.free("k")
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(time.Minute))
	c.commands()
	for _, locker := range []locktest.Locker{c.Locker, c.Other} {
		s := locktest.Must(locker.Inspect(c.ctx, "k"))(c.T)
		require.True(c.T, s.Held)
		require.Equal(c.T, l.Owner(), s.Owner)
		require.Equal(c.T, 1, s.Entries)
		require.Positive(c.T, s.Remaining)
		require.LessOrEqual(c.T, s.Remaining, time.Minute)
	}
	c.sends("inspect")
	c.unlock(l)
	c.free("k")
	c.away()
	defer c.back()
	locktest.Await(c.T, func() bool {
		_, err := c.Locker.Inspect(c.ctx, "k") // the first may find the connection dead
		require.Error(c.T, err)
		return errors.Is(err, holdfast.ErrUnavailable)
	})
}

const labelled = "shop \"1\"\n/till 7 of 9, second floor, behind the door that is always shut"

// Inspect, and the errors of calls that do not get the key, show the label of the holder, and
// no other's: through entries, renewals, handovers and grants, and as long as the hold lasts.
func labelShown(c *harness) {
	other := c.Kind.Open(c.T, c.Server.Client(c.T), locktest.Options{Label: "other"})
	shows := func(label string, entries int) {
		c.T.Helper()
		s := locktest.Must(other.Inspect(c.ctx, "k"))(c.T)
		require.Equal(c.T, []any{label, entries}, []any{s.Label, s.Entries})
	}
	quoted := func(label string) string { return "held by " + strconv.Quote(label[:min(len(label), 64)]) }
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	shows(labelled, 1)
	inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
	shows(labelled, 2)
	deadline := l.Deadline()
	locktest.Await(c.T, func() bool { return l.Deadline().After(deadline) }) // renewed
	shows(labelled, 2)
	c.unlock(inner)
	shows(labelled, 1)
	locktest.RequireSentinel(c.T, locktest.ErrOf(other.TryLock(c.ctx, "k")), holdfast.ErrNotAcquired, quoted(labelled)+"…")
	locktest.RequireSentinel(c.T, locktest.ErrOf(other.TryLockFor(c.ctx, "k", c.Kind.Limit())), holdfast.ErrNotAcquired, quoted(labelled))

	next := c.inQueue(other, "k")
	theirs := locktest.Next(c.T, l, next)
	shows("other", 1)
	require.ErrorContains(c.T, locktest.ErrOf(c.Other.TryLock(c.ctx, "k")), quoted("other"))
	after := c.inQueue(c.Locker, "k")
	mine := locktest.Next(c.T, theirs, after)
	shows(labelled, 1)
	c.unlock(mine)
	shows("", 0)
	c.Tidy("k")
	if c.Kind.Permits {
		return
	}

	c.Kind.Give(c.T, c.Server, c.Name("k"), locktest.Java, "1")
	require.ErrorContains(c.T, locktest.ErrOf(c.Locker.TryLock(c.ctx, "k")), "held by another")
	shows("", 1)
}

// A wait that ends before it has tried again names the holder that its first attempt has met.
func labelAtFirst(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	held, letGo := c.hold(c.Proxy.OnRequest, "subscribe")
	ctx, cancel := context.WithCancel(c.ctx)
	waiter := locktest.GoLock(c.Locker, ctx, "k")
	locktest.Within(c.T, held)
	cancel()
	require.ErrorContains(c.T, (<-waiter).Err, "held by "+strconv.Quote(labelled[:64]))
	letGo()
	c.unlock(their)
}

// A call may have a label of its own: for its hold, however many entries that has, and for no other.
func labelOfACall(c *harness) {
	shows := func(label string, entries int) {
		c.T.Helper()
		s := locktest.Must(c.Other.Inspect(c.ctx, "k"))(c.T)
		require.Equal(c.T, []any{label, entries}, []any{s.Label, s.Entries})
	}
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	s := locktest.Must(c.Other.Inspect(c.ctx, "k"))(c.T)
	usual := s.Label
	c.unlock(l)
	c.commands()

	l = locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.Label("its own"))
	c.sends("acquire")
	shows("its own", 1)
	require.ErrorContains(c.T, locktest.ErrOf(c.Other.TryLock(c.ctx, "k")), `held by "its own"`)
	require.Regexp(c.T, `held by (this locker for \S+, as )?"its own"`, locktest.ErrOf(c.Locker.TryLock(c.ctx, "k")).Error())
	inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
	shows("its own", 2)
	c.unlock(inner)
	shows("its own", 1)

	waiter := c.inQueue(c.Other, "k", holdfast.Label("of a waiter"))
	c.unlock(l)
	their := locktest.Got(c.T, waiter)
	shows("of a waiter", 1)
	waiter = c.inQueue(c.Locker, "k", holdfast.Label(""))
	c.unlock(their)
	l = locktest.Got(c.T, waiter)
	shows("", 1)
	c.unlock(l)
	l = locktest.Lock(c.T, c.Locker, c.ctx, "k")
	shows(usual, 1)
	c.unlock(l)
	for name, call := range c.calls(c.ctx, "k", holdfast.Label(strings.Repeat("l", 1025))) {
		err := call()
		require.ErrorIs(c.T, err, holdfast.ErrInvalidArgument, name)
		require.ErrorContains(c.T, err, "Label: label has 1025 bytes", name)
	}
	c.free("k")
}

func inspectForeign(c *harness) {
	c.Kind.Give(c.T, c.Server, c.Name("k"), locktest.Java, "3")
	s := locktest.Must(c.Locker.Inspect(c.ctx, "k"))(c.T)
	require.Equal(c.T, []any{true, c.Kind.Java(), 3}, []any{s.Held, s.Owner, s.Entries})
	require.Negative(c.T, s.Remaining)

	c.Server.Do(c.T, "SET", c.Name("text"), "not a lock")
	_, err := c.Locker.Inspect(c.ctx, "text")
	locktest.RequireSentinel(c.T, err, holdfast.ErrWrongType)
	require.Regexp(c.T, `^holdfast: inspect "text": .*WRONGTYPE`, err.Error())
	_, err = c.Locker.ForceUnlock(c.ctx, "text")
	require.Regexp(c.T, `^holdfast: force-unlock "text": .*WRONGTYPE`, err.Error())
}

func forceOwn(c *harness) {
	held := locktest.Must(c.Locker.ForceUnlock(c.ctx, "k"))(c.T)
	require.False(c.T, held)
	outer := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	inner := locktest.Lock(c.T, c.Locker, outer.Bind(c.ctx), "k")
	c.commands()
	held = locktest.Must(c.Locker.ForceUnlock(c.ctx, "k"))(c.T)
	require.True(c.T, held)
	require.ErrorIs(c.T, outer.Err(), holdfast.ErrLost)
	require.ErrorIs(c.T, inner.Err(), holdfast.ErrLost)
	if c.Kind.Nodes > 0 {
		c.releasedAfterLoss("force_release")
	} else {
		c.sends("force_release")
	}
	c.unlock(locktest.Lock(c.T, c.Other, c.ctx, "k"))
}

func forceOthers(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	held := locktest.Must(c.Other.ForceUnlock(c.ctx, "k"))(c.T)
	require.True(c.T, held)
	next := locktest.Lock(c.T, c.Other, c.ctx, "k")
	c.ended(l, holdfast.ErrLost)
	require.True(c.T, time.Now().Before(l.Deadline()))
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
	c.held(c.Locker, "k")
	c.unlock(next)
}

func forceNoReply(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	c.swallow(1, "force_release")
	require.ErrorIs(c.T, locktest.ErrOf(c.Locker.ForceUnlock(c.ctx, "k")), holdfast.ErrUnknown)
	require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
}

func forceWakes(c *harness) {
	locktest.Lock(c.T, c.Other, c.ctx, "k")
	first := locktest.GoLock(c.Locker, c.ctx, "k")
	c.AwaitWaiters("k", 1)
	c.force(c.Locker, "k")
	c.unlock(locktest.Got(c.T, first))
	c.Tidy("k")
}

func forceForeign(c *harness) {
	for _, command := range [][]string{
		{"SET", c.Name("k"), "not a lock"},
		{"HSET", c.Name("k"), "name", "Ann", "mail", "a@b", "age", "7"},
		{"HSET", c.Name("k"), "visits", "7"},
		append([]string{"HSET", c.Name("k")}, c.Kind.OfAnotherKind()...),
	} {
		c.Server.Do(c.T, command...)
		before := c.Dump()
		locktest.RequireSentinel(c.T, locktest.ErrOf(c.Locker.ForceUnlock(c.ctx, "k")), holdfast.ErrWrongType, "WRONGTYPE")
		require.Equal(c.T, before, c.Dump())
		c.Server.Do(c.T, "DEL", c.Name("k"))
	}
}
