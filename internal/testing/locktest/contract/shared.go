package contract

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// CountsReaders checks what Inspect says of readers: the plain ones of a locker count once, and each
// other one by itself. readers are the other half of writers, and others are of another locker.
func CountsReaders(t *testing.T, writers locktest.Locker, readers, others holdfast.Locker) {
	ctx := t.Context()
	var leases []*holdfast.Lease
	w := locktest.Lock(t, writers, ctx, "k")
	for _, reader := range []struct {
		what   string
		of     holdfast.Locker
		ctx    context.Context
		option []holdfast.LockOption
		count  int
	}{
		{"beside its writer", readers, w.Bind(ctx), nil, 1},
		{"plain", readers, ctx, nil, 2},
		{"plain, the second", readers, ctx, nil, 2},
		{"of another locker", others, ctx, nil, 3},
		{"with a label", readers, ctx, []holdfast.LockOption{holdfast.Label("mine")}, 4},
		{"with a lease", readers, ctx, []holdfast.LockOption{holdfast.FixedLease(time.Hour)}, 5},
		{"with a cap", readers, ctx, []holdfast.LockOption{holdfast.MaxHold(time.Hour)}, 6},
		{"plain, the third", readers, ctx, nil, 6},
		{"of another locker, with a cap", others, ctx, []holdfast.LockOption{holdfast.MaxHold(time.Hour)}, 7},
	} {
		leases = append(leases, locktest.Lock(t, reader.of, reader.ctx, "k", reader.option...))
		s := locktest.Must(writers.Inspect(ctx, "k"))(t)
		require.Equal(t, reader.count, s.Readers, reader.what)
		require.Equal(t, reader.count >= 5, s.Remaining > time.Hour/2, "until the lease of the last one ends")
		if w.Err() == nil {
			require.NoError(t, w.Unlock(ctx))
		}
	}
	for _, lease := range leases {
		require.NoError(t, lease.Unlock(ctx))
	}
}
