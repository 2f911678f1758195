package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// The bodies of these functions are the code of docs/unavailable.md.

func failClosed(ctx context.Context, locker holdfast.Locker, work func(context.Context) error) error {
	began := false
	err := locker.Do(ctx, "shop:sku:42", func(ctx context.Context) error {
		began = true
		return work(ctx)
	}, holdfast.WaitAtMost(time.Second))
	if err != nil && !began {
		return fmt.Errorf("nothing was done, try again later: %w", err)
	}
	return err
}

func failOpen(ctx context.Context, locker holdfast.Locker, local *sync.Mutex, work func(context.Context) error) error {
	local.Lock() // always, and first: callers of this process are kept apart in any case
	defer local.Unlock()
	lease, err := locker.TryLockFor(ctx, "shop:sku:42", 200*time.Millisecond)
	switch {
	case err == nil:
		defer lease.Unlock(ctx)
	case ctx.Err() == nil && (errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrUnknown)):
		// Redis is unavailable, and other processes may be in work as well.
	default:
		return err
	}
	return work(ctx) // not bound to the lease: work goes on if Redis fails now
}

func shedLoad(ctx context.Context, locker holdfast.Locker, work func(context.Context) error) error {
	err := locker.Do(ctx, "shop:sku:42", work, holdfast.WaitAtMost(10*time.Second))
	if errors.Is(err, holdfast.ErrTooManyWaiters) {
		return fmt.Errorf("busy, try again in some seconds: %w", err) // immediately, without a call to Redis
	}
	return err
}

func TestDocsRecipesAreThoseOfTheTests(t *testing.T) {
	recipes := goBlocks(t, "docs/unavailable.md")
	require.Len(t, recipes, 3)
	for _, r := range recipes {
		body := strings.ReplaceAll("\n"+strings.TrimSpace(r.code), "\n", "\n\t")
		require.Contains(t, strings.ReplaceAll(readFile(t, "recipes_test.go"), "\n\n", "\n\t\n"), " error {"+body+"\n}\n")
	}
}

func TestF22_RecipesForAnUnavailableRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const maxWaiters = 3
	locker := locktest.Opened(rlock.New(server.Client(t), holdfast.WithMaxWaiters(maxWaiters)))(t)
	var local sync.Mutex
	done := 0
	work := func(context.Context) error { done++; return nil }
	both := func() (closed, open error) {
		return failClosed(t.Context(), locker, work), failOpen(t.Context(), locker, &local, work)
	}
	served := func() { // in the second that they wait, a busy machine may not get so far
		require.Eventually(t, func() bool { return errors.Join(both()) == nil }, redistest.Patience, time.Millisecond)
	}
	served()
	done = 2

	server.Pause()
	closed, open := both()
	require.ErrorIs(t, closed, holdfast.ErrUnknown)
	require.ErrorContains(t, closed, "nothing was done")
	require.NoError(t, open)
	require.Equal(t, 3, done)
	server.Resume()

	server.Kill()
	closed, open = both()
	require.ErrorIs(t, closed, holdfast.ErrUnavailable)
	require.ErrorContains(t, closed, "nothing was done")
	require.NoError(t, open)
	require.Equal(t, 4, done)

	const callers = 3 * maxWaiters
	results := make(chan error, callers)
	for range callers {
		go func() { results <- shedLoad(t.Context(), locker, work) }()
	}
	for range callers - maxWaiters {
		err := <-results
		locktest.RequireSentinel(t, err, holdfast.ErrTooManyWaiters, "busy")
	}
	server.Restart()
	for range maxWaiters {
		require.NoError(t, <-results)
	}
	require.Equal(t, 4+maxWaiters, done)
	served()
	require.GreaterOrEqual(t, done, 4+maxWaiters+2)
}
