package fair_test

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The interface of all lock kinds, which the suite uses, does not have these options.
func TestF8_OptionsAreRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for want, opts := range map[string][]fair.Option{
		"option is nil":                      {nil},
		"WithLease: lease 0s":                {fair.WithLease(0)},
		"WithStale: lease 99ms":              {fair.WithStale(99 * time.Millisecond)},
		"WithStale: 350400h0m0s is longer":   {fair.WithStale(40 * year)},
		"WithFirstLease: lease 0s":           {fair.WithFirstLease(0)},
		"WithFirstLease: 1s is shorter":      {fair.WithFirstLease(time.Second)},
		"WithFirstLease: 9s is shorter":      {fair.WithFirstLease(9 * time.Second), fair.WithStale(10 * time.Second)},
		"WithLogger: logger is nil":          {fair.WithLogger((*slog.Logger)(nil))},
		"needs WithFencing":                  {fair.WithFenceExpiry(time.Hour)},
		"WithFenceExpiry: -1ms":              {fair.WithFencing(), fair.WithFenceExpiry(-time.Millisecond)},
		"WithFenceExpiry: 1.5ms":             {fair.WithFencing(), fair.WithFenceExpiry(1500 * time.Microsecond)},
		"WithLocalHandover: 200ms is longer": {fair.WithLease(100 * time.Millisecond), fair.WithLocalHandover(200 * time.Millisecond)},
		"WithReplicas: 2 replicas in 0s":     {fair.WithReplicas(2, 0)},
		"WithReplicas: 3s is longer":         {fair.WithReplicas(2, 3*time.Second)},
		"WithPrefix: with the prefix":        {fair.WithPrefix("redisson_lock_queue:")},
		"WithLabel: label has 1025 bytes":    {fair.WithLabel(strings.Repeat("l", 1025))},
		"client is not of a Redis Clus":      {fair.WithShardedPubSub(true)},
	} {
		l, err := fair.New(client, opts...)
		require.Nil(t, l, want)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, fair.ErrInvalidArgument)
	}
	locker := userLocker(t, client, fair.WithStale(10*time.Second)) // the first lease follows
	for want, opt := range map[string]fair.LockOption{
		"option is nil":        nil,
		"FixedLease: lease 0s": fair.FixedLease(0),
		"MaxHold: 0s":          fair.MaxHold(0),
	} {
		l, err := locker.Lock(t.Context(), "k", opt)
		require.Nil(t, l)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, fair.ErrInvalidArgument)
	}
}

const year = 365 * 24 * time.Hour

// The scripts accept every option that New accepts.
func TestF8_LongestOptionsWork(t *testing.T) {
	client := redistest.Start(t).Client(t)
	open := func() *fair.Locker {
		return userLocker(t, client, fair.WithLease(100*year), fair.WithStale(30*year), fair.WithFirstLease(100*year), fair.WithMaxOutage(math.MaxInt64),
			fair.WithFencing(), fair.WithFenceExpiry(time.Duration(math.MaxInt64).Truncate(time.Millisecond)), fair.WithLocalHandover(100*year))
	}
	here, there := open(), open()
	held, err := here.Lock(t.Context(), "k", fair.MaxHold(math.MaxInt64))
	require.NoError(t, err)
	next := make(chan error, 1)
	go func() {
		l, err := there.TryLockFor(t.Context(), "k", math.MaxInt64)
		if err == nil {
			err = l.Unlock(t.Context())
		}
		next <- err
	}()
	locktest.Await(t, func() bool {
		s, err := here.Inspect(t.Context(), "k")
		require.NoError(t, err)
		return s.Waiting == 1 || len(next) > 0
	})
	require.NoError(t, held.Unlock(t.Context()))
	require.NoError(t, <-next)
}
