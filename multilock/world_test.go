package multilock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/multilock"
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

// open opens a locker of a process, which is closed with the test.
func (w world) open(process int, opts ...holdfast.Option) *multilock.Locker {
	w.Helper()
	l, err := multilock.New(w.Clients(process), opts...)
	require.NoError(w, err)
	w.Cleanup(func() { _ = l.Close() })
	return l
}

// vote gives the new nodes their votes.
func (w world) vote(l *multilock.Locker) {
	w.Helper()
	require.NoError(w, l.Bootstrap(w.Context(), multilock.NothingHeld()))
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
