package multilock_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// world is independent masters in virtual time, and processes with links to them.
type world struct {
	*testing.T
	*sim.World
}

// inWorld runs a test in a world of its own.
func inWorld(t *testing.T, processes, nodes int, test func(w world)) {
	synctest.Test(t, func(t *testing.T) { test(world{t, sim.NewWorld(t, 1, processes, nodes)}) })
}

// open opens a locker of a process, and on one of any clients.
func (w world) open(process int, opts ...holdfast.Option) *multilock.Locker {
	w.Helper()
	return w.on(w.Clients(process), opts...)
}

func (w world) on(clients []rueidis.Client, opts ...holdfast.Option) *multilock.Locker {
	w.Helper()
	return locktest.Opened(multilock.New(clients, opts...))(w)
}

// rlock and fair open a locker of another kind.
func (w world) rlock(client rueidis.Client, opts ...holdfast.Option) *rlock.Locker {
	w.Helper()
	return locktest.Opened(rlock.New(client, opts...))(w)
}

func (w world) fair(client rueidis.Client, opts ...holdfast.Option) *fair.Locker {
	w.Helper()
	return locktest.Opened(fair.New(client, opts...))(w)
}

// logTo has a locker log to a text.
func logTo(log *redistest.Log) holdfast.Option {
	return holdfast.WithLogger(slog.New(slog.NewTextHandler(log, nil)))
}

// vote gives the new nodes their votes.
func (w world) vote(l *multilock.Locker) {
	w.Helper()
	require.NoError(w, l.DeclareNothingHeld(w.Context()))
}

// lock and lockAll wait until keys are held.
func (w world) lock(l holdfast.Locker, key string, opts ...holdfast.LockOption) *holdfast.Lease {
	w.Helper()
	return locktest.Lock(w, l, w.Context(), key, opts...)
}

func (w world) lockAll(keys multilock.KeySet, opts ...holdfast.LockOption) *multilock.LeaseSet {
	w.Helper()
	return locktest.Must(multilock.LockAll(w.Context(), keys, opts...))(w)
}

// reenters requires that the holder of a set may lock keys again.
func (w world) reenters(set *multilock.LeaseSet, keys multilock.KeySet) {
	w.Helper()
	require.NoError(w, locktest.Must(multilock.LockAll(set.Bind(w.Context()), keys))(w).Unlock(w.Context()))
}

// owners are the owner of key on each node; "" if there is none.
func (w world) owners(key string) (all []string) {
	for _, s := range w.Servers {
		fields, _ := s.Redis().HKeys(key)
		all = append(all, append(fields, "")[0])
	}
	return all
}

// settle lets all end that calls have left to the background, where nothing hangs.
func settle() { time.Sleep(time.Second) }
