package campaign_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

var every = flag.Int("every", 199, "how many cut points lie between those that are tried")

// point is a moment of the scenario: that of the k-th request or reply of all links to the first
// server. The others are like it.
type point struct {
	reply bool
	k     int // 0: none
}

func (p point) String() string {
	if p.reply {
		return fmt.Sprint("reply ", p.k)
	}
	return fmt.Sprint("request ", p.k)
}

// cut is a mishap of a link at a point.
type cut struct {
	point
	what sim.FaultKind
	long time.Duration
}

// cutLease is the lease in the scenario.
const cutLease = 6 * time.Second

// cuts are what may happen to the link at a point; of several servers, to the links of that
// process to most of them, as a quorum does not miss the others. A link that is cut when a reply arrives loses
// that reply. What is held is held for more than a lease, or is late by less: then it must find
// a tombstone.
var cuts = []cut{
	{point{}, sim.Cut, 0},
	{point{}, sim.HoldRequests, cutLease * 3 / 2},
	{point{}, sim.HoldReplies, cutLease * 3 / 2},
	{point{}, sim.Straggle, cutLease * 3 / 2},
	{point{}, sim.Straggle, cutLease * 5 / 6},
	{point{}, sim.Fade, cutLease * 7 / 5},
	{point{reply: true}, sim.Cut, 0},
	{point{reply: true}, sim.HoldRequests, cutLease * 3 / 2},
	{point{reply: true}, sim.HoldReplies, cutLease * 3 / 2},
}

// arm brings about the cut when its point comes. It counts the requests and the replies.
func (c *campaign) arm(cut cut, all *sync.WaitGroup) (requests, replies *atomic.Int64) {
	requests, replies = new(atomic.Int64), new(atomic.Int64)
	for p, links := range c.world.Links {
		hook := func(reply bool, seen *atomic.Int64) redistest.Hook {
			return func([]string) redistest.Verdict {
				if int(seen.Add(1)) != cut.k || reply != cut.reply {
					return redistest.Pass
				}
				for s := range c.need() {
					f := sim.Fault{For: cut.long, What: cut.what, Process: p, Server: s}
					c.judge.fault(f)
					all.Go(func() { c.world.Bring(f) })
				}
				if cut.what == sim.Straggle {
					return redistest.Hold
				}
				return redistest.Pass
			}
		}
		links[0].OnRequest(hook(false, requests))
		links[0].OnReply(hook(true, replies))
	}
	return requests, replies
}

// scenario is three lockers that meet in all ways: they wait, leave, enter again, hold for
// longer than the third of a lease after which it is renewed, hold fixed and capped leases, and close.
func (c *campaign) scenario() {
	const ms = time.Millisecond
	var all sync.WaitGroup
	take := func(p int, who, name string, limit, hold time.Duration, opts ...holdfast.LockOption) {
		_ = c.take(context.Background(), half{c.kind == "rwlock" && strings.HasPrefix(who, "C")}, p, who, name, limit, opts, func(l *holdfast.Lease) context.Context {
			rest(hold, l.Done())
			return context.Background()
		})
	}
	_ = c.take(context.Background(), half{}, 0, "A1", "k0", -1, nil, func(l *holdfast.Lease) context.Context {
		all.Go(func() { take(1, "B1", "k0", -1, 200*ms) })
		time.Sleep(10 * ms)
		all.Go(func() { take(2, "C1", "k0", 4*c.lease, 50*ms) })
		time.Sleep(10 * ms)
		leaves, cancel := context.WithTimeout(context.Background(), 700*ms)
		defer cancel()
		all.Go(func() {
			_ = c.take(leaves, half{c.kind == "rwlock"}, 1, "B2", "k0", -1, nil, func(*holdfast.Lease) context.Context { return leaves })
		})
		time.Sleep(10 * ms)
		all.Go(func() { take(2, "C2", "k0", -1, 300*ms, holdfast.FixedLease(c.lease/3)) })
		time.Sleep(10 * ms)
		all.Go(func() { take(0, "A2", "k0", -1, 20*ms) })
		all.Go(func() { take(2, "C3", "k0", -1, 5*ms) })
		nested, _ := c.locker(0).Lock(l.Bind(context.Background()), "k0")
		rest(c.lease/3+300*ms, l.Done())
		if nested != nil {
			_ = nested.Unlock(context.Background())
		}
		return context.Background()
	})
	time.Sleep(300 * ms)
	all.Go(func() { take(0, "A3", "k1", 0, 100*ms) })
	time.Sleep(5 * ms)
	all.Go(func() { take(1, "B3", "k1", 0, 10*ms) })
	all.Go(func() { take(1, "B4", "k1", c.lease, 10*c.lease, holdfast.MaxHold(c.lease/2)) })
	all.Go(func() { take(2, "C4", "k1", 3*c.lease, 10*ms) })
	all.Wait()

	all.Go(func() { take(2, "C5", "k1", c.lease, 10*c.lease) }) // until it closes
	all.Go(func() { take(0, "A5", "k0", 2*c.lease, 100*ms) })
	time.Sleep(5 * ms)
	all.Go(func() { take(2, "C6", "k0", 2*c.lease, 100*ms) })
	all.Go(func() { take(1, "B5", "k1", 3*c.lease, 10*ms) })
	time.Sleep(20 * ms)
	c.renew(2)
	all.Wait()

	take(0, "A6", "k1", 0, 10*ms) // an acquire that is late finds the key free
	time.Sleep(c.lease * 11 / 12)
	all.Go(func() { take(2, "C7", "k1", -1, 300*ms) })
	time.Sleep(10 * ms)
	all.Go(func() { take(1, "B6", "k1", -1, 2*c.lease) }) // by a grant that may be late
	time.Sleep(10 * ms)
	all.Go(func() { take(0, "A7", "k1", -1, 10*ms) })
	all.Wait()

	take(1, "B7", "k0", -1, c.lease*2/3) // and so does a renewal
	time.Sleep(c.lease / 2)
	take(2, "C8", "k0", -1, 10*ms)

	all.Go(func() { take(0, "A8", "k0", -1, 50*ms) })
	time.Sleep(10 * ms)
	all.Go(func() { take(1, "B8", "k0", -1, 2*c.lease, holdfast.FixedLease(c.lease*2/3)) }) // it runs out, and a confirmation may be late
	time.Sleep(10 * ms)
	all.Go(func() { take(2, "C9", "k0", -1, 10*ms) })
	all.Wait()
}

// served checks, after the cut is over, that each process gets each key, as soon as what has
// been left behind must be over.
func (c *campaign) served() {
	for _, name := range c.names() {
		for p := range c.processes {
			who, began := fmt.Sprint("last of process ", p), time.Now()
			err := c.take(context.Background(), half{}, p, who, name, 3*c.lease, nil, func(*holdfast.Lease) context.Context { return context.Background() })
			if took := time.Since(began); err != nil || took > c.lease+100*time.Millisecond {
				c.judge.mu.Lock()
				c.judge.breaks("UNSERVED %s after %v: %v", name, took, err)
				c.judge.mu.Unlock()
			}
		}
	}
}

// play plays the scenario with a cut, and says how many requests and replies there were. A semaphore has so many permits.
func play(t *testing.T, kind string, permits int, cut cut) (c *campaign, requests, replies int) {
	c = &campaign{
		kind: kind, seed: 1, lease: cutLease, keys: 2, processes: 3, callers: 3, nodes: 1,
		permits: permits, fencing: kind != "semaphore", handover: true, bound: kinds[kind].of(cutLease),
	}
	if kind == "multilock" {
		c.nodes = 3
	}
	synctest.Test(t, func(t *testing.T) {
		c.lead(t, func(all *sync.WaitGroup) {
			var faults sync.WaitGroup
			a, b := c.arm(cut, &faults)
			all.Go(func() {
				c.scenario()
				requests, replies = int(a.Swap(1<<40)), int(b.Swap(1<<40)) // no cut from now on
				faults.Wait()
				c.served()
			})
		})
	})
	return c, requests, replies
}

// One fault of a link at any moment breaks no promise: the scenario is played once for each of
// its requests and replies, and each thing that may happen there. Short runs try some of them.
func TestG4_CutPoints(t *testing.T) {
	type scene struct {
		kind    string
		permits int
	}
	scenes := map[string]scene{"semaphore of two": {"semaphore", 2}}
	for kind := range kinds {
		scenes[kind] = scene{kind, 1}
	}
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			_, requests, replies := play(t, s.kind, s.permits, cut{})
			step := *every
			if s.kind == "multilock" && step > 1 {
				step *= 4 // a scenario takes four times as long
			}
			for _, cut := range cuts {
				side, points := "request", requests
				if cut.reply {
					side, points = "reply", replies
				}
				t.Run(fmt.Sprintf("%s for %v at a %s", cut.what, cut.long, side), func(t *testing.T) {
					t.Parallel()
					for cut.k = (step + 1) / 2; cut.k <= points && !t.Failed(); cut.k += step {
						c, _, _ := play(t, s.kind, s.permits, cut)
						for _, b := range c.judge.broken {
							t.Errorf("%s, %s at %v: %s", name, cut.what, cut.point, b)
						}
					}
					t.Logf("%d points", points)
				})
			}
		})
	}
}
