package wire

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// client is what calls are made by, and what they are for: a node, the fair queues and the read/write
// locks of client A there, the vote of the node, and an owner of client A that wants a key.
type client struct {
	*Redis
	fair       *Fair
	rw         *RWLock
	vote       *Vote
	ctx        context.Context
	key, owner string
}

// call is a call for the key and the owner of a client. It returns the error of that key.
type call func(c client) error

// family is the calls of one kind of lock, and what its users may do.
type family struct {
	name       string
	calls      map[string]call
	commands   []string
	keys       string   // patterns of the keys that they touch for the lock k
	needless   []string // commands without which no call fails
	situations []string // in which they are refused commands and lose replies
	ofHold     []string // calls that ask for a hold alone
	noLock     []string // calls that read no lock
	once       []string // calls that run no script, or whose repeat is not safe
	moves      []string // calls that move the expiry of a hold that they find
	replicas   []string // calls that a replica may answer: they read, or are of a node whose quorum has a say
	denies     []string // calls that answer of what is no lock that nobody holds it
	fences     []string // calls that may move the fence counter on; nil: all
	serve      []string // calls that serve a waiter before they do their own work
	leave      []string // calls that take waiters out of the queue before they end holds
	halves     []string // calls for two holds, of both halves of a lock
}

var families = []family{plain, inOrder, ofQuorum, permitted, shared}

var plain = family{
	name: "plain", commands: scripts.Commands(), keys: "~k ~redisson_lock_token:* ~holdfast_gone:*",
	needless: []string{"publish"}, situations: []string{"free", "held", "held by another"},
	ofHold: []string{"set entries", "release", "release fenced", "give up"}, denies: []string{"renew"},
	moves: []string{"renew"}, replicas: []string{"inspect"},
	calls: map[string]call{
		"acquire":             func(c client) error { return errOf(c.Acquire(c.ctx, asking(c.key, c.owner))) },
		"acquire fenced":      func(c client) error { return errOf(c.Acquire(c.ctx, fencedBy(fencingHour, asking(c.key, c.owner)))) },
		"acquire all":         func(c client) error { return errOf(c.AcquireAll(c.ctx, []AcquireRequest{asking(c.key, c.owner)})) },
		"acquire each":        func(c client) error { return c.acquireEach(Fencing{}) },
		"acquire each fenced": func(c client) error { return c.acquireEach(fencingHour) },
		"renew":               func(c client) error { return c.renews(c.Renew) },
		"release": func(c client) error {
			return errOf(c.Release(c.ctx, ReleaseRequest{Key: c.key, Owner: c.owner, Notify: true}))
		},
		"release fenced": func(c client) error {
			return errOf(c.Release(c.ctx, ReleaseRequest{Key: c.key, Owner: c.owner, Notify: true, LastFence: 1}))
		},
		"give up": func(c client) error {
			return errOf(c.Release(c.ctx, ReleaseRequest{Key: c.key, Owner: c.owner, Notify: true, Doubt: true}))
		},
		"set entries": setsEntries, "force release": forces, "inspect": inspects,
	},
}

var inOrder = family{
	name: "fair", commands: scripts.FairCommands(),
	keys: plain.keys + " ~redisson_lock_queue:* ~redisson_lock_timeout:* ~holdfast_heartbeat:*",
	// lpos and zremrangebyrank are for a queue that was tampered with
	needless:   []string{"lrem", "lset", "ltrim", "publish", "pubsub|numsub", "zrem", "lpos", "zremrangebyrank"},
	situations: []string{"free", "held", "waiting", "expired", "dead head", "Java head"},
	ofHold:     []string{"confirm", "confirm labelled", "release", "release in doubt", "release each", "leave", "leave each"},
	noLock:     []string{"queue"},
	once:       []string{"force release"},
	moves:      []string{"confirm", "confirm labelled"},
	replicas:   []string{"inspect", "queue"},
	serve:      []string{"acquire", "acquire each", "heartbeat"},
	leave:      []string{"leave", "leave each"},
	calls: map[string]call{
		"acquire":      func(c client) error { return errOf(c.fair.Acquire(c.ctx, asking(c.key, c.owner))) },
		"acquire each": func(c client) error { return errOf(each(c.ctx, c.fair.AcquireEach, c.asks()...)) },
		"enter":        func(c client) error { return errOf(c.fair.Enter(c.ctx, c.key, c.owner, ofA(2))) },
		"confirm":      func(c client) error { return errOf(c.fair.Confirm(c.ctx, asking(c.key, c.owner), Grant{})) },
		"confirm labelled": func(c client) error {
			a := asking(c.key, c.owner)
			a.Label = new("its own")
			return errOf(c.fair.Confirm(c.ctx, a, Grant{}))
		},
		"release": func(c client) error { return errOf(c.fair.Release(c.ctx, fairHold(c.key, c.owner, 0))) },
		"release in doubt": func(c client) error {
			h := fairHold(c.key, c.owner, 1)
			h.Doubt, h.Served = true, []string{ofA(2)}
			return errOf(c.fair.Release(c.ctx, h))
		},
		"release each": func(c client) error {
			return errOf(each(c.ctx, c.fair.ReleaseEach, fairHold(c.key, c.owner, 0), fairHold(c.key, ofA(2), 0)))
		},
		"leave": func(c client) error {
			return errOf(c.fair.Leave(c.ctx, LeaveRequest{c.key, []string{c.owner}, []string{ofA(2)}}))
		},
		"leave each": func(c client) error {
			return errOf(each(c.ctx, c.fair.LeaveEach, LeaveRequest{c.key, []string{c.owner}, nil}, LeaveRequest{c.key, []string{ofA(2)}, nil}))
		},
		"heartbeat": func(c client) error {
			replies := make([]HeartbeatReply, 1)
			asked := []HeartbeatRequest{{Key: c.key, Owners: []string{c.owner, ofA(2)}, Ahead: []time.Duration{time.Minute, 0}}}
			return errors.Join(c.fair.Heartbeat(c.ctx, asked, replies), replies[0].Err)
		},
		"force release": func(c client) error { return errOf(c.fair.ForceRelease(c.ctx, c.key)) },
		"inspect":       func(c client) error { return errOf(c.fair.Inspect(c.ctx, c.key)) },
		"queue":         func(c client) error { return errOf(c.fair.Queue(c.ctx, c.key)) },
	},
}

var ofQuorum = family{
	name: "quorum", commands: scripts.QuorumCommands(), keys: plain.keys + " ~" + marker,
	needless: []string{"publish"}, situations: []string{"free", "held", "held by another", "not checked"},
	ofHold: []string{"set entries", "end", "end fenced", "end quietly", "end quietly in doubt", "write fence"},
	denies: []string{"renew"}, noLock: []string{"check", "check vote", "run id"}, once: []string{"check", "run id"},
	moves: []string{"renew"}, replicas: []string{"inspect", "check", "check vote", "run id", "renew", "write fence"},
	fences: []string{"acquire fenced", "acquire unguarded fenced", "end fenced"},
	calls: map[string]call{
		"acquire":                  func(c client) error { return c.acquireVoted(c.vote, false) },
		"acquire fenced":           func(c client) error { return c.acquireVoted(c.vote, true) },
		"acquire unguarded":        func(c client) error { return c.acquireVoted(nil, false) },
		"acquire unguarded fenced": func(c client) error { return c.acquireVoted(nil, true) },
		"renew": func(c client) error {
			return c.renews(func(ctx context.Context, lease time.Duration, keys, owners []string, answers []watchdog.Answer) error {
				return errOf(c.RenewVoted(ctx, c.vote, lease, keys, owners, []Entries{{Count: 2}}, answers))
			})
		},
		"end":                  func(c client) error { return c.end(ReleaseRequest{Notify: true}) },
		"end fenced":           func(c client) error { return c.end(ReleaseRequest{Notify: true, LastFence: 1}) },
		"end quietly":          func(c client) error { return c.end(ReleaseRequest{}) },
		"end quietly in doubt": func(c client) error { return c.end(ReleaseRequest{Doubt: true}) },
		"write fence":          func(c client) error { return errOf(c.WriteFence(c.ctx, c.key, c.owner, 1<<52, time.Hour)) },
		"check": func(c client) error {
			_, err := c.CheckNode(c.ctx, Mark, newIncarnation(), ofThree(longest), "")
			return err
		},
		"check vote": func(c client) error {
			_, _, err := c.CheckVote(c.ctx, c.vote, ofThree(longest))
			return err
		},
		"run id":      func(c client) error { return errOf(c.runID(c.ctx)) },
		"set entries": setsEntries, "force release": forces, "inspect": inspects,
	},
}

var permitted = family{
	name: "semaphore", commands: scripts.SemaphoreCommands(), keys: "~k ~holdfast_gone:* ~holdfast_permits:*",
	needless: []string{"publish", "set"}, situations: []string{"free", "permit held", "permits taken", "leases ended", "resized"},
	ofHold: []string{"set entries", "set entries plainly", "release", "release each", "give up"}, denies: []string{"renew"},
	moves: []string{"renew"}, replicas: []string{"inspect"},
	calls: map[string]call{
		"acquire":      func(c client) error { return errOf(c.permits().Acquire(c.ctx, asking(c.key, c.owner))) },
		"acquire each": func(c client) error { return errOf(each(c.ctx, c.permits().AcquireEach, c.asks()[0])) },
		"renew":        func(c client) error { return c.renews(c.permits().Renew) },
		"release": func(c client) error {
			return errOf(c.permits().Release(c.ctx, ReleaseRequest{Key: c.key, Owner: c.owner}))
		},
		"give up": func(c client) error {
			return errOf(c.permits().Release(c.ctx, ReleaseRequest{Key: c.key, Owner: c.owner, Doubt: true}))
		},
		"release each": func(c client) error {
			return errOf(each(c.ctx, c.permits().ReleaseEach, ReleaseRequest{Key: c.key, Owner: c.owner}))
		},
		"set entries": func(c client) error {
			label := "another"
			return errOf(c.permits().SetEntries(c.ctx, c.key, c.owner, Entries{Count: 2, Label: &label}))
		},
		"set entries plainly": func(c client) error { return errOf(c.permits().SetEntries(c.ctx, c.key, c.owner, Entries{Count: 2})) },
		"force release":       func(c client) error { return errOf(c.permits().ForceRelease(c.ctx, c.key)) },
		"inspect":             func(c client) error { return errOf(c.permits().Inspect(c.ctx, c.key)) },
		"resize":              func(c client) error { return c.permits().Resize(c.ctx, c.key, 3) },
	},
}

// renews makes a renewal. One that fails must not have answered.
func (c client) renews(renew func(context.Context, time.Duration, []string, []string, []watchdog.Answer) error) error {
	answers := []watchdog.Answer{watchdog.NotOurs} // of an earlier call
	err := renew(c.ctx, lease, []string{c.key}, []string{c.owner}, answers)
	if err != nil && answers[0] != watchdog.Unanswered {
		return errors.New("a renewal that failed has answered")
	}
	return err
}

// permits are of keys with two.
func (c client) permits() *Semaphore { return NewSemaphore(c.Redis, 2) }

func setsEntries(c client) error {
	return errOf(c.SetEntries(c.ctx, c.key, c.owner, Entries{Count: 2}))
}
func forces(c client) error   { return errOf(c.ForceRelease(c.ctx, c.key)) }
func inspects(c client) error { return errOf(c.Inspect(c.ctx, c.key)) }

// asks is for the owner's hold and another.
func (c client) asks() []AcquireRequest {
	return []AcquireRequest{asking(c.key, c.owner), asking(c.key, ofA(2))}
}

func fencedBy(f Fencing, a AcquireRequest) AcquireRequest {
	a.Fencing = f
	return a
}

func (c client) acquireEach(f Fencing) error {
	return errOf(each(c.ctx, c.AcquireEach, fencedBy(f, c.asks()[0]), fencedBy(f, c.asks()[1])))
}

func (c client) acquireVoted(vote *Vote, fenced bool) error {
	return errOf(acquireVoted(c.Redis, c.ctx, vote, c.key, c.owner, fenced))
}

func (c client) end(e ReleaseRequest) error {
	e.Key, e.Owner = c.key, c.owner
	return errOf(end(c.Redis, c.ctx, e))
}

// wants is the client with what it calls for.
func (c client) wants(t testing.TB, key, owner string) client {
	c.ctx, c.key, c.owner = bounded(t), key, owner
	return c
}

func errOf[T any](_ T, err error) error { return err }

// each makes a call for several holds, and returns the result for the first.
func each[A, R any](ctx context.Context, call func(context.Context, []A, []Result[R]) error, asks ...A) (R, error) {
	results := make([]Result[R], len(asks))
	err := call(ctx, asks, results)
	return results[0].Value, cmp.Or(err, results[0].Err)
}

// user makes a user with the least rights for the family, less the commands left out, and
// returns client A as that user.
func (f family) user(t *testing.T, s *redistest.Server, vote *Vote, name string, without ...string) client {
	t.Helper()
	rule := []string{"ACL", "SETUSER", name, "reset", "on", ">secret", "resetchannels", "&redisson_lock__channel:*", "&holdfast_permits_channel:*", "&redisson_rwlock:*", "-@all", "+hello", "+ping"}
	rule = append(rule, strings.Fields(f.keys)...)
	for _, c := range f.commands {
		if !slices.Contains(without, c) {
			rule = append(rule, "+"+c)
		}
	}
	s.Do(t, rule...)
	return clientOn(loggedIn(t, s, name), vote)
}

// clientOn is client A, with fencing.
func clientOn(n *Redis, vote *Vote) client {
	settings := settingsOf(clientA)
	fencing(10)(&settings)
	return client{Redis: n, fair: NewFair(n, settings), rw: NewRWLock(n, clientA), vote: vote}
}

// situations are what a call of client A for its owner 1 may find.
var situations = map[string]func(r *harness){
	"free":            func(*harness) {},
	"held":            func(r *harness) { r.follow(ofA(1), ofB(1), ofA(2)) },
	"held by another": func(r *harness) { r.acquire(ofB(1)) },
	"waiting": func(r *harness) {
		r.follow(ofB(1), ofA(1), ofA(2), ofB(2))
		r.s.Do(r.t, "HSET", heartbeats("k"), clientA, decimal(serverMillis(r.t, r.s)+3000)) // to be refreshed
	},
	"expired":       func(r *harness) { r.follow(ofC(1), ofB(1), ofA(1), ofA(2)); r.expire() },
	"dead head":     func(r *harness) { r.follow(ofA(1), ofB(1), ofA(2)); r.silence(clientB) },
	"Java head":     func(r *harness) { r.acquire(ofA(1)); r.javaStands(ofJ(1)); r.waits(ofA(2)) },
	"permit held":   func(r *harness) { r.permits(2, ofA(1)) },
	"permits taken": func(r *harness) { r.permits(2, ofB(1), ofB(2)) },
	"leases ended":  func(r *harness) { r.permits(2, ofA(1), ofB(1)); r.endPermits() },
	"resized": func(r *harness) {
		r.permits(2, ofA(1))
		require.NoError(r.t, NewSemaphore(r.redis, 2).Resize(bounded(r.t), "k", 5))
	},
	"not checked": func(r *harness) { r.s.Do(r.t, "DEL", marker) },
	"read":        func(r *harness) { r.shares(ofA(1), ofB(1)) },
	"read by us":  func(r *harness) { r.shares(ofA(1)) },
	"written":     func(r *harness) { r.shares(writer(ofA(1))); r.wishes("reader", clientB) },
	"others read": func(r *harness) { r.shares(ofB(1), ofC(1)); r.wishes("reader", clientB) },
	"another writes": func(r *harness) {
		r.shares(writer(ofB(1)))
		r.wishes("writer", clientC)
		r.wishes("reader", clientA)
	},
	"a writer waits":   func(r *harness) { r.wishes("writer", clientB) },
	"readers are next": func(r *harness) { r.wishes("next", clientB); r.wishes("writer", clientA) },
	"readers died": func(r *harness) {
		r.shares(ofB(1), ofC(1))
		r.s.Do(r.t, "DEL", timeout("k", ofB(1)), timeout("k", ofC(1)))
	},
}

// permits has owners take permits of the key, of which it has n, with labels.
func (r *harness) permits(n int, owners ...string) {
	r.t.Helper()
	p := NewSemaphore(NewRedis(r.redis.client, RedisSettings{Label: "label"}), n)
	for _, owner := range owners {
		require.True(r.t, must(p.Acquire(bounded(r.t), asking("k", owner)))(r.t).OK)
	}
}

// endPermits ends the leases that permits has given, while Redis has not noticed.
func (r *harness) endPermits() {
	r.t.Helper()
	for _, owner := range listed(r.t, r.s, "ZRANGE", "k", "0", "-1") {
		r.s.Do(r.t, "ZADD", "k", "XX", decimal(serverMillis(r.t, r.s)-1), owner)
	}
}

// find brings about a situation.
func (r *harness) find(found string) { r.t.Helper(); r.clear(); situations[found](r) }

// clear forgets all but that the node has been checked.
func (r *harness) clear() {
	r.t.Helper()
	r.s.Do(r.t, "FLUSHALL")
	if r.vote != nil {
		r.s.Do(r.t, "SET", marker, r.vote.marker)
	}
}

// eachFamily runs a test of each family.
func eachFamily(t *testing.T, do func(t *testing.T, f family, r *harness)) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) { do(t, f, f.harness(t)) })
	}
}

// harness is one with fencing, of which the node has a vote if the family needs one.
func (f family) harness(t *testing.T) *harness {
	t.Helper()
	r := newHarness(t, fencing(10))
	if f.name == ofQuorum.name {
		r.vote = activated(t, r.redis)
	}
	return r
}
