package fair_test

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The interface of all lock kinds, which the suite uses, does not have these options.
func TestF8_OptionsAreRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for want, opts := range map[string][]holdfast.Option{
		"option is nil":                        {nil},
		"WithLease: 0s":                        {holdfast.WithLease(0)},
		"WithWaiterTTL: 99ms":                  {fair.WithWaiterTTL(99 * time.Millisecond)},
		"WithWaiterTTL: 350400h0m0s is longer": {fair.WithWaiterTTL(40 * year)},
		"WithGrantLease: 0s":                   {fair.WithGrantLease(0)},
		"WithGrantLease: 1s is shorter":        {fair.WithGrantLease(time.Second)},
		"WithGrantLease: 9s is shorter":        {fair.WithGrantLease(9 * time.Second), fair.WithWaiterTTL(10 * time.Second)},
		"WithLogger: logger is nil":            {holdfast.WithLogger((*slog.Logger)(nil))},
		"needs WithFencing":                    {holdfast.WithFenceExpiry(time.Hour)},
		"WithFenceExpiry: -1ms":                {holdfast.WithFencing(), holdfast.WithFenceExpiry(-time.Millisecond)},
		"WithFenceExpiry: 1.5ms":               {holdfast.WithFencing(), holdfast.WithFenceExpiry(1500 * time.Microsecond)},
		"WithLocalHandover: 200ms is longer":   {holdfast.WithLease(100 * time.Millisecond), holdfast.WithLocalHandover(200 * time.Millisecond)},
		"WithReplicas: 2 replicas in 0s":       {holdfast.WithReplicas(2, 0)},
		"WithReplicas: 3s is longer":           {holdfast.WithReplicas(2, 3*time.Second)},
		"WithPrefix: with the prefix":          {holdfast.WithPrefix("redisson_lock_queue:")},
		"WithLabel: label has 1025 bytes":      {holdfast.WithLabel(strings.Repeat("l", 1025))},
		"client is not of a Redis Clus":        {holdfast.WithShardedPubSub(true)},
	} {
		l, err := fair.New(client, opts...)
		require.Nil(t, l, want)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	locker := userLocker(t, client, fair.WithWaiterTTL(10*time.Second)) // the grant lease follows
	for want, opt := range map[string]holdfast.LockOption{
		"option is nil":  nil,
		"FixedLease: 0s": holdfast.FixedLease(0),
		"MaxHold: 0s":    holdfast.MaxHold(0),
	} {
		l, err := locker.Lock(t.Context(), "k", opt)
		require.Nil(t, l)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
}

const year = 365 * 24 * time.Hour

// The scripts accept every option that New accepts.
func TestF8_LongestOptionsWork(t *testing.T) {
	client := redistest.Start(t).Client(t)
	open := func() *fair.Locker {
		return userLocker(t, client, holdfast.WithLease(100*year), fair.WithWaiterTTL(30*year), fair.WithGrantLease(100*year), holdfast.WithMaxOutage(math.MaxInt64),
			holdfast.WithFencing(), holdfast.WithFenceExpiry(time.Duration(math.MaxInt64).Truncate(time.Millisecond)), holdfast.WithLocalHandover(100*year))
	}
	here, there := open(), open()
	held, err := here.Lock(t.Context(), "k", holdfast.MaxHold(math.MaxInt64))
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
