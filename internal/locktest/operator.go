package locktest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

var operatorCases = []contractCase{
	{"Inspect_TellsWhoHoldsAKey", defaults, inspectHolder},
	{"ForceUnlock_OwnHolderIsToldAtOnce", Options{Lease: long}, forceOwn},
	{"ForceUnlock_OthersAreToldAtTheirRenewal", Options{Lease: 3 * time.Second}, forceOthers},
	{"ForceUnlock_Unanswered", Options{Lease: long}, forceNoReply},
	{"ForceUnlock_WakesWaiters", Options{Lease: long}, forceWakes},
	{"ForceUnlock_LeavesAForeignKeyAlone", defaults, forceForeign},
}

func inspectHolder(c *contractRig) {
	c.free("k")
	l := lock(c.t, c.locker, c.ctx, "k", holdfast.FixedLease(time.Minute))
	c.commands()
	for _, who := range []holdfast.Locker{c.locker, c.other} {
		s, err := who.Inspect(c.ctx, "k")
		require.NoError(c.t, err)
		require.True(c.t, s.Held)
		require.Equal(c.t, l.Owner(), s.Owner)
		require.Equal(c.t, 1, s.Entries)
		require.Positive(c.t, s.Remaining)
		require.LessOrEqual(c.t, s.Remaining, time.Minute)
	}
	require.Equal(c.t, []string{"inspect"}, c.commands())
	c.unlock(l)
	c.free("k")

	c.server.Do(c.t, "HSET", "k", java, "3")
	s, err := c.locker.Inspect(c.ctx, "k")
	require.NoError(c.t, err)
	require.Equal(c.t, []any{true, java, 3}, []any{s.Held, s.Owner, s.Entries})
	require.Negative(c.t, s.Remaining)

	c.server.Do(c.t, "SET", "text", "not a lock")
	_, err = c.locker.Inspect(c.ctx, "text")
	require.Error(c.t, err)
	require.False(c.t, isOurs(err))
	c.away()
	await(c.t, func() bool {
		_, err := c.locker.Inspect(c.ctx, "k") // the first may find the connection dead
		require.Error(c.t, err)
		return errors.Is(err, holdfast.ErrUnavailable)
	})
}

func forceOwn(c *contractRig) {
	held, err := c.locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.t, err)
	require.False(c.t, held)
	outer := lock(c.t, c.locker, c.ctx, "k")
	inner := lock(c.t, c.locker, outer.Bind(c.ctx), "k")
	c.commands()
	held, err = c.locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.t, err)
	require.True(c.t, held)
	require.ErrorIs(c.t, outer.Err(), holdfast.ErrLost)
	require.ErrorIs(c.t, inner.Err(), holdfast.ErrLost)
	if c.kind.Nodes > 0 {
		c.releasedAfterLoss("force_release")
	} else {
		require.Equal(c.t, []string{"force_release"}, c.commands())
	}
	c.unlock(lock(c.t, c.other, c.ctx, "k"))
}

func forceOthers(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	held, err := c.other.ForceUnlock(c.ctx, "k")
	require.NoError(c.t, err)
	require.True(c.t, held)
	next := lock(c.t, c.other, c.ctx, "k")
	c.ended(l, holdfast.ErrLost)
	require.True(c.t, time.Now().Before(l.Deadline()))
	require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
	c.held(c.locker, "k")
	c.unlock(next)
}

func forceNoReply(c *contractRig) {
	l := lock(c.t, c.locker, c.ctx, "k")
	c.swallow(1, "force_release")
	_, err := c.locker.ForceUnlock(c.ctx, "k")
	require.ErrorIs(c.t, err, holdfast.ErrUnknown)
	require.ErrorIs(c.t, l.Unlock(c.ctx), holdfast.ErrLost)
}

func forceWakes(c *contractRig) {
	lock(c.t, c.other, c.ctx, "k")
	first := lockAside(c.locker, c.ctx, "k")
	c.awaitWaiters("k", 1)
	_, err := c.locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.t, err)
	c.unlock(got(c.t, first))
	c.tidy("k")
}

func forceForeign(c *contractRig) {
	for _, command := range [][]string{
		{"SET", "k", "not a lock"},
		{"HSET", "k", "name", "Ann", "mail", "a@b", "age", "7"},
		{"HSET", "k", "visits", "7"},
		{"HSET", "k", "mode", "write", java + ":write", "1"},
	} {
		c.server.Do(c.t, command...)
		before := c.dump()
		_, err := c.locker.ForceUnlock(c.ctx, "k")
		require.ErrorContains(c.t, err, "WRONGTYPE")
		require.False(c.t, isOurs(err))
		require.Equal(c.t, before, c.dump())
		c.server.Do(c.t, "DEL", "k")
	}
}
