package semaphore_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/faults"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/sentinel"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/semaphore"
)

func TestMain(m *testing.M) { locktest.Main(m, kind) }

// kind adapts a semaphore with one permit to the conformance suite: it is a mutex.
var kind = locktest.Kind{Name: "semaphore", Permits: true, New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
	o.Fencing = false // there are no fences
	return locktest.Opens(semaphore.New(client, 1, o))
}}

func TestConformance(t *testing.T)         { contract.Run(t, kind.InVirtualTime) }
func TestConformance_OnRedis(t *testing.T) { contract.Run(t, kind.InRealTime, locktest.InTestAll) }
func TestConformance_Prefix(t *testing.T)  { contract.Run(t, kind.Prefixed) }
func TestConformance_Cluster(t *testing.T) { contract.Run(t, kind.OnCluster, locktest.InTestServers) }
func TestConformance_Masters(t *testing.T) { contract.Run(t, kind.OnMasters) }
func TestConformance_Sentinel(t *testing.T) {
	contract.Run(t, kind.OnSentinels, locktest.InTestServers)
}

func TestFaults(t *testing.T)         { faults.Run(t, kind.InVirtualTime) }
func TestFaults_OnRedis(t *testing.T) { faults.RunReal(t, kind) }
func TestFaults_Cluster(t *testing.T) { faults.RunAll(t, kind.OnCluster, locktest.InTestServers) }

func TestCluster(t *testing.T)                       { cluster.Run(t, kind) }
func TestG9_ManyKeysOfAMasterThatHangs(t *testing.T) { cluster.RunMany(t, kind) }
func TestSentinel(t *testing.T)                      { sentinel.Run(t, kind) }

func TestG1_Soak(t *testing.T) { exclusion.Run(t, kind) }

// open makes a locker on a client of its own, which is closed with the test.
func open(t testing.TB, s *redistest.Server, n int, opts ...holdfast.Option) *semaphore.Locker {
	t.Helper()
	return locktest.Opened(semaphore.New(s.Client(t), n, opts...))(t)
}

func TestF8_PermitsAreRefused(t *testing.T) {
	client := redistest.Start(t).Client(t)
	require.ErrorContains(t, locktest.ErrOf(semaphore.New(nil, 3)), "client is nil")
	require.Equal(t, check.MaxPermits, semaphore.MaxPermits)
	for _, n := range []int{0, -1, semaphore.MaxPermits + 1} {
		_, err := semaphore.New(client, n)
		require.ErrorContains(t, err, "semaphore: New")
		locktest.RequireSentinel(t, err, holdfast.ErrInvalidArgument, "permits, 1 to 10000 are allowed")
		l := locktest.Must(semaphore.New(client, 3))(t)
		require.ErrorIs(t, l.Resize(t.Context(), "k", n), holdfast.ErrInvalidArgument)
		require.NoError(t, l.Close())
	}
}

func TestPermitsAreAgreed(t *testing.T) {
	s := redistest.Start(t)
	three, five, ctx := open(t, s, 3), open(t, s, 5), locktest.Bounded(t)
	lease := locktest.Lock(t, three, ctx, "k")
	for _, err := range []error{
		locktest.ErrOf(five.Lock(ctx, "k")), locktest.ErrOf(five.TryLock(ctx, "k")), locktest.ErrOf(five.TryLockFor(ctx, "k", time.Minute)),
	} {
		var disagreed *holdfast.PermitsError
		require.True(t, errors.As(err, &disagreed), err)
		require.Equal(t, holdfast.PermitsError{Wanted: 5, Agreed: 3}, *disagreed)
		require.EqualError(t, err, `holdfast: lock "k": 5 permits wanted, but others use the key with 3`)
		require.NotErrorIs(t, err, holdfast.ErrNotAcquired)
		require.NotErrorIs(t, err, holdfast.ErrUnavailable)
	}
	require.NoError(t, lease.Unlock(ctx))
	require.NoError(t, locktest.Lock(t, five, ctx, "k").Unlock(ctx))

	lease = locktest.Lock(t, three, ctx, "k")
	require.NoError(t, five.Resize(ctx, "k", 2))
	require.NoError(t, lease.Unlock(ctx))
	require.NoError(t, locktest.Lock(t, five, ctx, "k").Unlock(ctx))
	require.NoError(t, locktest.Lock(t, three, ctx, "k").Unlock(ctx))
}

// world is a server in virtual time, of which each locker has a client of its own.
type world struct {
	t      *testing.T
	net    *sim.Network
	server *sim.Server
}

// inVirtualTime runs a test in a bubble. A request or a reply takes 20 µs.
func inVirtualTime(t *testing.T, run func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: &sim.Network{Trip: 20 * time.Microsecond}}
		w.server = sim.Start(t, w.net)
		run(t, w)
	})
}

func (w *world) open(n int, opts ...holdfast.Option) *semaphore.Locker {
	w.t.Helper()
	return locktest.Opened(semaphore.New(w.server.Client(w.t), n, opts...))(w.t)
}

// loadScripts has the server know all scripts, so that a call takes one round trip.
func (w *world) loadScripts() {
	for _, text := range scripts.Scripts() {
		w.server.Do(w.t, "SCRIPT", "LOAD", text)
	}
}

// holders counts how many hold at once.
type holders struct {
	now, most atomic.Int32
}

func (h *holders) hold(d time.Duration) {
	n := h.now.Add(1)
	for most := h.most.Load(); n > most && !h.most.CompareAndSwap(most, n); most = h.most.Load() {
	}
	time.Sleep(d)
	h.now.Add(-1)
}
