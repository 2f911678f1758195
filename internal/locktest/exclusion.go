package locktest

import (
	"fmt"
	"slices"
	"time"
)

// interval is the time during which one lease was believed in: from the return
// of the acquire to the first of its deadline, the call of Unlock and the close
// of Done, on the clock that all processes share.
type interval struct {
	key   string
	id    string // of the lease
	from  time.Duration
	to    time.Duration
	fence int64 // 0 without fencing
}

func (i interval) String() string {
	return fmt.Sprintf("lease %s of %s from %v to %v with fence %d", i.id, i.key, i.from, i.to, i.fence)
}

// breaches are what an exclusion check finds.
type breaches struct {
	overlaps []string // two leases of a key at once
	disorder []string // a lease with a fence not above those of earlier leases
}

// checkExclusion sorts the intervals and sweeps over each key. Leases that were
// over before their acquire returned count for nothing: nobody believed in them.
func checkExclusion(all []interval) (b breaches) {
	byKey := map[string][]interval{}
	for _, i := range all {
		if i.from < i.to {
			byKey[i.key] = append(byKey[i.key], i)
		}
	}
	for _, list := range byKey {
		slices.SortFunc(list, func(a, b interval) int { return int(a.from - b.from) })
		longest, highest := list[0], list[0]
		for _, i := range list[1:] {
			if i.from < longest.to {
				b.overlaps = append(b.overlaps, fmt.Sprintf("%v overlaps %v", i, longest))
			}
			if i.fence != 0 && i.fence <= highest.fence {
				b.disorder = append(b.disorder, fmt.Sprintf("%v comes after %v", i, highest))
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
