package multilock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/model"
)

// Each mistake is found, with the shortest way to it.
func TestModelFindsSeeds(t *testing.T) {
	if model.Race || testing.Short() {
		t.Skip("make test-all runs it, without the race detector")
	}
	for _, c := range []struct {
		name  string
		want  string
		world *modelWorld
		seed  func(*modelSeeds)
	}{
		{"no delayed restart", modelTwo, modelTwoClients(modelEmptied(1)), func(s *modelSeeds) { s.noDelay = true }},
		{"any marker will do", modelTwo, modelTwoClients(modelStrangers, modelEmptied(1)), func(s *modelSeeds) { s.existence = true }},
		{"the epoch without the replID", modelTwo, modelTwoClients(modelReplica(0)), func(s *modelSeeds) { s.noReplID = true }},
		{"an unknown script is sent as text", modelTwo, modelTwoClients(modelReplica(0), modelMoves), func(s *modelSeeds) { s.evalFallback = true }},
		{"a renewal counts without a vote", modelTwo, modelTwoClients(modelCopied, modelRenews, modelHolding), func(s *modelSeeds) { s.voidCounts = true }},
		{"the validity counts from the reply", modelTwo, modelTwoClients(), func(s *modelSeeds) { s.fromReply = true }},
		{"a renewal counts from its reply", modelTwo, modelTwoClients(modelRenews, modelRough, modelHolding), func(s *modelSeeds) { s.unlimited = true }},
		{"a repair counts as a renewal", modelTwo, modelTwoClients(modelRenews, modelLosses(1), modelHoldingThird), func(s *modelSeeds) { s.repairCounts = true }},
		{"an acquire that is asked again has a new start", modelTwo, modelTwoClients(modelStrangers, modelEmptied(1)), func(s *modelSeeds) { s.newStart = true }},
		{"no margin", modelTwo, modelTwoClients(modelDrift), func(s *modelSeeds) { s.noMargin = true }},
		{"only who said yes is released", modelLeftOver, modelTwoClients(modelLosses(1)), func(s *modelSeeds) { s.onlyAcquired = true }},
		{"who has denied the hold is not released", modelLeftOver, modelTwoClients(modelRenews, modelRough), func(s *modelSeeds) { s.deniedForgotten = true }},
		{"no tombstone", modelLeftOver, modelTwoClients(modelLosses(1)), func(s *modelSeeds) { s.noStone = true }},
		{"a hold that is over is repaired", modelLeftOver, modelTwoClients(modelRenews, modelLosses(1)), func(s *modelSeeds) { s.repairsEnded = true }},
		{"the fence is not written back", modelFence, modelTwoClients(modelFenced, modelStill, modelSkew), func(s *modelSeeds) { s.noWriteBack = true }},
		{"the fence is written back to others", modelFence, modelTwoClients(modelFenced, modelStill, modelSkew, modelDeleted, modelPrompt), func(s *modelSeeds) {
			s.writesToOthers = true
		}},
		{"who may have come late gives numbers back", modelFence, modelTwoClients(modelFenced, modelStill, modelThree), func(s *modelSeeds) {
			s.givesBackLate = true
		}},
		{"a node that said it is held is not asked again", modelMissing, modelTwoClients(), func(s *modelSeeds) { s.heldStays = true }},
		{"a restart is waited out for the usual lease", modelTwo, modelTwoClients(modelFixed, modelStrangers, modelEmptied(1)), func(s *modelSeeds) { s.usualDelay = true }},
		{"clients of any longest lease vote", modelTwo, modelTwoClients(modelLongests, modelEmptied(1)), func(s *modelSeeds) { s.anyLongest = true }},
		{"a node is marked whatever the others are", modelTwo, modelTwoClients(modelLongests, modelEmptied(2)), func(s *modelSeeds) { s.asksNobody = true }},
		{"all nodes forget, and the longest leases differ", modelTwo, modelTwoClients(modelLongests, modelEmptied(3)), func(*modelSeeds) {}},
		{"a clock jumps while a node lacks a lease", modelTwo, modelTwoClients(modelWrong, modelExact), func(*modelSeeds) {}},
		{"a quorum is enough for a renewal", modelTwo, modelTwoClients(modelClocks, modelRenews), func(s *modelSeeds) { s.quorumRenews = true }},
		{"a set grows by two", modelTwo, modelTwoClients(modelSizes(1)), func(*modelSeeds) {}},
		{"clients of any number of nodes vote", modelTwo, modelTwoClients(modelSizes(1), modelUsed), func(s *modelSeeds) { s.anySize = true }},
		{"a start gives new nodes their vote", modelTwo, modelTwoClients(modelBoots(1), modelHolding, modelStill, modelEmptied(3)), func(s *modelSeeds) { s.oldBootstrap = true }},
		{"NothingHeld, which all nodes have forgotten", modelTwo, modelTwoClients(modelBoots(1), modelHolding, modelStill, modelEmptied(3)), func(*modelSeeds) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.seed(&c.world.seeds)
			c.world.name = c.name
			newModelSearch(c.world, c.want, 1_000_000).Finds(t)
		})
	}
}
