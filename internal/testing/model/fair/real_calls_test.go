package fair_test

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// call makes a call on the real server, and returns the reply in the model's terms.
func (r *modelReal) call(q modelRequest) (reply modelReply) {
	ctx, f, names := locktest.Bounded(r.t), r.fairs[q.client], r.owners(q.owners[:])
	var err error
	switch q.kind {
	case modelAcquire:
		var a wire.AcquireReply
		a, err = f.Acquire(ctx, wire.AcquireRequest{Key: r.key, Owner: names[0], Lease: modelTime(q.lease)})
		switch {
		case a.Gone:
			reply.status = -2
		case !a.OK:
			reply.status = modelTicks(a.Remaining)
		}
		reply.fence, reply.fenceEnd = r.minted(a.Fence, a.FenceEnd)
	case modelEnter:
		var e wire.EnterReply
		e, err = f.Enter(ctx, r.key, names...)
		for i, state := range e.States {
			reply.places[i] = int8(state)
		}
		reply.grant = r.grant(e.Grant)
		require.False(r.t, e.Java)
	case modelRelease:
		var p wire.FairReply
		used := int64(0)
		if q.used > 0 {
			used = r.fence // some numbers less would do as well
		}
		p, err = f.Release(ctx, wire.FairReleaseRequest{
			ReleaseRequest: wire.ReleaseRequest{Key: r.key, Owner: names[0], LastFence: used, Doubt: q.stones > 0}, Served: names[1:],
		})
		if p.Ours {
			reply.status = 1
		}
		reply.grant = r.grant(p.Grant)
	case modelLeave:
		var p wire.FairReply
		p, err = f.Leave(ctx, wire.LeaveRequest{Key: r.key, InDoubt: names[:q.stones], Others: names[q.stones:]})
		reply.status, reply.grant = 1, r.grant(p.Grant)
	case modelConfirm:
		var a wire.AcquireReply
		var g wire.Grant
		if q.used > 0 {
			g.Fence, g.FenceEnd = r.fence, r.fence
		}
		a, err = f.Confirm(ctx, wire.AcquireRequest{Key: r.key, Owner: names[0], Lease: modelTime(q.lease)}, g)
		if a.OK {
			reply.status = 1
		}
		reply.fence, reply.fenceEnd = r.minted(a.Fence, a.FenceEnd)
	case modelHeartbeat:
		replies := make([]wire.HeartbeatReply, 1)
		err = f.Heartbeat(ctx, []wire.HeartbeatRequest{{Key: r.key, Owners: names, Ahead: make([]time.Duration, len(names)), Polls: q.polls > 0}}, replies)
		require.NoError(r.t, replies[0].Err)
		for _, i := range replies[0].Absent {
			reply.absent.add(q.owners[i])
		}
		reply.grant = r.grant(replies[0].Grant)
	case modelRenew:
		answers := make([]watchdog.Answer, 1)
		err = r.redis.Renew(ctx, modelTime(q.lease), []string{r.key}, names, answers)
		if answers[0] == watchdog.Renewed {
			reply.status = 1
		}
	}
	require.NoError(r.t, err)
	return reply
}

// modelTicks rounds up.
func modelTicks(d time.Duration) int8 { return int8((d + modelTickTime - 1) / modelTickTime) }

// modelView is all that a server knows of a key; see state.
const modelView = `
local stones = {}
for _, name in ipairs(redis.call('KEYS', 'holdfast_gone:{' .. KEYS[1] .. '}:*')) do
  table.insert(stones, string.sub(name, #KEYS[1] + 18))
end
local alive, polls, now = {}, {}, redis.call('TIME')[1] * 1000
local heartbeats = redis.call('HGETALL', 'holdfast_heartbeat:{' .. KEYS[1] .. '}')
for i = 1, #heartbeats, 2 do
  if tonumber(heartbeats[i + 1]) > now then
    table.insert(string.find(heartbeats[i], '^polls ') and polls or alive, heartbeats[i])
  end
end
return {
  table.concat(redis.call('HKEYS', KEYS[1]), ' '),
  tostring(redis.call('PTTL', KEYS[1])),
  table.concat(redis.call('LRANGE', 'redisson_lock_queue:{' .. KEYS[1] .. '}', 0, -1), ' '),
  table.concat(redis.call('ZRANGE', 'redisson_lock_timeout:{' .. KEYS[1] .. '}', 0, -1), ' '),
  table.concat(alive, ' '),
  table.concat(stones, ' '),
  table.concat(polls, ' '),
}`

// state is what the server knows, in the model's terms. Fence numbers are left out.
func (r *modelReal) state() (s modelRedis) {
	words, err := r.server.Do(r.t, "EVAL", modelView, "1", r.key).AsStrSlice()
	require.NoError(r.t, err)
	s.holder = r.number(words[0])
	left, err := time.ParseDuration(words[1] + "ms")
	require.NoError(r.t, err)
	s.left = max(modelTicks(left), 0)
	for i, name := range strings.Fields(words[2]) {
		s.queue[i] = r.number(name)
	}
	for _, name := range strings.Fields(words[3]) {
		s.scores.add(r.number(name))
	}
	for c, uuid := range r.uuids {
		if strings.Contains(words[4], uuid) {
			s.alive[c] = r.rules.stale
		}
		if strings.Contains(words[6], uuid) {
			s.polls[c] = r.rules.stale
		}
	}
	for _, name := range strings.Fields(words[5]) {
		s.stones.add(r.number(name))
	}
	s.heard = r.listens
	return s
}
