package fair_test

// The model of the fair protocol. This file and scripts_test.go are Redis:
// what the scripts read, write and answer, as Go functions. TestModelIsWhatRedisDoes
// holds them against the Lua that runs in production. The other model files are
// the clients, the network and the search through all that may happen.

// modelOwner is an owner, from 1 on. 0 is none.
type modelOwner int8

const (
	modelOwners  = 32 // owners are less
	modelQueue   = 10 // waiters in a queue are less
	modelClients = 3
	modelNamed   = 3 // owners in one request at most
	modelMembers = 2 // of a run at most
)

// modelSet is a set of owners.
type modelSet uint32

func (s modelSet) has(o modelOwner) bool      { return s>>o&1 == 1 }
func (s *modelSet) add(o modelOwner)          { *s |= 1 << o }
func (s *modelSet) remove(o modelOwner)       { *s &^= 1 << o }
func (s modelSet) with(o modelOwner) modelSet { return s | 1<<o }

// modelRedis is what Redis knows of one key. Times are in ticks.
type modelRedis struct {
	holder modelOwner
	left   int8                   // of the lease
	queue  [modelQueue]modelOwner // the list; 0 from its end on
	scores modelSet               // the owners in the sorted set
	alive  [modelClients]int8     // until the heartbeat is stale; 0: it is, or there is none
	polls  [modelClients]int8     // for how long it counts as one that looks for what it does not hear
	heard  [modelClients]bool     // somebody listens to the client's inbox
	stones modelSet               // owners with a tombstone
	fence  int8                   // the counter
}

// modelRules are the settings that the clients have in common.
type modelRules struct {
	client   [modelOwners]int8 // of each owner; immutable
	first    int8              // grant lease
	stale    int8              // after which a silent client counts as dead
	members  int8              // of a run at most
	fences   bool              // holds get fence numbers
	mistakes modelMistakes
}

// modelMistakes are bugs that the search must find. Each takes one rule out.
type modelMistakes struct {
	heartbeatMovesTrust bool // what a heartbeat has found is trusted from the heartbeat on
	enterMovesTrust     bool // what a repeated enter has found is trusted from the repeat on
	ownersAgain         bool // a waiter that lost its place enters again with the same owner
	leaveKeepsHold      bool // a leave ends no hold that raced with it
	noTombstone         bool
	heartbeatBlind      bool // a heartbeat does not serve a free lock
	runServesDoubt      bool // a run serves a member whose enter had to be repeated
	longRenewal         bool // a grant is trusted for the grant lease though renewals set a shorter one
	undeliveredKept     bool // a grant that nobody heard is not undone
	releaseForgets      bool // a release with a tombstone leaves an owner in the queue that a late enter has put there
	repeatsGranted      bool // an enter is repeated also for owners that were granted the lock meanwhile
}

// modelGrant is the lock, given to owner. Without a lease it is only known that
// the owner holds it.
type modelGrant struct {
	owner           modelOwner
	lease           int8
	fence, fenceEnd int8
	members         [modelMembers]modelOwner // of the run; 0 from its end on
}

// modelNobody is no client: of a grant that reaches none, or of a caller that wants to
// hear of it from its inbox.
const modelNobody int8 = -1

func (r *modelRedis) length() (n int) {
	for r.queue[n] != 0 {
		n++
	}
	return n
}

func (r *modelRedis) push(o modelOwner) {
	r.queue[r.length()] = o
	r.scores.add(o)
}

// remove takes the first o out of the list.
func (r *modelRedis) remove(o modelOwner) {
	for i, at := range r.queue {
		if at == o && o != 0 {
			copy(r.queue[i:], r.queue[i+1:])
			return
		}
	}
}

func (r *modelRedis) free() { r.holder, r.left = 0, 0 }

// expire lets one tick pass.
func (r *modelRedis) expire() {
	if r.left--; r.left <= 0 {
		r.free()
	}
	for c := range r.alive {
		r.alive[c], r.polls[c] = max(r.alive[c]-1, 0), max(r.polls[c]-1, 0)
	}
}

func (r *modelRedis) mint(x *modelRules, numbers int8) (first, last int8) {
	if !x.fences {
		return 0, 0
	}
	first, r.fence = r.fence+1, r.fence+numbers
	return first, r.fence
}

// run names those of owner's client that follow it without a gap.
func (r *modelRedis) run(x *modelRules, at int) (names [modelMembers]modelOwner) {
	for i := range int(x.members) {
		next := r.queue[at+1+i]
		if next == 0 || x.client[next] != x.client[r.queue[at]] {
			break
		}
		names[i] = next
	}
	return names
}

// serve gives the free lock to the first waiter that lives, and returns the
// client that has to hear of the grant.
func (r *modelRedis) serve(x *modelRules, me int8) (to int8, g modelGrant) {
	var undelivered [modelClients]bool
	for at := 0; r.queue[at] != 0; {
		owner := r.queue[at]
		of := x.client[owner]
		switch {
		case r.alive[of] == 0:
			r.remove(owner)
			r.scores.remove(owner)
		case undelivered[of]:
			at++
		case of != me && !r.heard[of] && r.polls[of] == 0 && !x.mistakes.undeliveredKept:
			undelivered[of] = true
			at++
		default:
			numbers, members := int8(1), r.run(x, at)
			if members[0] != 0 {
				numbers += x.members
			}
			g.fence, g.fenceEnd = r.mint(x, numbers)
			r.holder, r.left = owner, x.first
			r.remove(owner)
			r.scores.remove(owner)
			if of != me && !r.heard[of] {
				return modelNobody, modelGrant{}
			}
			g.owner, g.lease, g.members = owner, x.first, members
			return of, g
		}
	}
	return modelNobody, modelGrant{}
}
