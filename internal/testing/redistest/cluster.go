package redistest

import (
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Cluster is a Redis Cluster of real servers. All methods may be called concurrently.
// They ask only nodes that run, not those that are dead or paused.
type Cluster struct {
	nodes []*Server // immutable
}

// slots is how many a Redis Cluster has.
const slots = 16384

const (
	clusterPatience = 2 * Patience    // for each wait until the nodes of a cluster agree
	failoverTime    = 6 * time.Second // in which a node that is told to take over does so, or gives up, as on a busy machine
)

// StartCluster runs a Redis Cluster of so many masters, which share the slots evenly,
// each with so many replicas. It returns after about 3 s, when all nodes agree that it
// serves and all replicas follow. A node is missed after 1 s of silence. args are those
// of [Start], for each node.
func StartCluster(t testing.TB, masters, replicasPerMaster int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{nodes: make([]*Server, masters*(1+replicasPerMaster))}
	for i := range c.nodes {
		c.nodes[i] = Start(t, slices.Concat([]string{
			"--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0",
			"--cluster-port", strconv.Itoa(FreePort(t)),
		}, args)...)
	}
	c.meet(t, masters)
	c.AwaitReplicas(t)
	for _, s := range c.Masters(t) {
		s.Do(t, "FLUSHALL") // before their first write CLUSTER SLOTS lists no replicas
	}
	c.await(t, "all nodes list all", func() bool { return c.listed(t) })
	return c
}

// meet makes a Cluster of the nodes, of which the first are the masters.
func (c *Cluster) meet(t testing.TB, masters int) {
	t.Helper()
	for i, s := range c.nodes {
		s.Do(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i < masters {
			add := []string{"CLUSTER", "ADDSLOTS"}
			for slot := i * slots / masters; slot < (i+1)*slots/masters; slot++ {
				add = append(add, strconv.Itoa(slot))
			}
			s.Do(t, add...)
		}
	}
	var again time.Time
	c.await(t, "all nodes met", func() bool {
		if time.Now().After(again) { // a handshake that takes a second, as on a busy machine, is given up
			for i, s := range c.nodes {
				for _, other := range c.nodes[:i] { // all pairs, so as not to wait for gossip
					s.Do(t, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.port), other.clusterPort())
				}
			}
			again = time.Now().Add(3 * time.Second)
		}
		return c.agree(t)
	})
	for i, s := range c.nodes[masters:] {
		s.Do(t, "CLUSTER", "REPLICATE", c.nodes[i%masters].clusterID(t))
	}
}

// clusterPort is where a node talks with others: before Redis 7.0, 10000 above its port for clients.
func (s *Server) clusterPort() string {
	if i := slices.Index(s.args, "--cluster-port"); i >= 0 {
		return s.args[i+1]
	}
	return strconv.Itoa(s.port + 10000)
}

// Leftovers are what rueidis v1.0.79 leaves behind of a client of a cluster, for up to
// 5 s after its Close.
func Leftovers() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	}
}

// Client opens a client of the cluster, as [Server.Client] does one of a server. Then
// goleak needs Leftovers.
func (c *Cluster) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	all := func(o *rueidis.ClientOption) {
		o.InitAddress = nil
		for _, s := range c.nodes {
			o.InitAddress = append(o.InitAddress, s.Addr())
		}
	}
	return c.nodes[0].Client(t, slices.Concat([]func(*rueidis.ClientOption){all}, change)...)
}

// Masters returns the running nodes that have slots, in the order of their lowest.
func (c *Cluster) Masters(t testing.TB) (masters []*Server) {
	t.Helper()
	for _, r := range c.ranges(t) {
		if s := c.node(r.addr); s != nil && !slices.Contains(masters, s) {
			masters = append(masters, s)
		}
	}
	return masters
}

// Replicas returns the running nodes that follow a master.
func (c *Cluster) Replicas(t testing.TB) (replicas []*Server) {
	t.Helper()
	for _, s := range c.running() {
		if role, _ := s.follows(t); role == "slave" {
			replicas = append(replicas, s)
		}
	}
	return replicas
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(t testing.TB, key string) int {
	t.Helper()
	return int(Must(c.running()[0].Do(t, "CLUSTER", "KEYSLOT", key).ToInt64())(t))
}

// Owner returns the master that has the slot of a key. While nodes do not agree it is
// what one of them believes; dead or paused masters are owners, too.
func (c *Cluster) Owner(t testing.TB, key string) *Server {
	t.Helper()
	return c.slotOwner(t, c.Slot(t, key))
}

func (c *Cluster) slotOwner(t testing.TB, slot int) *Server {
	t.Helper()
	for _, r := range c.ranges(t) {
		if r.first <= slot && slot <= r.last {
			return c.node(r.addr)
		}
	}
	require.FailNow(t, "redistest: cluster: nobody has the slot", slot)
	return nil
}

// Migrate moves a slot with its keys to another master: BeginMigration, MoveKeys and
// EndMigration.
func (c *Cluster) Migrate(t testing.TB, slot int, to *Server) {
	t.Helper()
	c.BeginMigration(t, slot, to)
	c.MoveKeys(t, slot, to)
	c.EndMigration(t, slot, to)
}

// BeginMigration makes a slot migrate. From then on its owner answers ASK for a key that
// it does not have, and TRYAGAIN (Redis 6.2: ASK) for several of which it has only some.
// So new keys begin at the other node.
func (c *Cluster) BeginMigration(t testing.TB, slot int, to *Server) {
	t.Helper()
	from, number := c.slotOwner(t, slot), strconv.Itoa(slot)
	to.Do(t, "CLUSTER", "SETSLOT", number, "IMPORTING", from.clusterID(t))
	from.Do(t, "CLUSTER", "SETSLOT", number, "MIGRATING", to.clusterID(t))
}

// MoveKeys moves those keys of a slot that migrates, or all that it has if none is named.
func (c *Cluster) MoveKeys(t testing.TB, slot int, to *Server, keys ...string) {
	t.Helper()
	from := c.slotOwner(t, slot)
	if len(keys) == 0 {
		m := from.Do(t, "CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), "1000000")
		keys = Must(m.AsStrSlice())(t)
	}
	for _, key := range keys { // a key that has expired is no error: NOKEY
		from.Do(t, "MIGRATE", "127.0.0.1", strconv.Itoa(to.port), key, "0", "5000")
	}
}

// EndMigration gives a slot to the other master and returns when all nodes know. A key
// that the old one still has is lost.
func (c *Cluster) EndMigration(t testing.TB, slot int, to *Server) {
	t.Helper()
	from, number, id := c.slotOwner(t, slot), strconv.Itoa(slot), to.clusterID(t)
	to.Do(t, "CLUSTER", "SETSLOT", number, "NODE", id)
	from.Do(t, "CLUSTER", "SETSLOT", number, "NODE", id)
	c.await(t, "all nodes know the slot's new owner", func() bool { return c.serves(t) && c.slotOwner(t, slot) == to })
}

// Failover has a replica take the place of a running master (CLUSTER FAILOVER). It
// returns the replica, when all nodes agree and the old master follows it. Redis 7.0
// fails to promote one node twice within 4 s.
func (c *Cluster) Failover(t testing.TB, master *Server) *Server {
	t.Helper()
	replicas := c.Replicas(t)
	for _, s := range replicas {
		if _, port := s.follows(t); port == strconv.Itoa(master.port) {
			var tried time.Time
			c.await(t, "a failover", func() bool {
				if time.Since(tried) > failoverTime && slices.Contains(c.Masters(t), master) {
					tried = time.Now()
					_, _ = s.TryDo("CLUSTER", "FAILOVER") // an error if it is under way
				}
				return c.serves(t) && !slices.Contains(c.Masters(t), master) && c.replicated(t, len(replicas))
			})
			return s
		}
	}
	require.FailNow(t, "redistest: cluster: the master has no replica")
	return nil
}

// AwaitPromoted returns when all running nodes agree that the lost master, which is dead
// or paused, has no slots any more. That takes some 2 s.
func (c *Cluster) AwaitPromoted(t testing.TB, lost *Server) {
	t.Helper()
	c.await(t, "a replica promoted", func() bool {
		return c.serves(t) && !slices.ContainsFunc(c.ranges(t), func(r slotRange) bool { return r.addr == lost.Addr() })
	})
}

// AwaitReplicas returns when all nodes agree and serve, of which all that are no masters
// follow one.
func (c *Cluster) AwaitReplicas(t testing.TB) {
	t.Helper()
	c.await(t, "all nodes serve", func() bool { return c.serves(t) && c.replicated(t, len(c.nodes)-len(c.Masters(t))) })
}

func (c *Cluster) await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(clusterPatience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(t, "redistest: cluster: never: "+what, c.running()[0].ask(t, "CLUSTER", "NODES"))
		}
	}
}

// running returns the nodes that are neither dead nor paused. Only Linux tells which are
// paused.
func (c *Cluster) running() (running []*Server) {
	for _, s := range c.nodes {
		s.mu.Lock()
		if s.proc != nil && (runtime.GOOS != "linux" || !Stopped(s.proc.cmd.Process.Pid)) {
			running = append(running, s)
		}
		s.mu.Unlock()
	}
	return running
}

func (c *Cluster) node(addr string) *Server {
	i := slices.IndexFunc(c.nodes, func(s *Server) bool { return s.Addr() == addr })
	if i < 0 {
		return nil
	}
	return c.nodes[i]
}

// slotRange is a range of slots, of the master at addr.
type slotRange struct {
	first, last int
	addr        string
}

// member is what a node believes of a node of its cluster.
type member struct {
	addr  string
	flags string   // without "myself"
	of    string   // whose replica it is, by ID
	slots []string // numbers and ranges
}

// view returns all nodes that a node knows, in a certain order.
func (s *Server) view(t testing.TB) (view []member) {
	t.Helper()
	for line := range strings.Lines(s.ask(t, "CLUSTER", "NODES")) {
		f := strings.Fields(line) // ID, address, flags, master's ID, ping, pong, epoch, link, slots …
		addr, _, _ := strings.Cut(f[1], "@")
		if strings.HasPrefix(addr, ":") { // one that has met no other does not know its own
			addr = "127.0.0.1" + addr
		}
		m := member{addr: addr, flags: strings.TrimPrefix(f[2], "myself,"), of: f[3]}
		for _, r := range f[8:] {
			if !strings.HasPrefix(r, "[") { // one that migrates
				m.slots = append(m.slots, r)
			}
		}
		view = append(view, m)
	}
	slices.SortFunc(view, func(a, b member) int { return strings.Compare(a.addr, b.addr) })
	return view
}

// ranges returns which node has which slots, in their order, as a running node believes.
func (c *Cluster) ranges(t testing.TB) (ranges []slotRange) {
	t.Helper()
	for _, m := range c.running()[0].view(t) {
		for _, r := range m.slots {
			first, last, ok := strings.Cut(r, "-")
			if !ok {
				last = first
			}
			ranges = append(ranges, slotRange{number(t, first), number(t, last), m.addr})
		}
	}
	slices.SortFunc(ranges, func(a, b slotRange) int { return a.first - b.first })
	return ranges
}

// agree reports whether all running nodes believe the same, of all nodes.
func (c *Cluster) agree(t testing.TB) bool {
	var first []member
	for _, s := range c.running() {
		view := s.view(t)
		if first == nil {
			first = view
		}
		if len(view) != len(c.nodes) || !reflect.DeepEqual(view, first) {
			return false
		}
	}
	return true
}

// serves reports whether all running nodes agree and serve.
func (c *Cluster) serves(t testing.TB) bool {
	return c.agree(t) && !slices.ContainsFunc(c.running(), func(s *Server) bool {
		return !strings.Contains(s.ask(t, "CLUSTER", "INFO"), "cluster_state:ok")
	})
}

// replicated reports whether so many running nodes are replicas and up to date.
func (c *Cluster) replicated(t testing.TB, replicas int) bool {
	all := c.Replicas(t)
	return len(all) == replicas && !slices.ContainsFunc(all, func(s *Server) bool {
		return !strings.Contains(s.ask(t, "INFO", "replication"), "master_link_status:up")
	})
}

// listed reports whether clients are told of all nodes by each.
func (c *Cluster) listed(t testing.TB) bool {
	for _, s := range c.nodes {
		m := s.Do(t, "CLUSTER", "SLOTS")
		for _, other := range c.nodes {
			if !strings.Contains(m.String(), other.clusterID(t)) {
				return false
			}
		}
	}
	return true
}

// follows returns a node's role, "master" or "slave", and the port of its master.
func (s *Server) follows(t testing.TB) (role, port string) {
	t.Helper()
	for line := range strings.Lines(s.ask(t, "INFO", "replication")) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "role":
			role = value
		case "master_port":
			port = value
		}
	}
	return role, port
}

func (s *Server) clusterID(t testing.TB) string { return s.ask(t, "CLUSTER", "MYID") }

// ask is Do for a reply that is text.
func (s *Server) ask(t testing.TB, args ...string) string {
	t.Helper()
	return Must(s.Do(t, args...).ToString())(t)
}

func number(t testing.TB, text string) int {
	t.Helper()
	return Must(strconv.Atoi(text))(t)
}
