package fair_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/model"
)

// The worlds that are searched: two or three clients, two to four waiters, each with
// one lease to live. Every order of their steps, of the scripts and of the messages
// is tried, with as many faults as the world's budget allows: calls and replies that
// are slow, lost or late, clients that stop for a while, crash or lose their
// subscription, waits that are given up, a queue that is deleted.
//
// In each state at most one lease is believed in, and it is the one that Redis holds;
// no live waiter is overtaken, except as documented; fence numbers grow; an owner never
// comes back after its end was answered. From each state on, once nothing fails any more,
// every waiter is served: the next one within two heartbeats after the present lease, and
// if a client has vanished silently, the stale time and one grant lease later.
//
// Not in the model: Java, jumps of the server's clock, Redis losing its memory, the end
// of a tombstone after its minute, and more than one key.

// modelTwoClients are two clients with two waiters and one, of which anything may
// fail, some of it twice.
func modelTwoClients(change ...func(*modelWorld)) *modelWorld {
	x := &modelWorld{
		name:       "two clients",
		modelRules: modelRules{first: 2, stale: 2},
		of:         [modelWaiters]int8{0, 0, 1, modelNobody},
		lease:      [modelClients]int8{3, 3, 3},
		most:       2,
		prompt:     true,
		budget:     modelFaults{all: 2, slows: 2, stops: 2, timeouts: 2, cuts: 1, crashes: 1, cancels: 2},
	}
	for _, f := range change {
		f(x)
	}
	return x
}

func modelPair(x *modelWorld) {
	x.name, x.of = "a pair", [modelWaiters]int8{0, 1, modelNobody, modelNobody}
}
func modelThree(x *modelWorld) {
	x.name, x.of = "three clients", [modelWaiters]int8{0, 1, 2, modelNobody}
}
func modelRuns(x *modelWorld) {
	x.name, x.members = "runs", 2
	x.of = [modelWaiters]int8{0, 0, 0, 1}
}
func modelRun(x *modelWorld) { x.name, x.members = "a run of two", 1 }
func modelShort(x *modelWorld) { // renewed leases shorter than the grant lease
	x.name, x.first, x.renews, x.lease[1] = "short leases", 3, true, 2
}
func modelFixed(x *modelWorld)   { x.name, x.first, x.fixed[0] = "a fixed lease", 3, 1 }
func modelTries(x *modelWorld)   { x.name, x.tries = "first attempts", true }
func modelFenced(x *modelWorld)  { x.name, x.fences = "fences", true }
func modelDeletes(x *modelWorld) { x.name, x.budget.deletes = "a deleted queue", 1 }

func modelRarely(x *modelWorld) { // of each kind of fault at most one, and calls are slow only where a client stops
	x.budget = modelFaults{all: 2, stops: 1, timeouts: 1, cuts: 1, crashes: 1, cancels: 1}
}

func modelSluggish(x *modelWorld) { // any delay is no fault, but there are no others
	x.name, x.prompt, x.lease, x.budget = "any delays", false, [modelClients]int8{2, 2, 2}, modelFaults{}
}

func modelFailing(n int8) func(*modelWorld) {
	return func(x *modelWorld) { x.budget.all = n }
}

func TestG1_G4_G8_ModelIsSafeAndLive(t *testing.T) {
	most := 1_000_000
	worlds := []*modelWorld{
		modelTwoClients(modelPair),
		modelTwoClients(modelRarely),
		modelTwoClients(modelThree, modelFailing(1)),
		modelTwoClients(modelRuns, modelFailing(1)),
		modelTwoClients(modelRun, modelFenced, modelFailing(1)),
		modelTwoClients(modelDeletes, modelFailing(1)),
		modelTwoClients(modelPair, modelShort, modelFailing(1)),
		modelTwoClients(modelPair, modelFixed),
		modelTwoClients(modelPair, modelTries),
	}
	if model.Long {
		most = 3_000_000
		for _, x := range worlds {
			x.budget.all++
		}
		worlds = append(worlds, modelTwoClients(modelPair, modelSluggish))
	}
	if testing.Short() {
		most = 10_000
	}
	total, did := 0, [modelActionKinds]int{}
	for _, x := range worlds {
		t.Run(x.name, func(t *testing.T) {
			s := newModelSearch(x, "", most, true)
			s.Proves(t)
			total += s.States()
			for kind, n := range s.did {
				did[kind] += n
			}
		})
	}
	t.Logf("%d states", total)
	if !t.Failed() && !testing.Short() {
		did[modelSendHeartbeat] = 1 // in a prompt world it is part of the tick
		require.NotContains(t, did[:], 0, "each kind of action was taken")
	}
}

func TestModelFindsSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	lost, cut := modelFaults{all: 2, slows: 1, timeouts: 1}, modelFaults{all: 2, cuts: 1, stops: 1}
	for _, c := range []struct {
		name     string
		want     string
		world    func(*modelWorld)
		faults   modelFaults
		mistakes modelMistakes
	}{
		{"a heartbeat moves the trust", modelTwo, modelPair, cut, modelMistakes{heartbeatMovesTrust: true}},
		{"a repeated enter moves the trust", modelTwo, modelPair, lost, modelMistakes{enterMovesTrust: true}},
		{"owner numbers are used again", modelTwo, modelPair, cut, modelMistakes{ownersAgain: true}},
		{"leave keeps a grant", modelLeftOver, modelPair, modelFaults{all: 1, cancels: 1}, modelMistakes{leaveKeepsHold: true}},
		{"no tombstone", modelLeftOver, modelPair, lost, modelMistakes{noTombstone: true}},
		{"the heartbeat does not look", modelLost, modelPair, modelFaults{all: 1, crashes: 1}, modelMistakes{heartbeatBlind: true}},
		{"a run serves a member that entered again", modelLeftOver, modelRun, lost, modelMistakes{runServesDoubt: true}},
		{"a grant outlasts a short renewed lease", modelTwo, modelShort, lost, modelMistakes{longRenewal: true}},
		{"a grant that nobody heard stays", modelUndelivered, modelPair, cut, modelMistakes{undeliveredKept: true}},
		{"a release leaves a late enter in the queue", modelLeftOver, modelPair, lost, modelMistakes{releaseForgets: true}},
		{"an enter is repeated for a waiter that was granted the lock", modelLeftOver, modelRuns, lost, modelMistakes{repeatsGranted: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := modelTwoClients(c.world)
			x.budget, x.mistakes = c.faults, c.mistakes
			newModelSearch(x, c.want, 1_000_000, c.want == modelLost).Finds(t)
		})
	}
}
