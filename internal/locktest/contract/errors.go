package contract

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

var errorCases = []testCase{
	{"Errors_NameTheKey", defaults, errorsNameTheKey},
}

// Errors name the key, and say if this locker itself has it: a caller that has forgotten a
// bound context waits for itself.
func errorsNameTheKey(c *harness) {
	mine := Lock(c.T, c.Locker, c.ctx, "k")
	_, err := c.Other.TryLock(c.ctx, "k")
	require.Regexp(c.T, `^holdfast: lock "k": not acquired: held by (another|"[^"]+/\d+")(: \d of \d nodes said yes.*)?$`, err.Error())
	here := regexp.MustCompile(`^holdfast: lock "k": not acquired: held by this locker for [0-9.]+m?s$`)
	for name, call := range map[string]func() (*holdfast.Lease, error){
		"TryLock":    func() (*holdfast.Lease, error) { return c.Locker.TryLock(c.ctx, "k") },
		"TryLockFor": func() (*holdfast.Lease, error) { return c.Locker.TryLockFor(c.ctx, "k", time.Millisecond) },
		"WaitAtMost": func() (*holdfast.Lease, error) {
			return c.Locker.Lock(c.ctx, "k", holdfast.WaitAtMost(time.Millisecond))
		},
	} {
		_, err := call()
		require.ErrorIs(c.T, err, holdfast.ErrNotAcquired, name)
		require.Regexp(c.T, here, err.Error(), name)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	waiter := c.queueWith(ctx, c.Locker, "k")
	cancel(errors.New("mine"))
	require.Regexp(c.T, `^holdfast: lock "k": not acquired: held by this locker for \S+: context canceled: mine$`, (<-waiter).Err.Error())

	bound := mine.Bind(c.ctx)
	c.unlock(mine)
	require.EqualError(c.T, mine.Err(), `holdfast: lease of "k": lease already released`)
	require.EqualError(c.T, mine.Unlock(c.ctx), `holdfast: unlock "k": lease already released`)
	_, err = c.Locker.Lock(bound, "k")
	require.ErrorContains(c.T, err, `holdfast: lock "k": `)

	lost := Lock(c.T, c.Locker, c.ctx, "k")
	bound = lost.Bind(c.ctx)
	_, err = c.Locker.ForceUnlock(c.ctx, "k")
	require.NoError(c.T, err)
	require.EqualError(c.T, context.Cause(bound), `holdfast: lease of "k": lease lost: force-unlocked`)
	require.EqualError(c.T, lost.Unlock(c.ctx), `holdfast: unlock "k": lease lost: force-unlocked`)

	require.EqualError(c.T, c.Locker.Do(c.ctx, "k", nil), `holdfast: lock "k": Do: function is nil`)
}
