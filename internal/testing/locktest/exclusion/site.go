package exclusion

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// site is a deployment of Redis on which a campaign is made, with the faults of its servers.
type site struct {
	servers   []*redistest.Server // that have keys
	addrs     []string            // those that clients are given
	masterSet string              // of Sentinels, at addrs
	masters   int                 // how many of the servers are masters
	open      func(testing.TB, ...func(*rueidis.ClientOption)) rueidis.Client
	owner     func(key string) *redistest.Server // the master that has it
	settle    func()                             // returns when every server has its role again

	lease   time.Duration
	longest time.Duration // for which a lease is held
	long    int           // of a thousand leases, how many may be held for so long
	keys    int
	grants  int           // in a second, at least
	beat    time.Duration // between faults of a process, at most
	pace    time.Duration // between faults of the servers, at most
	faults  []fault       // of the servers, one at a time
}

type fault struct {
	name string
	do   func(time.Duration) // lasts for about so long, or until servers have taken over
}

var sites = []struct {
	name  string
	start func(*testing.T) *site
}{{"standalone", standalone}, {"sentinel", sentinels}, {"cluster", cluster}}

// standalone is one server, whose file keeps all that it has answered when it is killed.
func standalone(t *testing.T) *site {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no")
	return &site{
		servers: []*redistest.Server{server}, addrs: []string{server.Addr()}, open: server.Client,
		lease: 300 * time.Millisecond, longest: 600 * time.Millisecond, long: 3, keys: 4, grants: 240,
		beat: 300 * time.Millisecond, pace: 2 * time.Second,
		faults: []fault{
			{"server killed", func(time.Duration) { server.Kill(); server.Restart() }},
			{"server away", func(d time.Duration) { server.Kill(); time.Sleep(d); server.Restart() }},
			{"server stands still", func(d time.Duration) { server.Pause(); time.Sleep(d); server.Resume() }},
		},
	}
}

// sentinels is a Sentinel set. Its failovers may lose the last writes.
func sentinels(t *testing.T) *site {
	set := redistest.StartSentinel(t)
	var addrs []string
	for _, one := range set.Sentinels() {
		addrs = append(addrs, one.Addr())
	}
	over := func(begin func() *redistest.Server) (old *redistest.Server) {
		old = begin()
		set.AwaitMaster(t, old)
		return old
	}
	killed := func(time.Duration) { over(set.KillMaster).Restart() }
	return &site{
		servers: append(set.Replicas(), set.Master()), addrs: addrs, masterSet: redistest.MasterSet, masters: 1, open: set.Client,
		owner:  func(string) *redistest.Server { return set.AwaitMaster(t, nil) },
		settle: func() { set.AwaitReplicas(t) },
		lease:  1800 * time.Millisecond, longest: 6 * time.Second, long: 10, keys: 16, grants: 110,
		beat: 600 * time.Millisecond, pace: time.Second,
		faults: []fault{
			{"master killed", killed},
			{"failover by command", func(time.Duration) { over(set.Failover) }},
			{"master hangs", func(time.Duration) {
				over(func() *redistest.Server { m := set.AwaitMaster(t, nil); m.Pause(); return m }).Resume()
			}},
			{"last writes lost", func(d time.Duration) {
				set.HoldReplication(t, true)
				time.Sleep(d)
				killed(0)
				set.HoldReplication(t, false)
			}},
			{"master stands still", func(d time.Duration) {
				m := set.AwaitMaster(t, nil)
				m.Pause()
				time.Sleep(d / 2)
				m.Resume()
			}},
		},
	}
}

// cluster is a Redis Cluster of three masters with a replica each. Failovers may lose the
// last writes of their master's slots; migrations lose none.
func cluster(t *testing.T) *site {
	c := redistest.StartCluster(t, 3, 1)
	one := func() *redistest.Server { all := c.Masters(t); return all[rand.IntN(len(all))] }
	s := &site{
		servers: slices.Concat(c.Masters(t), c.Replicas(t)), masters: 3, open: c.Client,
		owner:  func(key string) *redistest.Server { return c.Owner(t, key) },
		settle: func() { c.AwaitReplicas(t) },
		lease:  1800 * time.Millisecond, longest: 6 * time.Second, long: 10, keys: 16, grants: 110,
		beat: 600 * time.Millisecond, pace: time.Second,
	}
	for _, node := range s.servers {
		s.addrs = append(s.addrs, node.Addr())
	}
	s.faults = []fault{
		{"master killed", func(time.Duration) { m := one(); m.Kill(); c.AwaitPromoted(t, m); m.Restart() }},
		{"failover by command", func(time.Duration) { c.Failover(t, one()) }},
		{"master hangs", func(time.Duration) { m := one(); m.Pause(); c.AwaitPromoted(t, m); m.Resume() }},
		{"slot migrates", func(d time.Duration) {
			key := Key(rand.IntN(s.keys))
			slot, from, to := c.Slot(t, key), c.Owner(t, key), one()
			for to == from {
				to = one()
			}
			c.BeginMigration(t, slot, to)
			time.Sleep(d / 2)
			c.MoveKeys(t, slot, to)
			time.Sleep(d / 2)
			c.EndMigration(t, slot, to)
		}},
		{"master stands still", func(d time.Duration) { m := one(); m.Pause(); time.Sleep(d / 2); m.Resume() }},
	}
	return s
}
