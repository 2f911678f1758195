package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/model"
)

// The worlds that are searched: three nodes, two or three clients, one key, a round or
// two for each client. Every order of their steps, of the calls and of the answers is
// tried, and time may pass between any two. Calls and answers are lost, late, or done
// when no caller waits for them any more; nodes restart, are flushed, promoted from a
// replica that lags, or made a copy of another node.
//
// In each state at most one lease is believed in; fence numbers grow from holder to
// holder; on a node that has been told of an owner's end, or needs not be, the owner
// holds nothing and never will again. (What a promotion brings back is left to its
// expiry.)
//
// The clock of a node may jump. The holder there is then promised nothing more, unless the
// other two nodes have its lease for as long as it is believed in, a renewal under way
// included: missing nodes and wrong clocks share a budget. A client with WithClockFaults is
// promised everything, even beside one without. Nothing is promised to an owner that loses
// a node to a ForceUnlock.
//
// Clients may differ in their deployment: in its longest lease, and in its number of nodes,
// for which the markers are deleted by hand while the earlier clients go on. Nodes refuse
// such a client as long as one of them remembers: seeds_test.go shows what happens when all
// forget.
//
// Each call that the code makes to a node is one of an action here, or is left out with a
// reason: see notWalked.
//
// Not in the model:
//   - Nested entries, and hand-over in the process.
//   - What Unlock says, and what waits: messages, delays, and that a node which does not
//     answer is not asked for a while. A call that is not sent is one that is lost.
//   - The end of a tombstone after its minute, and of what the repairer has to tell after a
//     lease: that is told as long as it can make a difference.
//   - That it takes time to ask the other nodes before one is marked, and that some may
//     not answer.
//   - Refusals by Redis, nodes that may evict, and nodes without the guard.
//   - One server behind two addresses.
//   - Clocks that step back, and which clocks make a fence number: internal/quorum has a
//     model of that.
//   - A node's memory that is set back with its marker, by a snapshot of its machine.
//   - More than three nodes, two clocks that jump, and more than one key.

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
		modelNamed("longest leases that differ", modelLongests, modelEmptied(2)),
		modelNamed("longest leases that differ on new nodes", modelLongests, modelFresh, modelEmptied(1)),
		modelNamed("a clock that jumps at any moment", modelClocks),
		modelNamed("a clock that jumps, and restarts", modelClocks, modelEmptied(1)),
		modelNamed("a clock that jumps, and renewals", modelClocks, modelRenews),
		modelNamed("a clock that jumps, of which all know", modelClocksAll, modelThree, modelStill, modelEmptied(1)),
		modelNamed("a set that grows by one", modelSizes(2), modelHolding),
		modelNamed("a set of another size", modelSizes(1), modelUsed),
		modelNamed("bootstrap beside a holder", modelBoots(1), modelHolding, modelStill, modelEmptied(2)),
	}
	if model.Long {
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
			modelNamed("a set that grows by one, in use by all", modelSizes(2)),
			modelNamed("late renewals in no time", modelRenews, modelRough, modelStill, modelHolding, modelLosses(-1)),
			modelNamed("a wrong clock, renewals and a loss", modelWrong, modelRenews, modelHolding, modelLosses(1)),
			modelNamed("a ForceUnlock and renewals", modelForces, modelRenews, modelHolding),
			modelNamed("a ForceUnlock, fences and a loss", modelForces, modelFenced, modelStill, modelSkew, modelLosses(1)),
			modelNamed("a fixed lease, renewals and restarts", modelFixed, modelRenews, modelEmptied(1)),
		)
	}
	if model.Race || testing.Short() {
		most = 5_000
	}
	ran, total, did, met := 0, 0, [modelActionKinds]int{}, uint32(0)
	for _, x := range worlds {
		t.Run(x.name, func(t *testing.T) {
			s := newModelSearch(x, "", most)
			s.Proves(t)
			ran++
			total += s.States()
			met |= s.met
			for kind, n := range s.did {
				did[kind] += n
			}
		})
	}
	t.Logf("%d states", total)
	if ran == len(worlds) && !model.Race && !model.Long && !testing.Short() {
		for _, kind := range []modelActionKind{modelFlush, modelSync, modelMove} {
			did[kind] = 1 // in the long search, or with seeds only
		}
		require.NotContains(t, did[:], 0, "each kind of action was taken")
		require.Equal(t, uint32(1)<<modelRepair|1<<modelVoidYes|1<<modelLateYes|0b1011, met&^(0b1110<<modelLateYes), "each meeting")
	}
}
