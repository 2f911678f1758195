package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/multilock"
)

// The calls of an operator end with their context, even if the nodes, which answered until now, are
// silent. A ForceUnlock may have freed the key by then.
func TestOperatorsWaitNoLongerThanTheyWant(t *testing.T) {
	const wait = 100 * time.Millisecond
	for name, call := range map[string]func(context.Context, *multilock.Locker) error{
		"Inspect":     func(ctx context.Context, l *multilock.Locker) error { _, err := l.Inspect(ctx, "k"); return err },
		"ForceUnlock": func(ctx context.Context, l *multilock.Locker) error { _, err := l.ForceUnlock(ctx, "k"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, 3, func(w world) {
				l := w.open(0, multilock.WithNodeTimeout(time.Second), multilock.WithoutRestartGuard())
				w.lock(l, "k")
				for _, s := range w.Servers {
					s.Pause()
					defer s.Resume()
				}
				ctx, cancel := context.WithTimeout(w.Context(), wait)
				defer cancel()
				began := time.Now()
				err := call(ctx, l)
				require.Equal(w, wait, time.Since(began))
				require.ErrorIs(w, err, context.DeadlineExceeded)
				require.ErrorIs(w, err, holdfast.ErrUnknown)
			})
		})
	}
}
