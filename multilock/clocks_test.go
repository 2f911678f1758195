package multilock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// patient gives nodes the time that a test holds up calls to them.
var patient = multilock.WithNodeTimeout(3 * time.Second)

// Clocks jump before the nodes that lack a lease are asked again: a rival's failed round had
// them. By default that lets two holders in; WithClockFaults(k) keeps them apart while no
// more than k clocks jump.
func TestG1_F34_ClocksThatJumpBeforeTheRepair(t *testing.T) {
	const nodes = 5
	for _, c := range []struct {
		faults, missing int // nodes that the rival has
		got             bool
		jumps           int
		two             bool
	}{
		{0, 2, true, 0, false}, {0, 2, true, 1, true},
		{1, 2, false, 0, false}, {1, 1, true, 1, false},
		{2, 1, false, 0, false}, {2, 0, true, 2, false},
	} {
		t.Run(fmt.Sprintf("%d faults, %d missing, %d jumps", c.faults, c.missing, c.jumps), func(t *testing.T) {
			inWorld(t, 4, nodes, func(w world) {
				votes, faults := nodes-c.missing, multilock.WithClockFaults(c.faults)
				rival, holder, second, third := w.open(0, patient), w.open(1, patient, faults), w.open(2, patient, faults), w.open(3, patient)
				w.vote(rival)
				require.NoError(w, rival.Do(w.Context(), "other", func(context.Context) error { return nil })) // it knows the nodes
				for _, l := range w.Links[0][:votes] {
					l.HoldRequests(true)
				}
				failed := locktest.Go(func() error { return locktest.ErrOf(rival.TryLock(w.Context(), "k")) })
				settle()
				for _, l := range w.Links[1][votes:] {
					asked := false
					l.OnRequest(func(cmd []string) redistest.Verdict {
						if !slices.Contains(cmd, "k") {
							return redistest.Pass
						}
						if asked {
							return redistest.Hold // a repair
						}
						asked = true
						return redistest.Pass
					})
				}
				lease, err := holder.TryLock(w.Context(), "k")
				settle() // it has all answers
				for _, l := range w.Links[0][:votes] {
					l.Cut()
				}
				require.Error(w, <-failed)
				if !c.got {
					require.ErrorContains(w, err, fmt.Sprintf("of 5 nodes said yes, %d are needed", 3+c.faults))
					return
				}
				require.NoError(w, err)
				settle()
				require.Equal(w, make([]string, c.missing), w.owners("k")[votes:])

				for _, s := range w.Servers[:c.jumps] {
					s.JumpClock(time.Hour)
				}
				_, err = second.TryLock(w.Context(), "k")
				_, err2 := third.TryLock(w.Context(), "k")
				require.NoError(w, lease.Err())
				require.Equal(w, c.two, err == nil || err2 == nil, "two holders, as far as this mode promises")
			})
		})
	}
}

// A holder dies at the end of its lease, which ends later on one node: after a late repair, or by a
// slow clock. No waiter waits for that node.
func TestG4_F34_CrashWhileOneNodeKeepsTheLease(t *testing.T) {
	const lease = 12 * time.Second
	for name, keep := range map[string]struct{ before, then func(world) }{
		"after a late repair": {before: func(w world) {
			w.Servers[2].Pause()
			time.AfterFunc(8*time.Second, w.Servers[2].Resume)
		}, then: func(world) {}},
		"by a slow clock": {before: func(world) {}, then: func(w world) { w.Servers[2].JumpClock(-time.Minute) }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, 3, func(w world) {
				a, b := w.open(0), w.open(1, patient)
				w.vote(b)
				w.Links[1][1].SetDelay(0, 100*time.Millisecond) // the last node is among the first to answer
				began := time.Now()
				keep.before(w)
				w.lock(a, "k", holdfast.FixedLease(lease))
				time.Sleep(lease - 2*time.Second)
				keep.then(w)
				for _, l := range w.Links[0] {
					l.Refuse(true)
					l.Cut()
				}
				dead := w.owners("k")[2]
				require.NotEmpty(w, dead)
				w.lock(b, "k")
				require.InDelta(w, lease, time.Since(began), float64(time.Second))
				require.Equal(w, dead, w.owners("k")[2], "the last node still has it")
			})
		})
	}
}
