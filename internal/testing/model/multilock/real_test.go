package multilock_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// modelTickTime is what a tick lasts on a real server: longer than a walk, so that
// nothing expires there but by the test's own doing.
const modelTickTime = 20 * time.Second

const modelKey = "walk"

// modelReal is a real server, as the model's clients see it.
type modelReal struct {
	t            *testing.T
	rules        *modelRules
	server       *redistest.Server
	redis        *wire.Redis
	incarnations int64
	votes        [modelClients]*wire.Vote
	seen         [modelClients]string // incarnations that looks have told
	replica      map[string]string    // what sync has kept: the dumped keys
}

func newModelReal(t *testing.T, x *modelRules) *modelReal {
	s := redistest.Start(t, "--enable-debug-command", "yes")
	return &modelReal{t: t, rules: x, server: s, redis: wire.NewRedis(s.Client(t), wire.RedisSettings{})}
}

// begin empties the server under a new replication ID.
func (r *modelReal) begin() {
	r.votes, r.seen = [modelClients]*wire.Vote{}, [modelClients]string{}
	r.promote(nil)
	r.sync()
}

func (r *modelReal) do(args ...string) *rueidis.RedisMessage { return r.server.Do(r.t, args...) }

func (r *modelReal) owner(o modelOwner) string {
	return fmt.Sprintf("00000001-5b0c-4f57-9f2a-0d9f5f3f6a01:0%d", o)
}

func (r *modelReal) lease(o modelOwner) time.Duration {
	return time.Duration(r.rules.leaseOf(int(o-1))) * modelTickTime
}

func (r *modelReal) deployment(c int8) wire.Deployment {
	return wire.Deployment{MaxLease: time.Duration(r.rules.longest(c)) * modelTickTime, Nodes: int(r.rules.size(c))}
}

func (r *modelReal) look(how modelLooking, c int8) (vote, marked bool) {
	r.incarnations++
	kinds := [...]wire.CheckMode{wire.Observe, wire.Mark, wire.Activate}
	fresh := fmt.Sprintf("%032x", r.incarnations)
	reply := locktest.Must(r.redis.CheckNode(locktest.Bounded(r.t), kinds[how], fresh, r.deployment(c), r.seen[c]))(r.t)
	if how == modelMark {
		r.seen[c] = reply.Incarnation
	}
	if reply.Deployment != r.deployment(c) { // as the guard does
		reply.Vote = nil
	}
	r.votes[c] = reply.Vote
	return reply.Vote != nil, reply.Incarnation == fresh
}

func (r *modelReal) acquire(c int8, o modelOwner, plain bool) (says modelSays, fence int64) {
	replies := make([]wire.NodeReply, 1)
	asks := []wire.AcquireRequest{{Key: modelKey, Owner: r.owner(o), Lease: r.lease(o)}}
	require.NoError(r.t, r.redis.AcquireVoted(locktest.Bounded(r.t), r.votes[c], !plain, asks, replies))
	b := replies[0]
	require.NoError(r.t, b.Err)
	switch {
	case b.NoVote:
		return modelNoVote, 0
	case b.Gone:
		return modelGone, 0
	case b.OK:
		return modelYes, max(b.Counter+1, b.Clock)
	}
	return modelHeldBy, 0
}

func (r *modelReal) renew(c int8, o modelOwner) (ours, counts bool) {
	answers := make([]watchdog.Answer, 1)
	counts = locktest.Must(r.redis.RenewVoted(locktest.Bounded(r.t), r.votes[c], r.lease(o), []string{modelKey}, []string{r.owner(o)}, make([]wire.Entries, 1), answers))(r.t)
	return answers[0] == watchdog.Renewed, counts && r.votes[c] != nil
}

// end ends an owner, alone or beside another.
func (r *modelReal) end(o modelOwner, stone bool, last int64, tell bool) (ours bool) {
	asks := []wire.ReleaseRequest{
		{Key: modelKey, Owner: r.owner(o), Notify: tell, Doubt: stone, LastFence: last},
		{Key: "another", Owner: "none", Notify: true, LastFence: 1},
	}[:1+r.incarnations%2]
	ends := make([]wire.Result[wire.ReleaseReply], len(asks))
	require.NoError(r.t, r.redis.ReleaseEach(locktest.Bounded(r.t), asks, ends))
	require.NoError(r.t, ends[0].Err)
	return ends[0].Value.Ours
}

func (r *modelReal) writeFence(o modelOwner, last int64) (ours bool) {
	return locktest.Must(r.redis.WriteFence(locktest.Bounded(r.t), modelKey, r.owner(o), last, time.Hour))(r.t)
}

func (r *modelReal) force() (was bool) {
	return locktest.Must(r.redis.ForceRelease(locktest.Bounded(r.t), modelKey))(r.t)
}

// counter is the fence counter; 0 if there is none.
func (r *modelReal) counter() int64 {
	text := locktest.Must(r.do("EVAL", "return redis.call('GET', 'redisson_lock_token:{"+modelKey+"}') or '0'", "0").ToString())(r.t)
	return locktest.Must(strconv.ParseInt(text, 10, 64))(r.t)
}

// restart returns when the client has noticed: its old connections fail once each.
func (r *modelReal) restart() {
	r.server.Restart()
	ctx := locktest.Bounded(r.t)
	for ctx.Err() == nil {
		_, err := r.redis.CheckNode(ctx, wire.Observe, "0", r.deployment(0), "")
		if err == nil && r.redis.Ping(ctx) == nil {
			return
		}
	}
	require.Fail(r.t, "the server does not answer")
}

// sync keeps all keys as they are now.
func (r *modelReal) sync() {
	r.replica = map[string]string{}
	keys := locktest.Must(r.do("KEYS", "*").AsStrSlice())(r.t)
	for _, key := range keys {
		r.replica[key] = locktest.Must(r.do("DUMP", key).ToString())(r.t)
	}
}

// promote puts kept keys in the place of all there are, under a new replication ID.
func (r *modelReal) promote(keys map[string]string) {
	r.do("FLUSHALL")
	r.do("DEBUG", "CHANGE-REPL-ID")
	for key, dump := range keys {
		ttl := strconv.FormatInt(r.lease(1).Milliseconds(), 10)
		if key == "holdfast_node" {
			ttl = "0"
		}
		r.do("RESTORE", key, ttl, dump)
	}
}

// copied makes the kept keys those of another node.
func (r *modelReal) copied(longest, size int8) {
	r.sync()
	r.promote(r.replica)
	if _, marked := r.replica["holdfast_node"]; marked {
		r.do("SET", "holdfast_node", "abcd "+strings.Repeat("a", 40)+" "+strings.Repeat("b", 40)+" 1 "+
			strconv.FormatInt((time.Duration(longest)*modelTickTime).Milliseconds(), 10)+" "+strconv.Itoa(int(size)))
	}
}

// state is what the server remembers, in the model's terms; of the marker only
// whether it gives a vote (1), does not (2), or is not there.
func (r *modelReal) state() (d modelData) {
	holders := locktest.Must(r.do("HKEYS", modelKey).AsStrSlice())(r.t)
	require.LessOrEqual(r.t, len(holders), 1)
	for o := modelOwner(1); o <= modelOwners; o++ {
		if len(holders) == 1 && holders[0] == r.owner(o) {
			d.holder = o
		}
		n := locktest.Must(r.do("EXISTS", "holdfast_gone:{"+modelKey+"}:"+r.owner(o)).AsInt64())(r.t)
		d.stones |= uint8(n) << o
	}
	left := locktest.Must(r.do("PTTL", modelKey).AsInt64())(r.t)
	if left > 0 {
		d.left = int8((time.Duration(left)*time.Millisecond + modelTickTime - 1) / modelTickTime)
	}
	reply := locktest.Must(r.redis.CheckNode(locktest.Bounded(r.t), wire.Observe, "0", r.deployment(0), ""))(r.t)
	d.most, d.size = int8(reply.MaxLease/modelTickTime), int8(reply.Nodes)
	switch {
	case reply.Remaining == 0:
		d.marker = 1
	case reply.Incarnation != "":
		d.marker = 2
	}
	return d
}
