package locktest

import (
	"slices"
	"strings"
	"testing"
)

// faultCase is one row of the table of faults, or a part of one. Its name starts
// with the row: F12_MessageLost.
type faultCase struct {
	name string
	run  func(t *testing.T, d Kind)
	fair bool // of fair locks only
	many bool // of quorums of several nodes only
	solo bool // runs before the others: it counts goroutines or bytes, or needs both processors
}

// faults are all registered cases; written by init functions only.
var faults []faultCase

// register adds a case to the table; files call it in init.
func register(name string, run func(t *testing.T, d Kind)) {
	faults = append(faults, faultCase{name: name, run: run})
}

// registerFair adds a case for fair locks only.
func registerFair(name string, run func(t *testing.T, d Kind)) {
	faults = append(faults, faultCase{name: name, run: run, fair: true})
}

// registerMany adds a case for quorums of several nodes only.
func registerMany(name string, run func(t *testing.T, d Kind)) {
	faults = append(faults, faultCase{name: name, run: run, many: true})
}

// registerSolo adds a case that runs by itself.
func registerSolo(name string, run func(t *testing.T, d Kind)) {
	faults = append(faults, faultCase{name: name, run: run, solo: true})
}

// leftOut says whether a quorum does not run the case: clocks that are wrong on all
// nodes at once are more than it bears. Cases of its own have one of them wrong.
func (c faultCase) leftOut() bool { return strings.HasPrefix(c.name, "F34_") }

// row is the part of a case's name that sorts: the number of its row.
func (c faultCase) row() string {
	number, _, _ := strings.Cut(c.name, "_")
	return strings.Repeat("0", max(0, 4-len(number))) + number[1:]
}

// RunFaults runs every case against d, in the order of the rows, several at once.
func RunFaults(t *testing.T, d Kind) {
	slices.SortStableFunc(faults, func(a, b faultCase) int { return strings.Compare(a.row(), b.row()) })
	for _, c := range faults {
		if c.fair && !d.Fair || c.many && d.Nodes < 2 || !c.many && d.Nodes > 0 && c.leftOut() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if !c.solo {
				t.Parallel()
			}
			c.run(t, d)
		})
	}
}
