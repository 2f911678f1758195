package locktest

import (
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// kinds are the faults of nodes by name. Each lasts for the given time, and is
// healed when it returns.
func (c *chaos) kinds() map[string]func(node int, d time.Duration) {
	return map[string]func(int, time.Duration){
		"node restarted empty": func(i int, d time.Duration) {
			c.nodes[i].Kill()
			time.Sleep(d)
			c.nodes[i].Restart()
		},
		"node flushed": func(i int, _ time.Duration) { c.nodes[i].Do(c.t, "FLUSHALL") },
		"node paused": func(i int, d time.Duration) {
			c.nodes[i].Pause()
			time.Sleep(d)
			c.nodes[i].Resume()
		},
		"node cut off": func(i int, d time.Duration) {
			c.ways(i, func(p *redistest.Proxy) { p.Refuse(true); p.Cut() })
			time.Sleep(d)
			c.ways(i, func(p *redistest.Proxy) { p.Refuse(false) })
		},
		"requests held": func(i int, d time.Duration) { c.held(i, d, (*redistest.Proxy).HoldRequests) },
		"replies held":  func(i int, d time.Duration) { c.held(i, d, (*redistest.Proxy).HoldReplies) },
		"clock jumps": func(i int, d time.Duration) {
			c.clock(i, d, wrongClock{[]time.Duration{time.Second, -time.Second, 3 * time.Second, -3 * time.Second}[int(d)%4], 1})
		},
		"clock runs wrong": func(i int, d time.Duration) { c.clock(i, d, wrongClock{0, []float64{2, 0.5}[int(d)%2]}) },
	}
}

// ways does something to the ways of all processes to a node.
func (c *chaos) ways(node int, do func(*redistest.Proxy)) {
	for _, v := range c.all {
		do(v.proxies[node])
	}
}

// held keeps what travels in one direction on its way: for all processes, or but
// for one.
func (c *chaos) held(node int, d time.Duration, hold func(*redistest.Proxy, bool)) {
	spared := int(d) % (2 * len(c.all))
	for i, v := range c.all {
		if i != spared {
			hold(v.proxies[node], true)
		}
	}
	time.Sleep(d)
	for _, v := range c.all {
		hold(v.proxies[node], false)
	}
}

// clock moves a node's clock for a time.
func (c *chaos) clock(node int, d time.Duration, to wrongClock) {
	c.still(node, func() { c.nodes[node].SetClock(to.ahead, to.rate) })
	time.Sleep(d)
	c.still(node, func() { c.nodes[node].SetClock(0, 1) })
}

// still does f when nobody is taking a lock, and what a node holds is held by all
// nodes that do not suffer. A clock that jumps ahead ends at once what is on its
// node: it must not meet a lease that others of the healthy nodes are still to be
// asked for, as that has missed them.
func (c *chaos) still(node int, f func()) {
	c.standing.Lock()
	defer c.standing.Unlock()
	for _, v := range c.all {
		v.child.Say("still")
	}
	for _, v := range c.all {
		v.child.Expect("still")
	}
	await(c.t, func() bool { return c.whole(node) })
	f()
	for _, v := range c.all {
		v.child.Say("go")
	}
}

// whole says whether what a node holds is held by all nodes that do not suffer.
func (c *chaos) whole(node int) bool {
	for k := range exclusionKeys {
		holder := c.holder(node, k)
		for i := range c.nodes {
			if holder != "" && !c.suffering[i] && c.holder(i, k) != holder {
				return false
			}
		}
	}
	return true
}

func (c *chaos) holder(node, key int) string {
	m := c.nodes[node].Do(c.t, "HKEYS", exclusionKey(key))
	owners, err := m.AsStrSlice()
	require.NoError(c.t, err)
	return strings.Join(owners, " ")
}

// anyFault brings faults upon two nodes at most, and lets everything heal. What a
// lease has missed on one node, and what a wrong clock does to it on another, come
// out of one budget for its whole life; what a dead process has left on a node is
// missing there, too. So while clocks are wrong, processes are left alone. Nodes
// whose clocks are true may fail one after the other, and processes beside them:
// restarts and flushes cost votes only.
func (c *chaos) anyFault(end time.Time) {
	first := c.random.IntN(chaosNodes)
	second := (first + 1 + c.random.IntN(chaosNodes-1)) % chaosNodes
	names := []string{"node restarted empty", "node flushed", "node paused", "node cut off", "requests held", "replies held"}
	if c.random.IntN(2) == 0 {
		names = append(names, "clock jumps", "clock runs wrong", "clock jumps", "clock runs wrong")
		c.processes.Lock()
		defer c.processes.Unlock()
	}
	c.suffering = map[int]bool{first: true, second: true}
	until := time.Now().Add(4 * chaosLease)
	var both sync.WaitGroup
	for _, node := range []int{first, second} {
		random := rand.New(rand.NewPCG(c.random.Uint64(), 0))
		both.Go(func() { c.suffer(node, names, random, until) })
	}
	both.Wait()
	time.Sleep(min(3*chaosLease, max(time.Until(end), 0)))
}

// suffer brings faults upon one node until the given time.
func (c *chaos) suffer(node int, names []string, random *rand.Rand, until time.Time) {
	for time.Now().Before(until) {
		name := names[random.IntN(len(names))]
		d := time.Millisecond + upTo(random, chaosLease)
		c.kinds()[name](node, d)
		c.count(name)
		time.Sleep(d / 4)
	}
}

// restarts restarts a majority of the nodes.
func (c *chaos) restarts(time.Time) {
	for i := range 3 {
		c.nodes[i].Restart()
	}
	time.Sleep(chaosLease / 8)
}

// wrongClocks makes three clocks jump.
func (c *chaos) wrongClocks(time.Time) {
	for i := range 3 {
		c.nodes[i].SetClock(time.Duration(2+c.random.IntN(20))*time.Second, 1)
	}
	time.Sleep(chaosLease / 2)
}

func (c *chaos) noFault(time.Time) { time.Sleep(chaosLease) }
