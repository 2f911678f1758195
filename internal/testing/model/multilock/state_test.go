package multilock_test

import "slices"

// modelPhase is where an owner stands.
type modelPhase int8

const (
	modelIdle    modelPhase = iota // its round has not begun
	modelAsking                    // all nodes are asked
	modelFencing                   // a quorum has said yes, the fence is written back
	modelHeld                      // the lease is alive
	modelOver                      // failed, released or lost
)

// modelRow is what a client knows of an owner.
type modelRow struct {
	phase    modelPhase
	age      int8 // ticks since the start of the round
	trust    int8 // ticks left of the lease
	renewing int8 // 1: a renewal is under way
	since    int8 // ticks since its start
	fence    int8 // number of the lease
	forced   int8 // 1: a ForceUnlock has taken a node from it: nothing is promised to it
	exposed  int8 // 1: nor is anything, as a clock has jumped
}

// modelAsk is how far an acquire on a node is.
type modelAsk int8

const (
	modelNoAsk    modelAsk = iota
	modelToAsk             // it waits for the vote, or for the repairer
	modelAsked             // on its way
	modelAskedYes          // done; the yes is on its way
)

// modelReply is the reply of a node in a round.
type modelReply int8

const (
	modelPending modelReply = iota
	modelRepliedYes
	modelRepliedHeld
	modelFailed // no answer, or no vote
)

// modelRenew is how far a renewal on a node is.
type modelRenew int8

const (
	modelNoRenew   modelRenew = iota
	modelRenewSent            // on its way
	modelRenewYes             // done; a yes that counts is on its way
	modelDenying              // done; a no is on its way
	modelRenewed              // a yes that counts
	modelDenied               // a no
	modelRenewVoid            // no answer, or one that does not count
)

// modelCell is what a client knows of an owner on one node, and what is on its way
// between them.
type modelCell struct {
	ask   modelAsk
	text  modelMarker    // of the acquire on its way
	late  [2]modelMarker // texts of acquires that were given up and may still be done
	reply modelReply
	there modelThere
	doubt int8 // 1: an acquire was not answered
	plain int8 // 1: it is asked by the repairer, which reserves no fence numbers
	renew modelRenew
	slow  int8 // 1: a renewal that has been given up may still be done
	end   int8 // 1: the owner is to be ended there; 2: as the holder of a number
	write modelWriting
	wrote int8 // 1: a fence that is not waited for any more may still be written there
	gave  int8 // 1: its yes was one of those from whose numbers the largest was taken, and it was not asked again
	mint  int8 // fence number that the node has said
}

// modelThere is what a client knows of a hold on a node.
type modelThere int8

const (
	modelAbsent  modelThere = iota
	modelPresent            // the node has said so
	modelUnsure             // it has denied it; but it may have been added since
)

// modelWriting is how far a fence's writing back to a node is.
type modelWriting int8

const (
	modelNoWrite   modelWriting = iota
	modelWriteSent              // on its way; the round waits for it
	modelWritten
	modelUnwritten
	modelRaising // on its way to a node that has said yes later; nobody counts it
)

// modelBudget is how many of each may still happen; -1: any number.
type modelBudget struct {
	losses   int8 // calls or replies that are lost or late; rounds that are cut short
	empties  int8 // restarts and flushes
	promotes int8 // promotions
	syncs    int8 // of the replica
	deletes  int8 // of a hold, by hand
	forces   int8 // calls of ForceUnlock
	unmarks  int8 // of a node's marker, by hand
	boots    int8 // calls of DeclareNothingHeld
}

func spend(left *int8) {
	if *left > 0 {
		*left--
	}
}

// modelState is all that there is at one moment.
type modelState struct {
	nodes  [modelNodes]modelNode
	rows   [modelOwners]modelRow
	boots  [modelClients]int8 // how far each client's DeclareNothingHeld is
	budget modelBudget
	used   int8 // largest fence number of a lease
}

// modelRules are the numbers of the protocol and what is left out of it.
type modelRules struct {
	lease    int8               // ticks
	fixed    [modelOwners]int8  // ticks of a lease that is another, and is never renewed; 0: none
	most     [modelClients]int8 // WithMaxLease of each client; 0: the longest lease that there is
	nodes    [modelClients]int8 // of each client, the first ones; 0: all
	clocks   [modelClients]int8 // WithClockFaults of each
	margin   int8               // by which a client's trust ends earlier
	fences   bool
	mistakes modelMistakes
}

// modelMistakes are the mistakes that a search must find.
type modelMistakes struct {
	noDelay         bool // a node votes right after a restart
	existence       bool // that there is a marker is enough
	noReplID        bool // the replID is not looked at
	evalFallback    bool // an unknown script is sent as a text, pinned to what is there
	voidCounts      bool // a renewal's yes counts without a vote
	fromReply       bool // the validity counts from the reply
	onlyAcquired    bool // only nodes that have said yes are released
	deniedForgotten bool // only nodes are released that have not denied the hold since
	noStone         bool // releases leave no tombstones
	noWriteBack     bool // the fence is not written back
	writesToOthers  bool // it is, to any holder
	repairCounts    bool // a repair that finds the hold counts as a renewal
	newStart        bool // an acquire that is asked again has a new start
	givesBackLate   bool // a round that may have come late gives numbers back
	noMargin        bool // of the clocks' drift
	repairsEnded    bool // a hold that is over is still repaired
	unlimited       bool // a renewal counts from its reply
	usualDelay      bool // a node that restarted waits for the usual lease, not for the longest
	anyLongest      bool // clients of any longest lease vote
	anySize         bool // clients with any number of nodes vote
	quorumRenews    bool // a quorum is enough for a renewal, whatever a lease needs
	asksNobody      bool // a node is marked whatever the others are
	startDeclares   bool // a program's start gives nodes their vote that nobody has marked
	heldStays       bool // a node that said "held" is not asked again before the next renewal
}

// size is the number of a client's nodes.
func (x *modelRules) size(c int8) int8 {
	if x.nodes[c] > 0 {
		return x.nodes[c]
	}
	return modelNodes
}

// quorum is more than half of a client's nodes.
func (x *modelRules) quorum(c int8) int { return int(x.size(c))/2 + 1 }

// need is how many votes a lease of a client needs, and its renewals.
func (x *modelRules) need(c int8) int { return x.quorum(c) + int(x.clocks[c]) }

// longest is a client's WithMaxLease.
func (x *modelRules) longest(c int8) int8 {
	if x.most[c] > 0 {
		return x.most[c]
	}
	return max(x.lease, slices.Max(x.fixed[:]))
}

// quarantine is for how many ticks a node has no vote that is marked for a longest
// lease.
func (x *modelRules) quarantine(longest int8) int8 {
	switch {
	case x.mistakes.noDelay:
		return 0
	case x.mistakes.usualDelay:
		return x.lease
	}
	return longest
}

// leaseOf is an owner's lease.
func (x *modelRules) leaseOf(i int) int8 {
	if x.fixed[i] > 0 {
		return x.fixed[i]
	}
	return x.lease
}

// believed is for how many ticks a client trusts a lease that began now.
func (x *modelRules) believed(i int) int8 {
	if x.mistakes.noMargin {
		return x.leaseOf(i)
	}
	return x.leaseOf(i) - x.margin
}

// modelFencesPerTick are the microseconds of a tick, so to say. Fence numbers are
// counted from the servers' present time.
const modelFencesPerTick = 3

// floor is a fence number that is too old to matter.
func (x *modelRules) floor() int8 {
	if !x.fences {
		return 0
	}
	return -modelFencesPerTick * (2*x.lease + 1)
}

// older has a tick go by for a fence number.
func (x *modelRules) older(fence *int8) {
	*fence = max(*fence-modelFencesPerTick, x.floor())
}
