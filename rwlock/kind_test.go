package rwlock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/faults"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/sentinel"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/rwlock"
)

func TestMain(m *testing.M) { locktest.Main(m, writers) }

// writers and readers adapt the halves of rwlock to the suites.
var (
	writers = locktest.Kind{Name: "rwlock", ReadWrite: true, Readers: readersOf, New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		return locktest.Opens(rwlock.New(client, o))
	}}
	readers = locktest.Kind{Name: "rwlock readers", ReadWrite: true, Shared: true, New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		l, err := rwlock.New(client, o)
		if err != nil {
			return nil, err
		}
		return struct {
			holdfast.Locker
			holdfast.Operator
		}{l.RLocker(), l}, nil
	}}
)

func TestConformance(t *testing.T)         { contract.Run(t, writers.InVirtualTime) }
func TestConformance_OnRedis(t *testing.T) { contract.Run(t, writers.InRealTime, locktest.InTestAll) }
func TestConformance_Prefix(t *testing.T)  { contract.Run(t, writers.Prefixed) }
func TestConformance_Cluster(t *testing.T) {
	contract.Run(t, writers.OnCluster, locktest.InTestServers)
}
func TestConformance_Masters(t *testing.T) { contract.Run(t, writers.OnMasters) }
func TestConformance_Sentinel(t *testing.T) {
	contract.Run(t, writers.OnSentinels, locktest.InTestServers)
}

func TestFaults(t *testing.T)         { faults.Run(t, writers.InVirtualTime) }
func TestFaults_OnRedis(t *testing.T) { faults.RunReal(t, writers) }
func TestFaults_Cluster(t *testing.T) { faults.RunAll(t, writers.OnCluster, locktest.InTestServers) }

func TestCluster(t *testing.T)                       { cluster.Run(t, writers) }
func TestG9_ManyKeysOfAMasterThatHangs(t *testing.T) { cluster.RunMany(t, writers) }
func TestSentinel(t *testing.T)                      { sentinel.Run(t, writers) }

func TestG1_Soak(t *testing.T) { exclusion.Run(t, writers) }

func TestReadersConformance(t *testing.T) { contract.Run(t, readers.InVirtualTime) }
func TestReadersConformance_OnRedis(t *testing.T) {
	contract.Run(t, readers.InRealTime, locktest.InTestAll)
}
func TestReadersConformance_Cluster(t *testing.T) {
	contract.Run(t, readers.OnCluster, locktest.InTestServers)
}
func TestReadersConformance_Masters(t *testing.T) { contract.Run(t, readers.OnMasters) }
func TestReadersConformance_Sentinel(t *testing.T) {
	contract.Run(t, readers.OnSentinels, locktest.InTestServers)
}

func TestReadersFaults(t *testing.T)         { faults.Run(t, readers.InVirtualTime) }
func TestReadersFaults_OnRedis(t *testing.T) { faults.RunReal(t, readers) } // the processes that it kills or pauses are writers
func TestReadersFaults_Cluster(t *testing.T) {
	faults.RunAll(t, readers.OnCluster, locktest.InTestServers)
}

// inVirtualTime runs a test in a bubble, with a server of its own. A request or a reply takes 20 µs.
func inVirtualTime(t *testing.T, run func(*testing.T, *sim.Server)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { run(t, sim.Start(t, &sim.Network{Trip: 20 * time.Microsecond})) })
}

func readersOf(l locktest.Locker) holdfast.Locker { return l.(*rwlock.Locker).RLocker() }

func userLocker(t testing.TB, s locktest.Server, opts ...holdfast.Option) *rwlock.Locker {
	return locktest.Opened(rwlock.New(s.Client(t), opts...))(t)
}

// waits is how many processes wait for key as that: writer, reader or next.
func waits(t testing.TB, s locktest.Server, key, as string) (n int) {
	for _, field := range locktest.Strings(t, s, "HKEYS", "holdfast_wishes:{"+key+"}") {
		if strings.HasPrefix(field, as+" ") {
			n++
		}
	}
	return n
}
