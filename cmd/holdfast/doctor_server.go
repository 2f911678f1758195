package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// The rules of docs/redis.md.

// failoverStart is how late a failover may begin. A lease lives for at least two thirds of
// its time when its server dies, and the failover itself takes seconds.
const failoverStart = holdfast.DefaultLease / 2

// checkInfo checks what INFO says.
func (c *checkup) checkInfo(ctx context.Context) error {
	text, err := c.Do(ctx, c.B().Info().Build()).ToString()
	if err != nil {
		return c.noteRefusal(err, "info", "version, role, eviction, memory, connections, persistence, replicas")
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	number := func(name string) float64 {
		n, _ := strconv.ParseFloat(info[name], 64) // 0 if it says nothing
		return n
	}

	c.version, c.replica = info["redis_version"], info["role"] == "slave"
	c.checkVersion(c.version)
	if c.replica {
		c.hurts("it is a replica of "+info["master_host"]+":"+info["master_port"], "a replica refuses locks",
			"name the master in the URL, or the Sentinels with ?master_set=")
	}
	if policy := info["maxmemory_policy"]; policy != "" && wire.Evicts(policy) {
		c.hurts("maxmemory-policy is "+policy, "out of memory, Redis may drop a lock that is held, and give it to another", "set maxmemory-policy noeviction")
	} else if used, most := number("used_memory"), number("maxmemory"); most > 0 && used > 0.9*most {
		c.hurts(fmt.Sprintf("maxmemory is used to %.0f %%", 100*used/most), "at 100 % Redis refuses locks (OOM)", "raise maxmemory, or remove other data")
	}
	if used, most := number("connected_clients"), number("maxclients"); most > 0 && used > 0.9*most {
		c.hurts(fmt.Sprintf("maxclients is reached to %.0f %%", 100*used/most), "at 100 % Redis refuses connections, also those of lockers that come back", "raise maxclients, or close connections")
	}
	if info["aof_enabled"] == "0" {
		c.note("appendonly is off", "a server that dies and comes back has forgotten locks that are held, and gives them to others",
			"set appendonly yes; or start a server that has died only after the longest lease. Nodes of multilock do without")
	}
	for _, of := range []string{"aof_last_write_status", "rdb_last_bgsave_status"} {
		if status := info[of]; status != "" && status != "ok" {
			c.hurts(of+" is "+status, "Redis cannot write to its disk: it may refuse locks (MISCONF), and forgets them when it dies", "see to the disk, and to the server's log")
		}
	}
	_, guarded := info["min_slaves_good_slaves"] // is there if both settings are more than 0
	switch replicas := info["connected_slaves"]; {
	case c.replica:
	case replicas == "0" && c.mode != rueidis.ClientModeStandalone:
		c.note("it has no replica", "nobody takes over when it dies: its locks stand still until it is back", "give it a replica")
	case replicas != "0" && !guarded:
		c.note("min-replicas-to-write is 0", "a master that its replicas cannot reach goes on, and so does its successor: both give the same lock", "set min-replicas-to-write 1")
	}
	return nil
}

func (c *checkup) checkVersion(version string) {
	const do = "install Redis 7.0 or later, or Valkey"
	switch {
	case !wire.AtLeast(version, 6, 2):
		c.hurts("it is Redis "+version, "locks need HRANDFIELD and ZADD GT, which came with Redis 6.2", do)
	case !wire.AtLeast(version, 7, 0):
		c.note("it is Redis "+version, "it can be a node of multilock only without restart guard, and has no shard channels", do)
	}
}

// checkConfig checks settings that INFO does not show.
func (c *checkup) checkConfig(ctx context.Context) error {
	names := []string{"appendonly", "appendfsync", "timeout"}
	if c.mode == rueidis.ClientModeCluster {
		names = append(names, "cluster-require-full-coverage", "cluster-node-timeout")
	}
	config := map[string]string{}
	for _, name := range names { // Redis 6.2 takes one at a time
		reply, err := c.Do(ctx, c.B().ConfigGet().Parameter(name).Build()).AsStrMap()
		if err != nil {
			return c.noteRefusal(err, "config|get", strings.Join(names, ", "))
		}
		config[name] = reply[name]
	}
	if config["appendonly"] == "yes" {
		switch config["appendfsync"] {
		case "everysec":
			c.note("appendfsync is everysec", "a machine that loses its power forgets the locks of about the last second", "set appendfsync always if two holders would be costly")
		case "no":
			c.note("appendfsync is no", "a machine that loses its power forgets the locks of the last half minute", "set appendfsync everysec, or always")
		}
	}
	if timeout := config["timeout"]; timeout != "0" && timeout != "" {
		c.note("timeout is "+timeout, "Redis closes connections that are idle for so many seconds; a call may meet its end", "set timeout 0")
	}
	if config["cluster-require-full-coverage"] == "yes" {
		c.note("cluster-require-full-coverage is yes", "slots without a master stop the locks of all others as well", "set cluster-require-full-coverage no")
	}
	if ms, err := strconv.Atoi(config["cluster-node-timeout"]); err == nil {
		c.checkFailover("cluster-node-timeout", ms)
	}
	return nil
}

// checkFailover checks a setting of so many ms after which a failover begins.
func (c *checkup) checkFailover(setting string, ms int) {
	if d := time.Duration(ms) * time.Millisecond; d > failoverStart {
		c.note(fmt.Sprintf("%s is %d", setting, ms), fmt.Sprintf("a failover begins after %v only: leases of %v end before, all locks of the master are lost", d, holdfast.DefaultLease),
			"set "+setting+" 5000")
	}
}

// clocksDiffer is by how much clocks do if no NTP sets them.
const clocksDiffer = time.Second

func (c *checkup) checkClock(ctx context.Context) error {
	before := time.Now()
	reply, err := c.Do(ctx, c.B().Time().Build()).AsStrSlice()
	after := time.Now()
	if err != nil || len(reply) != 2 {
		return c.noteRefusal(err, "time", "its clock")
	}
	seconds, _ := strconv.ParseInt(reply[0], 10, 64)
	micros, _ := strconv.ParseInt(reply[1], 10, 64)
	server := time.Unix(seconds, micros*1000)
	off := time.Duration(0)
	switch {
	case server.Before(before):
		off = server.Sub(before)
	case server.After(after):
		off = server.Sub(after)
	}
	if off.Abs() > clocksDiffer {
		c.hurts(fmt.Sprintf("its clock differs from that of this machine by %v", off.Round(time.Millisecond)),
			"the server's clock ends leases: when it is corrected, or a replica with another clock takes over, locks that are held end too early",
			"run NTP on both machines, and let it slew")
	}
	return nil
}

// checkWrites checks that Redis does not refuse writes, by one that changes nothing: it has
// one argument too few, which Redis notices last.
func (c *checkup) checkWrites(ctx context.Context) error {
	name, err := c.ownName(ctx)
	if err != nil || name == "" {
		return err
	}
	err = c.Do(ctx, c.B().Arbitrary("HSET", name, "field", "value", "field").Build()).Error()
	if !wire.Replied(err) {
		return err
	}
	if wire.OutcomeOf(err) == wire.Unavailable {
		c.hurts("it refuses writes: "+readable(err).Error(), "locks cannot be taken, renewed or released", "see what this answer of Redis says")
	}
	return nil
}

// ownName returns the key, or a name that nobody uses; on a Redis Cluster one of this master, or
// "" if the master has no slots any more.
func (c *checkup) ownName(ctx context.Context) (string, error) {
	name := cmp.Or(c.key, "holdfast-doctor")
	if c.mode != rueidis.ClientModeCluster {
		return name, nil
	}
	m := cluster.New(c.Client)
	if err := m.Refresh(ctx); err != nil {
		return "", err
	}
	prefix, _, _ := strings.Cut(cmp.Or(c.key, "holdfast"), "{") // no hash tag, which would choose the slot
	for i := range cluster.Slots * 10 {
		if m.Node(name) == c.server {
			return name, nil
		}
		name = prefix + ":doctor:" + strconv.Itoa(i)
	}
	return "", nil
}
