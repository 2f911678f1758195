package multilock_test

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

// modelBoots has clients call Bootstrap.
func modelBoots(calls int8) func(*modelWorld) {
	return func(x *modelWorld) {
		x.bootstrap, x.limits.boots = true, calls
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
