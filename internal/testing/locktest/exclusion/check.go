// Package exclusion has processes compete for locks while they are disturbed, and checks
// what they record: that no two held a lock at once, that fences and a fair queue kept
// their order.
package exclusion

import (
	"fmt"
	"slices"
	"time"
)

// Interval is the time during which one lease was believed in: from the return
// of the acquire to the first of its deadline, the call of Unlock and the close
// of Done, on the clock that all processes share.
type Interval struct {
	key    string
	id     string // of the lease
	owner  string // of the hold
	reads  bool   // it excludes no other that reads
	called time.Duration
	from   time.Duration
	to     time.Duration
	until  time.Duration // the last deadline, to which the holder may have believed in it
	fence  int64         // 0 without fencing
	ahead  bool          // the fence is above the clock
}

func (i Interval) String() string {
	return fmt.Sprintf("lease %s of %s from %v to %v with fence %d", i.id, i.key, i.from, i.to, i.fence)
}

// Breaches are what an exclusion check finds.
type Breaches struct {
	Overlaps  []string // two leases of a key at once
	Disorder  []string // a lease with a fence not above those of earlier leases that exclude it
	Explained int      // overlaps of two holds of which a failover may have lost one
}

func (b Breaches) any() bool { return len(b.Overlaps)+len(b.Disorder) > 0 }

// Check sorts the intervals and sweeps over each key. Leases that were over before their
// acquire returned do not count: no holder believed in them. Those of readers may overlap one
// another, and share fences.
func Check(all []Interval, failovers ...Failover) (b Breaches) {
	byKey, holds := map[string][]Interval{}, holds{}
	for _, i := range all {
		if i.from < i.to {
			byKey[i.key] = append(byKey[i.key], i)
			holds.add(i)
		}
	}
	for key, list := range byKey {
		var here []Failover
		for _, f := range failovers {
			if f.keys[key] {
				here = append(here, f)
			}
		}
		slices.SortFunc(list, func(a, b Interval) int { return int(a.from - b.from) })
		var alive []Interval
		tops := map[bool][]Interval{false: {{}}, true: {{}}} // the highest fence of so many leases, and for readers, of writers' among them
		for n, i := range list {
			alive = slices.DeleteFunc(alive, func(a Interval) bool { return a.to <= i.from })
			for _, a := range alive {
				switch {
				case a.reads && i.reads:
				case holds.explains(here, a, i):
					b.Explained++
				default:
					b.Overlaps = append(b.Overlaps, fmt.Sprintf("%v overlaps %v", i, a))
				}
			}
			alive = append(alive, i)
			top := tops[i.reads][n]
			if i.fence <= top.fence && holds.explains(here, top, i) { // two masters may have granted at once; but not if one had before
				called := holds[holdOf(i)].called
				before, _ := slices.BinarySearchFunc(list, called, func(a Interval, at time.Duration) int { return int(a.from - at) })
				top = tops[i.reads][before]
			}
			if i.fence != 0 && i.fence <= top.fence && !rolledBack(here, top, i) {
				b.Disorder = append(b.Disorder, fmt.Sprintf("%v comes after %v", i, top))
			}
			for reads := range tops {
				top := tops[reads][n]
				if i.fence > top.fence && !(reads && i.reads) {
					top = i
				}
				tops[reads] = append(tops[reads], top)
			}
		}
	}
	return b
}

// rolledBack reports whether the second lease may have a smaller fence by the exception of G10
// in docs/guarantees.md: a failover lost the counter, which an attempt that was undone had
// moved ahead of the clock.
func rolledBack(failovers []Failover, first, second Interval) bool {
	return first.ahead && slices.ContainsFunc(failovers, func(f Failover) bool {
		return first.from <= f.to && f.from <= second.from && second.from <= f.told
	})
}

// holds are the owners of keys, each with all leases that it had by local handover as one
// interval.
type holds map[[2]string]Interval

func holdOf(i Interval) [2]string { return [2]string{i.key, i.owner} }

func (h holds) add(i Interval) {
	if was, ok := h[holdOf(i)]; ok {
		i.called, i.from, i.to = min(i.called, was.called), min(i.from, was.from), max(i.to, was.to)
		i.until = max(i.until, was.until)
	}
	h[holdOf(i)] = i
}

// explains reports whether one of the failovers may have lost the hold of one of two leases,
// so that the other was granted, and whether no renewal has confirmed the lost one since.
func (h holds) explains(failovers []Failover, one, other Interval) bool {
	a, b := h[holdOf(one)], h[holdOf(other)]
	return a != b && slices.ContainsFunc(failovers, func(f Failover) bool {
		return f.from <= max(a.from, b.from) && min(a.called, b.called) <= f.to && min(a.until, b.until) <= f.told
	})
}
