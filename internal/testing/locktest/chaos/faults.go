package chaos

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// kinds are the faults that there are.
func (c *chaos) kinds() []string {
	all := []string{
		"node away", "nodes paused", "program started",
		"process killed", "process paused", "process stutters",
		"cut off", "requests held", "replies held", "replies late", "requests late",
	}
	if c.how.Lasting {
		all = append(all, "node restarted")
	} else {
		all = append(all, "node restarted empty", "node flushed")
	}
	if c.how.Clocks {
		all = append(all, "clock jumps", "clock runs wrong")
	}
	return all
}

// nodesSuffer brings faults upon the nodes. Those that forget do so one at a time, and
// nothing else is spared. Between there is time for leases that last.
func (c *chaos) nodesSuffer(random *rand.Rand) {
	var next []int // dealt like cards, so that a run of some length has each
	for i := 0; c.sleep(chaosLease + exclusion.UpTo(random, 2*chaosLease)); i++ {
		if i%2 == 0 && !c.sleep(4*chaosLease) {
			return
		}
		if len(next) == 0 {
			next = random.Perm(8)
		}
		what := next[0]
		next = next[1:]
		switch what {
		case 0:
			pause := []time.Duration{10 * time.Millisecond, chaosLease}[random.IntN(2)]
			for _, node := range some(random, 3) {
				c.forget(node, random.IntN(2) == 0)
				c.sleep(exclusion.UpTo(random, pause))
			}
		case 1:
			node := random.IntN(chaosNodes)
			c.did("node away", "%d", node)
			c.nodes[node].Kill()
			c.sleep(exclusion.UpTo(random, 2*chaosLease))
			c.restart(node)
		case 2:
			nodes := some(random, 2)
			c.did("nodes paused", "%v", nodes)
			for _, node := range nodes {
				c.nodes[node].Pause()
			}
			c.sleep(exclusion.UpTo(random, chaosLease))
			for _, node := range nodes {
				c.nodes[node].Resume()
			}
		default:
			c.startPrograms(random)
		}
	}
}

// some are so many of the nodes at least.
func some(random *rand.Rand, least int) []int {
	return random.Perm(chaosNodes)[:least+random.IntN(chaosNodes-least+1)]
}

// forget has a node lose its memory, or only restart if it forgets nothing.
func (c *chaos) forget(node int, flush bool) {
	switch {
	case c.how.Lasting:
		c.did("node restarted", "%d", node)
		c.restart(node)
	case flush:
		c.did("node flushed", "%d", node)
		c.nodes[node].Do(c.t, "FLUSHALL")
	default:
		c.did("node restarted empty", "%d", node)
		c.restart(node)
	}
}

func (c *chaos) restart(node int) {
	c.nodes[node].Restart()
	c.listen(node)
}

// startPrograms has programs start after all nodes have forgotten, while the others take
// no locks but hold what they have.
func (c *chaos) startPrograms(random *rand.Rand) {
	c.processes.Lock() // none is killed or stands still
	defer c.processes.Unlock()
	for _, v := range c.all {
		v.say("still")
	}
	for _, v := range c.all {
		v.child.Expect("still")
	}
	c.sleep(50 * time.Millisecond) // what is under way ends
	var starting, others []*victim
	for _, v := range c.all {
		if v.spoilt.Load() && len(others) < len(c.all)-1 {
			others = append(others, v)
			continue
		}
		starting = append(starting, v)
		for _, p := range v.proxies {
			p.SetDelay(0, 0)
		}
	}
	flush := random.IntN(8) > 0
	for node := range c.nodes {
		c.forget(node, flush)
	}
	for _, v := range starting {
		c.did("program started", "%s", v.name)
		v.say("boot")
	}
	c.sleep(chaosLease/6 + exclusion.UpTo(random, chaosLease/2))
	for _, v := range others {
		v.say("go")
	}
}

// clocksSuffer has the clock of one node be wrong, and after that of another: when all
// leases of that moment are over. Meanwhile some processes reach that node, but not all
// others.
func (c *chaos) clocksSuffer(random *rand.Rand) {
	for c.sleep(chaosLease + chaosLease/10) {
		nodes := random.Perm(chaosNodes)
		n, cut := c.nodes[nodes[0]], nodes[1:2+random.IntN(2)]
		apart := random.Perm(chaosProcesses)[:chaosProcesses/2]
		c.ways(apart, cut, func(p *redistest.Proxy) { p.HoldRequests(true) })
		for until := time.Now().Add(5 * chaosLease); time.Now().Before(until) && c.sleep(exclusion.UpTo(random, chaosLease/3)); {
			if random.IntN(4) > 0 {
				d := exclusion.UpTo(random, 8*time.Second) - 4*time.Second
				c.did("clock jumps", "%d %v", nodes[0], d)
				n.SetClock(d, 1)
			} else {
				rate := []float64{0.5, 2}[random.IntN(2)]
				c.did("clock runs wrong", "%d %v", nodes[0], rate)
				n.SetClock(0, rate)
			}
			c.sleep(exclusion.UpTo(random, chaosLease/3))
			n.SetClock(0, 1)
		}
		c.ways(apart, cut, func(p *redistest.Proxy) { p.HoldRequests(false) })
	}
}

// ways does something to the ways of processes to nodes.
func (c *chaos) ways(processes, nodes []int, do func(*redistest.Proxy)) {
	for _, i := range processes {
		for _, node := range nodes {
			do(c.all[i].proxies[node])
		}
	}
}

// suffer kills and pauses the process.
func (v *victim) suffer() {
	for v.c.sleep(chaosLease/2 + exclusion.UpTo(v.random, 5*chaosLease)) {
		v.c.processes.RLock()
		switch v.random.IntN(4) {
		case 0:
			v.restart()
		case 1:
			v.c.did("process paused", "%s", v.name)
			v.child.Pause()
			v.c.sleep(exclusion.UpTo(v.random, 2*chaosLease))
			v.child.Resume()
		default:
			v.c.did("process stutters", "%s", v.name)
			for range 10 {
				v.child.Pause()
				v.c.sleep(exclusion.UpTo(v.random, chaosLease/5))
				v.child.Resume()
				v.c.sleep(exclusion.UpTo(v.random, chaosLease/8))
			}
		}
		v.c.processes.RUnlock()
	}
}

// loseTouch spoils the process's ways to a part of the nodes, or to all.
func (v *victim) loseTouch(random *rand.Rand) {
	for v.c.sleep(exclusion.UpTo(random, 3*chaosLease)) {
		nodes, d := random.Perm(chaosNodes), exclusion.UpTo(random, 2*chaosLease)
		switch n := random.IntN(10); {
		case n < 5: // a quorum is left
			nodes, d = nodes[:2-n/4], exclusion.UpTo(random, 5*chaosLease)
		case n < 9: // the process is alone with a minority
			nodes, d = nodes[:3+random.IntN(2)], chaosLease+d
		}
		v.spoilt.Store(true)
		switch random.IntN(5) {
		case 0:
			v.spoil("cut off", nodes, d, func(p *redistest.Proxy) { p.Refuse(true); p.Cut() },
				func(p *redistest.Proxy) { p.Refuse(false) })
		case 1:
			v.spoil("requests held", nodes, d, func(p *redistest.Proxy) { p.HoldRequests(true) },
				func(p *redistest.Proxy) { p.HoldRequests(false) })
		case 2:
			v.spoil("replies held", nodes, d, func(p *redistest.Proxy) { p.HoldReplies(true) },
				func(p *redistest.Proxy) { p.HoldReplies(false) })
		default:
			v.overtake(nodes, random)
		}
		v.spoilt.Store(false)
	}
}

// overtake has the process lose its connections while what it has sent is on its way,
// which arrives after what it sends on new ones.
func (v *victim) overtake(nodes []int, random *rand.Rand) {
	v.spoil("requests late", nodes, chaosLease/30+exclusion.UpTo(random, chaosLease/10),
		func(p *redistest.Proxy) { p.OnRequest(func([]string) redistest.Verdict { return redistest.Hold }) },
		func(p *redistest.Proxy) { p.OnRequest(nil) })
	v.drop(nodes)
	v.c.sleep(chaosLease/10 + exclusion.UpTo(random, chaosLease))
	for _, node := range nodes {
		v.proxies[node].Release()
	}
}

// distance has the replies to some processes be late, but not so late that they
// were not waited for.
func (c *chaos) distance(random *rand.Rand) {
	for on := true; on; {
		var far []*victim
		for _, v := range c.all {
			if random.IntN(2) == 0 {
				far = append(far, v)
			}
		}
		c.processes.RLock() // those that start are near
		for _, v := range far {
			late := chaosLease/20 + exclusion.UpTo(random, chaosLease/40)
			c.did("replies late", "%s %v", v.name, late)
			for _, p := range v.proxies {
				p.SetDelay(0, late)
			}
		}
		c.processes.RUnlock()
		on = c.sleep(chaosLease + exclusion.UpTo(random, 3*chaosLease))
		for _, v := range far {
			for _, p := range v.proxies {
				p.SetDelay(0, 0)
			}
		}
	}
}

// spoil does something to the ways to nodes, and takes it back.
func (v *victim) spoil(kind string, nodes []int, d time.Duration, begin, end func(*redistest.Proxy)) {
	v.c.did(kind, "%s %v %v", v.name, nodes, d)
	for _, node := range nodes {
		begin(v.proxies[node])
	}
	v.c.sleep(d)
	for _, node := range nodes {
		end(v.proxies[node])
	}
}

// ends sees what a node does. An owner that the node was told to forget must
// never be given a key again, however late its acquire arrives: for that it leaves a
// tombstone, for a minute.
type ends struct {
	mu     sync.Mutex
	since  time.Time           // when young was begun
	young  map[string]struct{} // owners that were ended
	old    map[string]struct{} // and those before
	orphan []string            // what was found
}

// listen sees what a node does from now on, until it is restarted.
func (c *chaos) listen(node int) {
	c.nodes[node].Monitor(c.t, func(cmd redistest.Command) { c.ends[node].see(node, cmd) })
}

func (e *ends) see(node int, cmd redistest.Command) {
	if !cmd.Scripted || len(cmd.Words) < 3 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	owner := cmd.Words[2]
	switch cmd.Words[0] {
	case "HDEL":
		if time.Since(e.since) > 30*time.Second {
			e.since, e.young, e.old = time.Now(), map[string]struct{}{}, e.young
		}
		e.young[owner] = struct{}{}
	case "HSET":
		_, young := e.young[owner]
		_, old := e.old[owner]
		if young || old {
			e.orphan = append(e.orphan, fmt.Sprintf("%v node %d: %q", locktest.Clock(), node, cmd.Words))
		}
	}
}

// orphans are the owners that were given a key after their end.
func (c *chaos) orphans() (all []string) {
	for _, e := range c.ends {
		e.mu.Lock()
		all = append(all, e.orphan...)
		e.mu.Unlock()
	}
	return all
}
