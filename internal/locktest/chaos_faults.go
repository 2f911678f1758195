package locktest

import (
	"strconv"
	"sync"
	"time"

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
			c.clock(i, d, []string{"+1", "-1", "+3", "-3"}[int(d)%4])
		},
		"clock runs wrong": func(i int, d time.Duration) { c.clock(i, d, []string{"+0 x2", "+0 x0.5"}[int(d)%2]) },
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

func (c *chaos) clock(node int, d time.Duration, to string) {
	c.nodes[node].SetClock(to)
	time.Sleep(d)
	c.nodes[node].SetClock("+0")
}

// anyFault brings faults upon two nodes at most, and lets everything heal: what a
// lease has missed on one node, and what a wrong clock does to it on another, come
// out of one budget for its whole life. Nodes whose clocks are true may fail one
// after the other: restarts and flushes cost votes only.
func (c *chaos) anyFault(end time.Time) {
	first := c.random.IntN(chaosNodes)
	second := (first + 1 + c.random.IntN(chaosNodes-1)) % chaosNodes
	until := time.Now().Add(4 * chaosLease)
	var both sync.WaitGroup
	for _, node := range []int{first, second} {
		seed := c.random.Uint64()
		both.Go(func() { c.suffer(node, seed, until) })
	}
	both.Wait()
	time.Sleep(min(3*chaosLease, max(time.Until(end), 0)))
}

// suffer brings faults upon one node until the given time.
func (c *chaos) suffer(node int, seed uint64, until time.Time) {
	names := []string{
		"node restarted empty", "node flushed", "node paused", "node cut off",
		"requests held", "replies held", "clock jumps", "clock runs wrong",
	}
	for time.Now().Before(until) {
		seed = seed*6364136223846793005 + 1442695040888963407
		name := names[seed>>33%uint64(len(names))]
		d := time.Duration(seed>>20%uint64(chaosLease)) + time.Millisecond
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
		c.nodes[i].SetClock("+" + strconv.Itoa(2+c.random.IntN(20)))
	}
	time.Sleep(chaosLease / 2)
}

func (c *chaos) noFault(time.Time) { time.Sleep(chaosLease) }
