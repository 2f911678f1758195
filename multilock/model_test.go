package multilock_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// The worlds that are searched: three nodes, two or three clients, one key, a round or
// two for each client. Every order of their steps, of the calls and of the answers is
// tried, and time may pass between any two. Calls and answers are lost, late, or done
// when nobody waits for them any more; nodes restart, are flushed, promoted from a
// replica that lags, or made a copy of another node.
//
// In each state at most one lease is believed in; fence numbers grow from holder to
// holder; on a node that has been told of an owner's end, or needs not be, the owner
// holds nothing and never will again. (What a promotion brings back is left to its
// expiry.)
//
// A node whose clock is wrong is in the model too. Then the other two must have given a
// lease, or nothing is promised for it: missing nodes and wrong clocks share a budget.
// That holds for restarted nodes as well: two that ask while one clock is wrong and
// another node restarts may both get the lock.
//
// Not in the model: nested entries, hand-over in the process, the end of a tombstone
// after its minute, and of what the keeper has to tell after a lease.

// modelLong asks for the long search: worlds too large for every day.
var modelLong = os.Getenv("MODEL") == "long"

func TestG1_G6_G7_G10_ModelIsSafe(t *testing.T) {
	most := 1_000_000
	worlds := []*modelWorld{
		modelNamed("anything is lost", modelLosses(-1)),
		modelNamed("any restarts", modelEmptied(-1)),
		modelNamed("a restart that strangers see first", modelStrangers, modelHolding, modelEmptied(1)),
		modelNamed("anything in no time", modelStill, modelLosses(-1), modelEmptied(-1)),
		modelNamed("drift", modelDrift),
		modelNamed("renewals", modelRenews),
		modelNamed("two rounds", modelAgain, modelStill),
		modelNamed("three clients", modelThree, modelStill),
		modelNamed("a replica beside a holder", modelReplica(0), modelHolding),
		modelNamed("a copy in no time", modelCopied, modelHolding, modelRenews, modelRough, modelStill),
		modelNamed("fences", modelFenced, modelStill, modelThree),
		modelNamed("fences, skew and a loss", modelFenced, modelStill, modelSkew, modelLosses(1)),
		modelNamed("fences and a deletion", modelFenced, modelStill, modelSkew, modelDeleted, modelPrompt),
		modelNamed("a wrong clock", modelWrong),
		modelNamed("a wrong clock and a restart", modelWrong, modelEmptied(1)),
		modelNamed("a wrong clock and renewals", modelWrong, modelRenews),
		modelNamed("a late renewal in no time", modelRenews, modelRough, modelStill, modelHolding, modelLosses(1)),
		modelNamed("a fixed lease and a restart", modelFixed, modelEmptied(1)),
		modelNamed("a ForceUnlock", modelForces),
		modelNamed("a ForceUnlock and a loss in no time", modelForces, modelStill, modelLosses(1)),
		modelNamed("a ForceUnlock beside fences", modelForces, modelFenced, modelStill, modelSkew),
		modelNamed("longest leases that differ", modelLongests, modelEmptied(1)),
		modelNamed("longest leases that differ on new nodes", modelLongests, modelFresh),
		modelNamed("bootstrap beside a holder", modelBoots(1), modelHolding, modelStill, modelEmptied(2)),
	}
	if modelLong {
		most = 6_000_000
		worlds = append(worlds,
			modelNamed("any restarts among strangers", modelStrangers, modelEmptied(-1)),
			modelNamed("renewals and restarts in no time", modelRenews, modelRough, modelStill, modelHolding, modelEmptied(1)),
			modelNamed("losses and restarts", modelLosses(1), modelEmptied(-1)),
			modelNamed("renewals and a restart", modelRenews, modelEmptied(1)),
			modelNamed("renewals and a loss", modelRenews, modelLosses(1)),
			modelNamed("rough renewals", modelRenews, modelRough),
			modelNamed("a replica that follows", modelReplica(-1)),
			modelNamed("a copy", modelCopied),
			modelNamed("renewals and a copy", modelCopied, modelRenews, modelHolding),
			modelNamed("a wrong clock and restarts", modelWrong, modelEmptied(-1)),
			modelNamed("two rounds in time", modelAgain),
			modelNamed("two at bootstrap", modelBoots(2), modelStill, modelEmptied(1), modelFresh),
			modelNamed("late renewals in no time", modelRenews, modelRough, modelStill, modelHolding, modelLosses(-1)),
			modelNamed("a wrong clock, renewals and a loss", modelWrong, modelRenews, modelHolding, modelLosses(1)),
			modelNamed("a ForceUnlock and renewals", modelForces, modelRenews, modelHolding),
			modelNamed("a ForceUnlock, fences and a loss", modelForces, modelFenced, modelStill, modelSkew, modelLosses(1)),
			modelNamed("a fixed lease, renewals and restarts", modelFixed, modelRenews, modelEmptied(1)),
		)
	}
	if modelRace {
		most = 10_000
	}
	ran, total, did, met := 0, 0, [modelActionKinds]int{}, uint32(0)
	for _, x := range worlds {
		t.Run(x.name, func(t *testing.T) {
			s := newModelSearch(x, "", most)
			s.proves(t)
			ran++
			total += len(s.parents)
			met |= s.met
			for kind, n := range s.did {
				did[kind] += n
			}
		})
	}
	t.Logf("%d states", total)
	if ran == len(worlds) && !modelRace && !modelLong {
		for _, kind := range []modelActionKind{modelFlush, modelSync, modelMove} {
			did[kind] = 1 // in the long search, or with seeds only
		}
		require.NotContains(t, did[:], 0, "each kind of action was taken")
		require.Equal(t, uint32(1)<<modelRepair|1<<modelVoidYes|1<<modelLateYes|0b1011, met&^(0b1110<<modelLateYes), "each meeting")
	}
}
