// Package exclusion has processes compete for locks while they are disturbed, and checks
// what they record: that no two held a lock at once, that fences and a fair queue kept
// their order, that the history is linearizable.
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
	key   string
	id    string // of the lease
	from  time.Duration
	to    time.Duration
	fence int64 // 0 without fencing
}

func (i Interval) String() string {
	return fmt.Sprintf("lease %s of %s from %v to %v with fence %d", i.id, i.key, i.from, i.to, i.fence)
}

// Breaches are what an exclusion check finds.
type Breaches struct {
	Overlaps []string // two leases of a key at once
	Disorder []string // a lease with a fence not above those of earlier leases
}

// Check sorts the intervals and sweeps over each key. Leases that were over before their
// acquire returned do not count: no holder believed in them.
func Check(all []Interval) (b Breaches) {
	byKey := map[string][]Interval{}
	for _, i := range all {
		if i.from < i.to {
			byKey[i.key] = append(byKey[i.key], i)
		}
	}
	for _, list := range byKey {
		slices.SortFunc(list, func(a, b Interval) int { return int(a.from - b.from) })
		longest, highest := list[0], list[0]
		for _, i := range list[1:] {
			if i.from < longest.to {
				b.Overlaps = append(b.Overlaps, fmt.Sprintf("%v overlaps %v", i, longest))
			}
			if i.fence != 0 && i.fence <= highest.fence {
				b.Disorder = append(b.Disorder, fmt.Sprintf("%v comes after %v", i, highest))
			}
			if i.to > longest.to {
				longest = i
			}
			if i.fence > highest.fence {
				highest = i
			}
		}
	}
	return b
}
