package fair_test

import (
	"math/bits"
	"slices"
)

// modelKind is a script.
type modelKind int8

const (
	modelAcquire modelKind = iota + 1
	modelEnter
	modelRelease
	modelLeave
	modelConfirm
	modelHeartbeat
	modelRenew
)

// modelRequest is a call of a script.
type modelRequest struct {
	kind   modelKind
	client int8
	owners [modelNamed]modelOwner // release: the owner, then the members served; 0 from their end on
	stones int8                   // release, leave: so many owners, the first ones, leave a tombstone
	lease  int8                   // acquire, confirm, renew
	used   int8                   // release: the last fence number used; confirm: the first that came with the grant
	polls  int8                   // heartbeat: 1: the client does not hear its inbox
}

// modelReply answers it.
type modelReply struct {
	status          int8 // acquire, confirm, release, leave, renew: as the Lua says, > 0 where it says a time
	fence, fenceEnd int8
	places          [modelNamed]int8 // enter: of the owners
	absent          modelSet         // heartbeat
	grant           modelGrant       // to the caller's client
}

// modelMessage is a grant on its way to the inbox of a client.
type modelMessage struct {
	to    int8
	grant modelGrant
}

// call runs a script: its reply, and the message that it sends, if to is not
// modelNobody.
func (r *modelRedis) call(x *modelRules, q modelRequest) (modelReply, modelMessage) {
	switch q.kind {
	case modelAcquire:
		return r.acquire(x, q)
	case modelEnter:
		return r.enter(x, q)
	case modelRelease:
		return r.release(x, q)
	case modelLeave:
		return r.leave(x, q)
	case modelConfirm:
		return r.confirm(x, q)
	case modelHeartbeat:
		return r.heartbeat(x, q)
	default:
		return r.renew(q)
	}
}

// served is serve on behalf of q: some learn of the grant from the reply, others from a
// message.
func (r *modelRedis) served(x *modelRules, q modelRequest, reply modelReply) (modelReply, modelMessage) {
	to, g := r.serve(x, q.client)
	if to == q.client {
		reply.grant = g
		to = modelNobody
	}
	return reply, modelMessage{to, g}
}

func quiet(reply modelReply) (modelReply, modelMessage) {
	return reply, modelMessage{to: modelNobody}
}

func (r *modelRedis) acquire(x *modelRules, q modelRequest) (modelReply, modelMessage) {
	owner, message := q.owners[0], modelMessage{to: modelNobody}
	if r.stones.has(owner) {
		return quiet(modelReply{status: -2})
	}
	if r.holder != owner {
		if r.holder != 0 {
			return quiet(modelReply{status: r.left})
		}
		message.to, message.grant = r.serve(x, modelNobody)
		if r.holder != 0 || r.queue[0] != 0 {
			return modelReply{status: 1}, message
		}
		r.holder, r.left = owner, q.lease
	}
	first, last := r.mint(x, 1)
	return modelReply{fence: first, fenceEnd: last}, message
}

func (r *modelRedis) enter(x *modelRules, q modelRequest) (modelReply, modelMessage) {
	if r.queue[0] == 0 {
		r.scores = 0 // left by a queue that somebody has deleted
	}
	r.alive[q.client] = x.stale
	holder := r.holder
	var reply modelReply
	for i, owner := range q.owners {
		switch {
		case owner == 0:
		case r.stones.has(owner):
			reply.places[i] = -2
		case owner == holder:
			reply.places[i] = 0
		default:
			if !r.scores.has(owner) {
				r.push(owner)
			}
			reply.places[i] = 1
		}
	}
	if holder != 0 {
		return quiet(reply)
	}
	return r.served(x, q, reply)
}

func (r *modelRedis) release(x *modelRules, q modelRequest) (modelReply, modelMessage) {
	owner := q.owners[0]
	held := r.holder == owner
	if held {
		r.free()
	}
	if q.stones > 0 && !x.mistakes.noTombstone {
		r.stones.add(owner)
		if !x.mistakes.releaseForgets {
			r.remove(owner)
			r.scores.remove(owner)
		}
	}
	for _, member := range q.owners[1:] {
		r.remove(member)
		r.scores.remove(member)
	}
	if !held {
		return quiet(modelReply{})
	}
	if q.used > 0 {
		r.fence = min(r.fence, q.used)
	}
	return r.served(x, q, modelReply{status: 1})
}

func (r *modelRedis) leave(x *modelRules, q modelRequest) (modelReply, modelMessage) {
	for i, owner := range q.owners {
		if owner == 0 {
			break
		}
		if r.holder == owner && !x.mistakes.leaveKeepsHold {
			r.free()
		}
		stone := i < int(q.stones)
		if stone && !x.mistakes.noTombstone {
			r.stones.add(owner)
		}
		if r.scores.has(owner) || stone {
			r.remove(owner)
		}
		r.scores.remove(owner)
	}
	if r.holder != 0 {
		return quiet(modelReply{status: 1})
	}
	return r.served(x, q, modelReply{status: 1})
}

func (r *modelRedis) confirm(x *modelRules, q modelRequest) (modelReply, modelMessage) {
	if r.holder != q.owners[0] {
		return quiet(modelReply{})
	}
	r.left = q.lease
	numbers := int8(1)
	if q.used > 0 { // a run; the numbers of its grant are behind the clock
		numbers += x.members
	}
	first, last := r.mint(x, numbers)
	return quiet(modelReply{status: 1, fence: first, fenceEnd: last})
}

func (r *modelRedis) heartbeat(x *modelRules, q modelRequest) (modelReply, modelMessage) {
	r.alive[q.client] = x.stale
	if q.polls > 0 {
		r.polls[q.client] = x.stale
	}
	reply, message := quiet(modelReply{})
	if r.holder == 0 && !x.mistakes.heartbeatBlind {
		reply, message = r.served(x, q, reply)
	} else if r.holder != 0 && x.client[r.holder] == q.client {
		reply.grant.owner = r.holder
	}
	for _, owner := range q.owners {
		if owner != 0 && owner != r.holder && !r.waits(owner) {
			reply.absent.add(owner)
		}
	}
	return reply, message
}

// waits reports whether an owner has its place: by its score, unless the queue was
// deleted under the scores.
func (r *modelRedis) waits(o modelOwner) bool {
	whole := bits.OnesCount32(uint32(r.scores)) == r.length()
	return r.queue[0] != 0 && r.scores.has(o) && (whole || slices.Contains(r.queue[:], o))
}

// renew is the script of all lock kinds.
func (r *modelRedis) renew(q modelRequest) (modelReply, modelMessage) {
	if r.holder != q.owners[0] {
		return quiet(modelReply{})
	}
	r.left = q.lease
	return quiet(modelReply{status: 1})
}
