package fair_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/model"
)

const modelSteps = 60 // of a walk

// TestModelIsWhatRedisDoes takes random walks through the scripts, on a real server
// and in the model: each call has to answer the same and to leave the same behind.
// Time is not waited for: locks expire and heartbeats go stale by the test's own doing.
// Java is not in the model.
func TestModelIsWhatRedisDoes(t *testing.T) {
	x := &modelRules{first: 2, stale: 2, members: modelMembers, fences: true}
	for o := range x.client {
		x.client[o] = int8(o % modelClients)
	}
	r := newModelReal(t, x)
	kinds := []string{"polls", "served by reply", "served by message", "undelivered", "member", "gone", "dropped", "found", "absent"}
	keys := 0
	model.Walks(t, 200, kinds, func(walk *model.Walk) {
		keys++
		r.begin(fmt.Sprint("walk", keys))
		w := &modelWalk{Walk: walk, real: r, rules: x}
		for range modelSteps {
			w.step(t)
		}
		r.end()
		require.Empty(t, r.heard, "a message that the model does not send")
	})
}

// modelWalk is one walk, with a key of its own.
type modelWalk struct {
	*model.Walk
	real  *modelReal
	rules *modelRules
	redis modelRedis
	last  modelOwner // that has been named for the first time
}

func (w *modelWalk) step(t *testing.T) {
	var want, told any
	switch n := w.IntN(100); {
	case n < 4: // the holder's lease is over
		w.Note("expire")
		w.redis.free()
		w.real.server.Do(t, "DEL", w.real.key)
	case n < 8:
		c := w.client()
		w.Note("stale %d", c)
		w.redis.alive[c], w.redis.polls[c] = 0, 0
		w.real.server.Do(t, "HSET", "holdfast_heartbeat:{"+w.real.key+"}", w.real.uuids[c], "1", "polls "+w.real.uuids[c], "1")
	case n < 18:
		c := w.client()
		w.Note("listen %d", c)
		w.redis.heard[c] = !w.redis.heard[c]
		w.real.listen(c)
	case n < 19:
		w.Note("delete queue")
		w.redis.queue = [modelQueue]modelOwner{}
		w.real.server.Do(t, "DEL", "redisson_lock_queue:{"+w.real.key+"}")
	default:
		q := w.request()
		w.Note("%+v", q)
		before := w.redis
		reply, message := w.redis.call(w.rules, q)
		w.meet(q, before, reply, message)
		modelCountFences(&reply.fence, &reply.fenceEnd)
		modelCountFences(&reply.grant.fence, &reply.grant.fenceEnd)
		modelCountFences(&message.grant.fence, &message.grant.fenceEnd)
		actual := w.real.call(q)
		want = []any{reply, message}
		told = []any{actual, w.real.message(message)}
	}
	require.Equal(t, want, told, "%v", w)
	should := w.redis
	should.fence = 0
	require.Equal(t, should, w.real.state(), "%v", w)
}

// request is a random call, mostly one that makes sense.
func (w *modelWalk) request() modelRequest {
	q := modelRequest{kind: modelKind(1 + w.IntN(int(modelRenew))), client: w.client(), lease: int8(1 + w.IntN(4))}
	if w.redis.length() > modelQueue-1-modelNamed && (q.kind == modelEnter || q.kind == modelAcquire) {
		q.kind = modelRelease
	}
	switch q.kind {
	case modelEnter, modelLeave, modelHeartbeat:
		n := 1 + w.IntN(modelNamed)
		if q.kind == modelLeave {
			q.stones = int8(w.IntN(n + 1))
			n = 1 + w.IntN(n)
			q.stones = min(q.stones, int8(n))
		}
		if q.kind == modelHeartbeat && !w.redis.heard[q.client] {
			q.polls = int8(w.IntN(2))
		}
		for i := range n {
			q.owners[i] = w.owner(q.client, q.kind == modelEnter, q.owners[:i])
		}
	case modelRelease, modelConfirm, modelRenew:
		q.owners[0] = w.redis.holder
		if q.owners[0] == 0 || w.IntN(8) == 0 {
			q.owners[0] = w.owner(q.client, false, nil)
		}
		q.client = w.rules.client[q.owners[0]]
		if q.kind == modelRelease {
			q.stones = int8(w.IntN(2))
			q.used = int8(w.IntN(2)) * w.redis.fence
			w.members(&q)
		}
		if q.kind == modelConfirm {
			q.used = int8(w.IntN(2)) * w.redis.fence
		}
	default:
		q.owners[0] = w.owner(q.client, w.IntN(4) > 0, nil)
	}
	return q
}

// members has a release take members out of the queue: mostly those at the head.
func (w *modelWalk) members(q *modelRequest) {
	at := 0
	if w.IntN(4) == 0 {
		at = w.IntN(3)
	}
	for i := range w.IntN(modelMembers + 1) {
		if o := w.redis.queue[at+i]; o != 0 && o != q.owners[0] {
			q.owners[i+1] = o
		} else {
			return
		}
	}
}

func (w *modelWalk) client() int8 { return int8(w.IntN(modelClients)) }

// owner is one of the client's, not among taken: mostly a new one where new.
func (w *modelWalk) owner(c int8, fresh bool, taken []modelOwner) modelOwner {
	for {
		o := modelOwner(1 + w.IntN(modelOwners-1))
		if w.rules.client[o] != c || slices.Contains(taken, o) {
			continue
		}
		if fresh && o <= w.last && w.IntN(8) > 0 && w.last < modelOwners-modelClients*(modelNamed+1) {
			continue
		}
		if o > w.last {
			for o-modelClients > w.last {
				o -= modelClients
			}
			if slices.Contains(taken, o) {
				o += modelClients
			}
			w.last = max(w.last, o)
		}
		return o
	}
}

// meet notes what a call has met with.
func (w *modelWalk) meet(q modelRequest, before modelRedis, reply modelReply, message modelMessage) {
	w.Meet(reply.grant.lease > 0, "served by reply")
	w.Meet(reply.grant.owner != 0 && reply.grant.lease == 0, "found")
	w.Meet(message.to != modelNobody, "served by message")
	served := w.redis.holder != before.holder && w.redis.holder != 0
	w.Meet(served && message.to == modelNobody && reply.grant.owner == 0 && q.kind != modelAcquire, "polls")
	w.Meet(reply.grant.members[0] != 0 || message.grant.members[0] != 0, "member")
	w.Meet(reply.absent != 0, "absent")
	w.Meet(reply.status == -2 || q.kind == modelEnter && slices.Contains(reply.places[:], -2), "gone")
	for _, o := range before.queue {
		gone := o != 0 && !slices.Contains(w.redis.queue[:], o) && !slices.Contains(q.owners[:], o)
		w.Meet(gone && o != w.redis.holder, "dropped")
	}
	w.Meet(q.kind == modelHeartbeat && w.redis.holder == 0 && w.redis.queue[0] != 0, "undelivered")
}
