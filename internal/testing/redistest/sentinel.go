package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// MasterSet is the name under which the Sentinels of [StartSentinel] know their master.
const MasterSet = "locks"

// sentinelPatience bounds each wait for what Sentinels agree on.
const sentinelPatience = 2 * time.Minute

// Sentinel is a master with two replicas, watched by three Sentinels, of which two have
// to agree that a master is dead. All methods may be called concurrently.
type Sentinel struct {
	t         testing.TB // immutable
	servers   []*Server  // immutable; the first master comes first
	sentinels []*Server  // immutable
}

// StartSentinel runs a master with two replicas and three Sentinels, and returns after
// about 1 s, when the Sentinels know the servers and each other; before Redis 7 after 10 s.
// They miss a server after 0.5 s of silence, before Redis 7 after 2 s. args are those of [Start], for the master and the replicas.
func StartSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	s := &Sentinel{t: t, servers: startReplicated(t, &Server{}, args), sentinels: StartSentinels(t)}
	for _, one := range s.sentinels {
		one.Do(t, "SENTINEL", "MONITOR", MasterSet, "127.0.0.1", strconv.Itoa(s.servers[0].port), "2")
		one.Do(t, "SENTINEL", "SET", MasterSet, "down-after-milliseconds", "2000", "failover-timeout", "2000", "parallel-syncs", "2")
		// A Sentinel dials again once in each ping period, so a shorter time of silence than that is no sign of death.
		// In a failover it asks replicas for INFO once in 1 s. It makes none a master that it has not heard of for five ping
		// periods if the master is dead, else for three of INFO.
		// After a pause of 2 s it does nothing for a tilt period, 30 s. Before Redis 7 all these are fixed: 10 s, 2 s, 1 s, 30 s.
		if _, err := one.TryDo("SENTINEL", "DEBUG", "INFO-PERIOD", "400", "PUBLISH-PERIOD", "200", "PING-PERIOD", "300", "TILT-PERIOD", "1000"); err == nil {
			one.Do(t, "SENTINEL", "SET", MasterSet, "down-after-milliseconds", "500")
		}
	}
	s.AwaitReplicas(t)
	return s
}

// startReplicated runs what master describes, and two replicas of it.
func startReplicated(t testing.TB, master *Server, args []string) []*Server {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	master.args = args
	servers := []*Server{start(t, master)}
	for range 2 {
		servers = append(servers, Start(t, append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(master.port)}, args...)...))
	}
	return servers
}

// startSentinel runs one Sentinel that watches nothing yet.
func startSentinel(t testing.TB, args ...string) *Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "sentinel.conf") // into which it writes what it learns
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	return start(t, &Server{args: args, watch: file})
}

// Client opens a client that asks the Sentinels for the master, also every second. change
// may alter its options.
func (s *Sentinel) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	return s.servers[0].Client(t, append([]func(*rueidis.ClientOption){func(o *rueidis.ClientOption) {
		o.InitAddress = nil
		for _, one := range s.sentinels {
			o.InitAddress = append(o.InitAddress, one.Addr())
		}
		o.Sentinel.MasterSet = MasterSet
		o.Sentinel.TopologyRefreshInterval = time.Second
	}}, change...)...)
}

// Sentinels are the three Sentinels.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.sentinels) }

// Master is the server that all Sentinels name, which may be dead; nil while they do not
// name the same, and during a failover.
func (s *Sentinel) Master() *Server {
	var master *Server
	for i, one := range s.sentinels {
		m, _ := one.TryDo("SENTINEL", "MASTER", MasterSet)
		about, _ := m.AsStrMap()
		if strings.Contains(about["flags"], "failover_in_progress") {
			return nil
		}
		named := slices.IndexFunc(s.servers, func(x *Server) bool { return strconv.Itoa(x.port) == about["port"] })
		if named < 0 || i > 0 && s.servers[named] != master {
			return nil
		}
		master = s.servers[named]
	}
	return master
}

// Replicas are all servers but the master that the Sentinels name, dead ones among them.
func (s *Sentinel) Replicas() []*Server {
	master := s.Master()
	return slices.DeleteFunc(slices.Clone(s.servers), func(x *Server) bool { return x == master })
}

// KillMaster kills the master, and returns it. It does not wait for another.
func (s *Sentinel) KillMaster() *Server {
	s.t.Helper()
	master := s.AwaitMaster(s.t, nil)
	master.Kill()
	return master
}

// Failover has the Sentinels make a replica the master while the old one, which it
// returns, still runs. It does not wait for that, and fails the test if no replica is
// good enough.
func (s *Sentinel) Failover() *Server {
	s.t.Helper()
	master := s.AwaitMaster(s.t, nil)
	s.await(s.t, "a failover to begin", func() bool { // not during another
		_, err := s.sentinels[0].TryDo("SENTINEL", "FAILOVER", MasterSet)
		return err == nil
	})
	return master
}

// AwaitMaster returns the master when all Sentinels name one that is not old and that
// takes writes. KillMaster and Failover return the server to pass as old.
func (s *Sentinel) AwaitMaster(t testing.TB, old *Server) (master *Server) {
	t.Helper()
	s.await(t, "a master", func() bool {
		master = s.Master()
		return master != nil && master != old && slices.Contains(role(master), "master")
	})
	return master
}

// AwaitReplicas returns when all other servers that run follow the master, and all
// Sentinels know that, so that each can be the next master. Where Sentinels have to make it
// follow, that takes 1 s, before Redis 7 up to 20 s.
func (s *Sentinel) AwaitReplicas(t testing.TB) {
	t.Helper()
	s.await(t, "replicas that follow, and Sentinels that know it", func() bool {
		master, running := s.Master(), 0
		if master == nil {
			return false
		}
		for _, one := range s.servers {
			reply := role(one)
			if one == master || len(reply) == 0 {
				continue
			}
			if len(reply) < 4 || reply[2] != strconv.Itoa(master.port) || reply[3] != "connected" {
				return false
			}
			running++
		}
		for _, one := range s.sentinels {
			if good(one) != running || !agree(one) {
				return false
			}
		}
		return true
	})
}

// HoldReplication keeps what the master is told from now on from its replicas, which
// run on; false lets them follow again. Sentinels take none of them for a master that
// has followed nobody for 30 s: that is ten times the silence after which they miss a
// server, 3 s meanwhile. It works on servers without a password.
func (s *Sentinel) HoldReplication(t testing.TB, on bool) {
	t.Helper()
	password, silence := "", "500" // with a password, a server that wants none refuses its replica
	if on || Before7() {
		silence = "3000"
	}
	if on {
		password = "none is set"
	}
	for _, one := range s.servers {
		s.await(t, "a server to be told", func() bool { // Sentinels cut all connections to one that they give another master
			_, err := one.TryDo("CONFIG", "SET", "masterauth", password)
			return err == nil || !one.runs()
		})
	}
	for _, one := range s.sentinels {
		one.Do(t, "SENTINEL", "SET", MasterSet, "down-after-milliseconds", silence)
	}
	if on {
		s.AwaitMaster(t, nil).Do(t, "CLIENT", "KILL", "TYPE", "replica")
	}
}

func (s *Sentinel) await(t testing.TB, what string, met func() bool) {
	t.Helper()
	require.Eventually(t, met, sentinelPatience, 5*time.Millisecond, what)
}

// role is what a server takes itself for: "master" or "slave", and of a replica then the
// host and the port of its master, and how their link stands; none if it does not answer.
func role(s *Server) (words []string) {
	m, _ := s.TryDo("ROLE")
	reply, _ := m.ToArray()
	for _, one := range reply {
		word, _ := one.ToString() // "" for a number
		if port, err := one.ToInt64(); err == nil {
			word = strconv.FormatInt(port, 10)
		}
		words = append(words, word)
	}
	return words
}

// good is how many replicas a Sentinel knows to follow the master.
func good(sentinel *Server) (n int) {
	m, _ := sentinel.TryDo("SENTINEL", "REPLICAS", MasterSet)
	replicas, _ := m.ToArray()
	for _, one := range replicas {
		about, err := one.AsStrMap()
		if err == nil && about["flags"] == "slave" && about["master-link-status"] == "ok" {
			n++
		}
	}
	return n
}

// agree reports whether a Sentinel knows enough others that run to begin a failover.
func agree(sentinel *Server) bool {
	_, err := sentinel.TryDo("SENTINEL", "CKQUORUM", MasterSet)
	return err == nil
}

// Sentinels are three Sentinels that watch many masters, and make no other server the master
// within an hour. Safe for concurrent use.
type Sentinels []*Server

// StartSentinels runs three Sentinels that watch nothing yet.
func StartSentinels(t testing.TB) (all Sentinels) {
	t.Helper()
	for range 3 {
		all = append(all, startSentinel(t))
	}
	return all
}

// Start runs a master with two replicas that the Sentinels watch, and returns when all are
// connected to it. Its clients ask the Sentinels for it. args are those of [Start].
func (w Sentinels) Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := startReplicated(t, &Server{sentinels: w}, args)[0]
	for _, one := range w {
		one.Do(t, "SENTINEL", "MONITOR", s.masterSet(), "127.0.0.1", strconv.Itoa(s.port), "2")
		one.Do(t, "SENTINEL", "SET", s.masterSet(), "down-after-milliseconds", "3600000")
		t.Cleanup(func() { _, _ = one.TryDo("SENTINEL", "REMOVE", s.masterSet()) })
	}
	require.Eventually(t, func() bool {
		connected, err := s.Do(t, "CLIENT", "LIST").ToString()
		return err == nil && strings.Count(connected, " name=sentinel-") == 2*len(w) && strings.Count(connected, " flags=S ") == 2
	}, sentinelPatience, 5*time.Millisecond, "connections of Sentinels and replicas")
	return s
}

// masterSet is the name of a server that is watched by [Sentinels].
func (s *Server) masterSet() string { return "locks-" + strconv.Itoa(s.port) }

// askSentinels has a client ask the Sentinels for its master. It dials the address that it
// was given, a proxy's perhaps, in place of the one that they name.
func (s *Server) askSentinels(o *rueidis.ClientOption) {
	given, dial := o.InitAddress[0], o.DialCtxFn
	o.InitAddress = nil
	for _, one := range s.sentinels {
		o.InitAddress = append(o.InitAddress, one.Addr())
	}
	o.Sentinel.MasterSet, o.Sentinel.TopologyRefreshInterval = s.masterSet(), time.Minute
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		if addr != s.Addr() {
			return d.DialContext(ctx, "tcp", addr)
		}
		if dial != nil {
			return dial(ctx, given, d, c)
		}
		return d.DialContext(ctx, "tcp", given)
	}
}
