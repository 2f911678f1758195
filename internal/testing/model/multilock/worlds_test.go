package multilock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/model"
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
// such a client as long as one of them remembers: TestModelFindsSeeds shows what happens
// when all forget.
//
// Each call that the code makes to a node is one of an action here, or is left out with a
// reason: see notWalked.
//
// Not in the model:
//   - Nested entries, and handover in the process.
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

// modelTwoClients are two clients with a round each, on nodes that have a vote.
func modelTwoClients(change ...func(*modelWorld)) *modelWorld {
	x := &modelWorld{
		name:       "two clients",
		modelRules: modelRules{lease: 2},
		of:         [modelOwners]int8{0, 1, modelNobody, modelNobody},
	}
	for _, f := range change {
		f(x)
	}
	return x
}

func modelNamed(name string, change ...func(*modelWorld)) *modelWorld {
	x := modelTwoClients(change...)
	x.name = name
	return x
}

func modelThree(x *modelWorld)     { x.of = [modelOwners]int8{0, 1, 2, modelNobody} }
func modelAgain(x *modelWorld)     { x.of = [modelOwners]int8{0, 0, 1, modelNobody} }
func modelRenews(x *modelWorld)    { x.renews = true }
func modelRough(x *modelWorld)     { x.rough = true }
func modelStill(x *modelWorld)     { x.still = true }
func modelPrompt(x *modelWorld)    { x.prompt = true }
func modelFenced(x *modelWorld)    { x.fences = true }
func modelSkew(x *modelWorld)      { x.kinds[0].skew = 2 }
func modelDrift(x *modelWorld)     { x.lease, x.margin, x.drift = 3, 1, true }
func modelCopied(x *modelWorld)    { x.kinds[2].copied, x.limits.promotes = 1, 1 }
func modelStrangers(x *modelWorld) { x.strangers = 1 }
func modelMoves(x *modelWorld)     { x.moves = true }
func modelDeleted(x *modelWorld)   { x.limits.deletes = 1 }
func modelWrong(x *modelWorld)     { x.kinds[1].wrong = 1 }

// modelFixed has client 0 take a fixed lease that is longer than the others'.
func modelFixed(x *modelWorld) { x.fixed[0] = x.lease + 1 }

// modelLongests has client 0's longest lease be 2, the other's 1.
func modelLongests(x *modelWorld) {
	x.lease, x.fixed[0], x.most, x.strangers = 1, 2, [modelClients]int8{2, 1}, 2
}

func modelFresh(x *modelWorld) { x.fresh = true }

func modelForces(x *modelWorld) { x.limits.forces = 1 }

// modelExact has a clock jump at any moment, and everything promised.
func modelExact(x *modelWorld) { x.exact = true }

// modelClocks has client 0's leases hold out against one clock that jumps at any moment.
func modelClocks(x *modelWorld) { x.kinds[1].wrong, x.clocks[0], x.exact = 1, 1, true }

// modelClocksAll has all leases do.
func modelClocksAll(x *modelWorld) {
	modelClocks(x)
	x.clocks = [modelClients]int8{1, 1, 1}
}

// modelSizes lets client 0 use only some of the nodes, the first ones, as before the set
// grew to all, for which the markers are deleted by hand.
func modelSizes(before int8) func(*modelWorld) {
	return func(x *modelWorld) {
		x.nodes[0], x.strangers, x.limits.unmarks = before, 2, -1
		for n := range x.kinds {
			x.kinds[n].order = int8(n + 1)
		}
	}
}

// modelUsed lets clients of all nodes use them, and does not change.
func modelUsed(x *modelWorld) { x.settled, x.limits.unmarks = true, 0 }

func modelReplica(syncs int8) func(*modelWorld) {
	return func(x *modelWorld) { x.kinds[0].replicated, x.limits.promotes, x.limits.syncs = 1, -1, syncs }
}
func modelEmptied(n int8) func(*modelWorld) { return func(x *modelWorld) { x.limits.empties = n } }
func modelLosses(n int8) func(*modelWorld)  { return func(x *modelWorld) { x.limits.losses = n } }

// modelBoots has clients call DeclareNothingHeld.
func modelBoots(calls int8) func(*modelWorld) {
	return func(x *modelWorld) {
		x.declares, x.limits.boots = true, calls
		for n := range x.kinds {
			x.kinds[n].order = int8(n + 1)
		}
	}
}

// modelHolding has client 0 hold the lock on nodes 0 and 1 already.
func modelHolding(x *modelWorld) {
	x.prefix = []modelAction{{modelLock, 0, 0}, {modelArrive, 0, 0}, {modelAnswer, 0, 0}, {modelArrive, 1, 0}, {modelAnswer, 1, 0}}
}

// modelHoldingThird has it hold the lock on node 2 as well, of which it does not know.
func modelHoldingThird(x *modelWorld) {
	modelHolding(x)
	x.prefix = append(x.prefix, modelAction{modelArrive, 2, 0}, modelAction{modelTimeout, 2, 0})
}

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
		modelNamed("a declaration beside a holder", modelBoots(1), modelHolding, modelStill, modelEmptied(2)),
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
			modelNamed("two declarations", modelBoots(2), modelStill, modelEmptied(1), modelFresh),
			modelNamed("a set that grows by one, in use by all", modelSizes(2)),
			modelNamed("late renewals in no time", modelRenews, modelRough, modelStill, modelHolding, modelLosses(-1)),
			modelNamed("a wrong clock, renewals and a loss", modelWrong, modelRenews, modelHolding, modelLosses(1)),
			modelNamed("a ForceUnlock and renewals", modelForces, modelRenews, modelHolding),
			modelNamed("a ForceUnlock, fences and a loss", modelForces, modelFenced, modelStill, modelSkew, modelLosses(1)),
			modelNamed("a fixed lease, renewals and restarts", modelFixed, modelRenews, modelEmptied(1)),
		)
	}
	if testing.Short() {
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
	if ran == len(worlds) && !model.Long && !testing.Short() {
		for _, kind := range []modelActionKind{modelFlush, modelSync, modelMove} {
			did[kind] = 1 // in the long search, or with mistakes only
		}
		require.NotContains(t, did[:], 0, "each kind of action was taken")
		require.Equal(t, uint32(1)<<modelRepair|1<<modelVoidYes|1<<modelLateYes|0b1011, met&^(0b1110<<modelLateYes), "each meeting")
	}
}

// Each mistake is found, with the shortest way to it.
func TestModelFindsSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for _, c := range []struct {
		name     string
		want     string
		world    *modelWorld
		mistakes modelMistakes
	}{
		{"no delayed restart", modelTwo, modelTwoClients(modelEmptied(1)), modelMistakes{noDelay: true}},
		{"any marker will do", modelTwo, modelTwoClients(modelStrangers, modelEmptied(1)), modelMistakes{existence: true}},
		{"the incarnation without the replID", modelTwo, modelTwoClients(modelReplica(0)), modelMistakes{noReplID: true}},
		{"an unknown script is sent as text", modelTwo, modelTwoClients(modelReplica(0), modelMoves), modelMistakes{evalFallback: true}},
		{"a renewal counts without a vote", modelTwo, modelTwoClients(modelCopied, modelRenews, modelHolding), modelMistakes{voidCounts: true}},
		{"the validity counts from the reply", modelTwo, modelTwoClients(), modelMistakes{fromReply: true}},
		{"a renewal counts from its reply", modelTwo, modelTwoClients(modelRenews, modelRough, modelHolding), modelMistakes{unlimited: true}},
		{"a repair counts as a renewal", modelTwo, modelTwoClients(modelRenews, modelLosses(1), modelHoldingThird), modelMistakes{repairCounts: true}},
		{"an acquire that is asked again has a new start", modelTwo, modelTwoClients(modelStrangers, modelEmptied(1)), modelMistakes{newStart: true}},
		{"no margin", modelTwo, modelTwoClients(modelDrift), modelMistakes{noMargin: true}},
		{"only a node that said yes is released", modelLeftOver, modelTwoClients(modelLosses(1)), modelMistakes{onlyAcquired: true}},
		{"a node that has denied the hold is not released", modelLeftOver, modelTwoClients(modelRenews, modelRough), modelMistakes{deniedForgotten: true}},
		{"no tombstone", modelLeftOver, modelTwoClients(modelLosses(1)), modelMistakes{noStone: true}},
		{"a hold that is over is repaired", modelLeftOver, modelTwoClients(modelRenews, modelLosses(1)), modelMistakes{repairsEnded: true}},
		{"the fence is not written back", modelFence, modelTwoClients(modelFenced, modelStill, modelSkew), modelMistakes{noWriteBack: true}},
		{"the fence is written back to others", modelFence, modelTwoClients(modelFenced, modelStill, modelSkew, modelDeleted, modelPrompt), modelMistakes{writesToOthers: true}},
		{"an attempt that may be late gives numbers back", modelFence, modelTwoClients(modelFenced, modelStill, modelThree), modelMistakes{givesBackLate: true}},
		{"a node that said it is held is not asked again", modelMissing, modelTwoClients(), modelMistakes{heldStays: true}},
		{"a restart is waited out for the usual lease", modelTwo, modelTwoClients(modelFixed, modelStrangers, modelEmptied(1)), modelMistakes{usualDelay: true}},
		{"clients of any longest lease vote", modelTwo, modelTwoClients(modelLongests, modelEmptied(1)), modelMistakes{anyLongest: true}},
		{"a node is marked whatever the others are", modelTwo, modelTwoClients(modelLongests, modelEmptied(2)), modelMistakes{asksNobody: true}},
		{"all nodes forget, and the longest leases differ", modelTwo, modelTwoClients(modelLongests, modelEmptied(3)), modelMistakes{}},
		{"a clock jumps while a node lacks a lease", modelTwo, modelTwoClients(modelWrong, modelExact), modelMistakes{}},
		{"a quorum is enough for a renewal", modelTwo, modelTwoClients(modelClocks, modelRenews), modelMistakes{quorumRenews: true}},
		{"a set grows by two", modelTwo, modelTwoClients(modelSizes(1)), modelMistakes{}},
		{"clients of any number of nodes vote", modelTwo, modelTwoClients(modelSizes(1), modelUsed), modelMistakes{anySize: true}},
		{"a start gives new nodes their vote", modelTwo, modelTwoClients(modelBoots(1), modelHolding, modelStill, modelEmptied(3)), modelMistakes{startDeclares: true}},
		{"NothingHeld, which all nodes have forgotten", modelTwo, modelTwoClients(modelBoots(1), modelHolding, modelStill, modelEmptied(3)), modelMistakes{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.world.name, c.world.mistakes = c.name, c.mistakes
			newModelSearch(c.world, c.want, 1_000_000).Finds(t)
		})
	}
}
