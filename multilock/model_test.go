package multilock_test

import (
	"testing"
	"time"
)

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

func modelThree(x *modelWorld)  { x.of = [modelOwners]int8{0, 1, 2, modelNobody} }
func modelAgain(x *modelWorld)  { x.of = [modelOwners]int8{0, 0, 1, modelNobody} }
func modelRenews(x *modelWorld) { x.renews = true }
func modelRough(x *modelWorld)  { x.rough = true }
func modelSkew(x *modelWorld)   { x.kinds[0].skew = 2 }
func modelBoots(x *modelWorld) {
	x.fresh, x.bootstrap, x.limits.boots = true, true, 2
	for n := range x.kinds {
		x.kinds[n].order = int8(n + 1)
	}
}
func modelStill(x *modelWorld)  { x.still = true }
func modelFenced(x *modelWorld) { x.fences = true }
func modelDrift(x *modelWorld)  { x.lease, x.margin, x.drift = 3, 1, true }
func modelReplica(x *modelWorld) {
	x.kinds[0].replicated, x.limits.promotes, x.limits.syncs = 1, -1, -1
}
func modelCopies(x *modelWorld)             { x.kinds[2].copied, x.limits.promotes = 1, -1 }
func modelWrong(x *modelWorld)              { x.kinds[0].wrong = 1 }
func modelEmptied(n int8) func(*modelWorld) { return func(x *modelWorld) { x.limits.empties = n } }
func modelLosses(n int8) func(*modelWorld)  { return func(x *modelWorld) { x.limits.losses = n } }

// modelHolding has client 0 hold the lock on nodes 0 and 1 already.
func modelHolding(x *modelWorld) {
	x.prefix = []modelAction{{modelLock, 0, 0}, {modelArrive, 0, 0}, {modelAnswer, 0, 0}, {modelArrive, 1, 0}, {modelAnswer, 1, 0}}
}

// modelHoldingThird has it hold the lock on node 2 as well, of which it does not know.
func modelHoldingThird(x *modelWorld) {
	modelHolding(x)
	x.prefix = append(x.prefix, modelAction{modelArrive, 2, 0}, modelAction{modelTimeout, 2, 0})
}

func TestModelTry(t *testing.T) {
	for _, w := range []struct {
		name string
		x    *modelWorld
	}{
		{"wrong empties", modelTwoClients(modelWrong, modelStill, modelEmptied(-1))},
		{"fence wrong", modelTwoClients(modelFenced, modelStill, modelSkew, modelWrong)},
		{"boot 2", modelTwoClients(modelBoots, modelStill, modelEmptied(2))},
		{"boot 3", modelTwoClients(modelBoots, modelStill, modelEmptied(3))},
		{"copy 1", modelTwoClients(modelCopies, func(x *modelWorld) { x.limits.promotes = 1 })},
		{"replica 1 sync 1", modelTwoClients(modelReplica, func(x *modelWorld) { x.limits.promotes = 1; x.limits.syncs = 1 })},
		{"renew empty 1", modelTwoClients(modelRenews, modelHolding, modelEmptied(1))},
		{"wrong empties 1", modelTwoClients(modelWrong, modelEmptied(1))},
	} {
		t.Run(w.name, func(t *testing.T) {
			began := time.Now()
			s := newModelSearch(w.x, "", 700_000)
			s.proves(t)
			t.Log(time.Since(began))
		})
	}
}

func TestModelFindsSeeds(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  string
		world *modelWorld
		seed  func(*modelSeeds)
	}{
		{"no delayed restart", modelTwo, modelTwoClients(modelEmptied(1)), func(s *modelSeeds) { s.noDelay = true }},
		{"any marker will do", modelTwo, modelTwoClients(modelEmptied(1)), func(s *modelSeeds) { s.existence = true }},
		{"the epoch without the reign", modelTwo, modelTwoClients(modelReplica), func(s *modelSeeds) { s.noReign = true }},
		{"an unknown script is sent as text", modelTwo, modelTwoClients(modelReplica), func(s *modelSeeds) { s.noReign, s.evalFallback = true, true }},
		{"a renewal counts without a vote", modelTwo, modelTwoClients(modelCopies, modelRenews, modelHolding, func(x *modelWorld) { x.limits.promotes = 1 }), func(s *modelSeeds) { s.voidCounts = true }},
		{"the validity counts from the reply", modelTwo, modelTwoClients(), func(s *modelSeeds) { s.fromReply = true }},
		{"only who said yes is released", modelLeftOver, modelTwoClients(modelLosses(1)), func(s *modelSeeds) { s.onlyAcquired = true }},
		{"who denied is not released", modelLeftOver, modelTwoClients(modelRenews, modelRough), func(s *modelSeeds) { s.deniedForgotten = true }},
		{"no tombstone", modelLeftOver, modelTwoClients(modelLosses(1)), func(s *modelSeeds) { s.noStone = true }},
		{"the fence is not written back", modelFence, modelTwoClients(modelFenced, modelStill, modelSkew), func(s *modelSeeds) { s.noWriteBack = true }},
		{"the fence is written back to others", modelFence, modelTwoClients(modelFenced, modelStill, modelSkew, func(x *modelWorld) { x.kinds[1].wrong = 1 }), func(s *modelSeeds) { s.writesToOthers = true }},
		{"a repair counts as a renewal", modelTwo, modelTwoClients(modelRenews, modelLosses(1), modelHoldingThird), func(s *modelSeeds) { s.repairCounts = true }},
		{"an acquire that is asked again has a new start", modelTwo, modelTwoClients(modelEmptied(1)), func(s *modelSeeds) { s.newStart = true }},
		{"late numbers are given back", modelFence, modelTwoClients(modelFenced, modelStill, modelThree), func(s *modelSeeds) { s.givesBackLate = true }},
		{"no margin", modelTwo, modelTwoClients(modelDrift), func(s *modelSeeds) { s.noMargin = true }},
		{"a hold that is over is repaired", modelLeftOver, modelTwoClients(modelRenews, modelLosses(1)), func(s *modelSeeds) { s.repairsEnded = true }},
		{"a renewal counts from its reply", modelTwo, modelTwoClients(modelRenews, modelRough, modelHolding), func(s *modelSeeds) { s.unlimited = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.seed(&c.world.seeds)
			c.world.name = c.name
			newModelSearch(c.world, c.want, 600_000).found(t)
		})
	}
}
