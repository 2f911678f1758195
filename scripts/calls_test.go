package scripts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// client is what calls are made by: a node, the fair queues of client A there, and the vote
// of the node.
type client struct {
	*Node
	fair *Fair
	vote *Vote
}

// call is a call for a key and an owner of client A. It returns the error of that key.
type call func(ctx context.Context, c client, key, owner string) error

// family is the calls of one kind of lock, and what its users may do.
type family struct {
	name       string
	calls      map[string]call
	commands   []string
	keys       string   // patterns of the keys that they touch for the lock k
	needless   []string // commands without which no call fails
	situations []string // in which they are refused commands and lose replies
}

var families = []family{plain, inOrder, ofQuorum}

var plain = family{
	name: "plain", commands: Commands(), keys: "~k ~redisson_lock_token:* ~holdfast_gone:*",
	needless: []string{"publish"}, situations: []string{"free", "held", "held by another"},
	calls: map[string]call{
		"acquire": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.Acquire(ctx, key, owner, lease))
		},
		"acquire fenced": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.AcquireFenced(ctx, key, owner, lease, *fencingHour))
		},
		"acquire all": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.AcquireAll(ctx, []string{key}, []string{owner}, lease))
		},
		"acquire each":        acquireEachWith(nil),
		"acquire each fenced": acquireEachWith(fencingHour),
		"renew": func(ctx context.Context, c client, key, owner string) error {
			return c.Renew(ctx, lease, []string{key}, []string{owner}, make([]Answer, 1))
		},
		"release": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.Release(ctx, key, owner, 0))
		},
		"release fenced": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.Release(ctx, key, owner, 1))
		},
		"clean up": func(ctx context.Context, c client, key, owner string) error { return errOf(c.CleanUp(ctx, key, owner)) },
		"recount":  recounts, "force release": forces, "inspect": inspects,
	},
}

var inOrder = family{
	name: "fair", commands: FairCommands(),
	keys: plain.keys + " ~redisson_lock_queue:* ~redisson_lock_timeout:* ~holdfast_heartbeat:*",
	// lpos and zremrangebyrank are for a queue that was tampered with
	needless:   []string{"lrem", "lset", "ltrim", "publish", "pubsub|numsub", "zrem", "lpos", "zremrangebyrank"},
	situations: []string{"free", "held", "waiting", "expired", "dead head", "Java head"},
	calls: map[string]call{
		"acquire": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.fair.Acquire(ctx, key, owner, lease))
		},
		"acquire each": func(ctx context.Context, c client, key, owner string) error {
			said := make([]Result[Acquired], 2)
			err := c.fair.AcquireEach(ctx, []Ask{{key, owner, lease}, {key, ofA(2), lease}}, said)
			return errors.Join(err, said[0].Err)
		},
		"enter": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.fair.Enter(ctx, key, owner, ofA(2)))
		},
		"confirm": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.fair.Confirm(ctx, key, owner, lease))
		},
		"release": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.fair.Release(ctx, key, owner, 0, false))
		},
		"release in doubt": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.fair.Release(ctx, key, owner, 1, true, ofA(2)))
		},
		"release each": func(ctx context.Context, c client, key, owner string) error {
			said := make([]Result[Passed], 2)
			err := c.fair.ReleaseEach(ctx, []FairHold{{Hold: Hold{key, owner}}, {Hold: Hold{key, ofA(2)}}}, said)
			return errors.Join(err, said[0].Err)
		},
		"leave": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.fair.Leave(ctx, key, 1, owner, ofA(2)))
		},
		"leave each": func(ctx context.Context, c client, key, owner string) error {
			said := make([]Result[Passed], 2)
			err := c.fair.LeaveEach(ctx, []Hold{{key, owner}, {key, ofA(2)}}, said)
			return errors.Join(err, said[0].Err)
		},
		"heartbeat": func(ctx context.Context, c client, key, owner string) error {
			probed := make([]Probed, 1)
			asked := []Heartbeat{{Key: key, Owners: []string{owner, ofA(2)}, Distances: []time.Duration{time.Minute, 0}}}
			return errors.Join(c.fair.Heartbeat(ctx, asked, probed), probed[0].Err)
		},
		"force release": func(ctx context.Context, c client, key, _ string) error { return errOf(c.fair.ForceRelease(ctx, key)) },
		"inspect":       func(ctx context.Context, c client, key, _ string) error { return errOf(c.fair.Inspect(ctx, key)) },
		"queue":         func(ctx context.Context, c client, key, _ string) error { return errOf(c.fair.Queue(ctx, key)) },
	},
}

var ofQuorum = family{
	name: "quorum", commands: QuorumCommands(), keys: plain.keys + " ~" + marker,
	needless: []string{"publish"}, situations: []string{"free", "held", "held by another", "not checked"},
	calls: map[string]call{
		"acquire":                  votes(true, false),
		"acquire fenced":           votes(true, true),
		"acquire unguarded":        votes(false, false),
		"acquire unguarded fenced": votes(false, true),
		"renew": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.RenewVoted(ctx, c.vote, lease, []string{key}, []string{owner}, []int{2}, make([]Answer, 1)))
		},
		"end":           ends(Ending{Notify: true}),
		"end fenced":    ends(Ending{Notify: true, LastFence: 1}),
		"undo":          ends(Ending{}),
		"undo in doubt": ends(Ending{Doubt: true}),
		"write fence": func(ctx context.Context, c client, key, owner string) error {
			return errOf(c.WriteFence(ctx, key, owner, 1<<52, time.Hour))
		},
		"check": func(ctx context.Context, c client, _, _ string) error {
			_, _, err := c.CheckNode(ctx, Mark, newEpoch(), ofThree(longest), "")
			return err
		},
		"check vote": func(ctx context.Context, c client, _, _ string) error {
			_, _, err := c.CheckVote(ctx, c.vote, ofThree(longest))
			return err
		},
		"run id":  func(ctx context.Context, c client, _, _ string) error { return errOf(c.runID(ctx)) },
		"recount": recounts, "force release": forces, "inspect": inspects,
	},
}

func recounts(ctx context.Context, c client, key, owner string) error {
	return errOf(c.Recount(ctx, key, owner, 2))
}
func forces(ctx context.Context, c client, key, _ string) error {
	return errOf(c.ForceRelease(ctx, key))
}
func inspects(ctx context.Context, c client, key, _ string) error { return errOf(c.Inspect(ctx, key)) }

func acquireEachWith(f *Fencing) call {
	return func(ctx context.Context, c client, key, owner string) error {
		said := make([]Result[Acquired], 2)
		err := c.AcquireEach(ctx, f, []Ask{{key, owner, lease}, {key, ofA(2), lease}}, said)
		return errors.Join(err, said[0].Err)
	}
}

func votes(guarded, fenced bool) call {
	return func(ctx context.Context, c client, key, owner string) error {
		if guarded {
			return errOf(acquireVoted(c.Node, ctx, c.vote, key, owner, lease, fenced))
		}
		return errOf(acquireVoted(c.Node, ctx, nil, key, owner, lease, fenced))
	}
}

func ends(e Ending) call {
	return func(ctx context.Context, c client, key, owner string) error {
		e := e
		e.Key, e.Owner = key, owner
		return errOf(end(c.Node, ctx, e))
	}
}

func errOf[T any](_ T, err error) error { return err }

// user makes a user with the least rights for the family, less the commands left out, and
// returns client A as that user.
func (f family) user(t *testing.T, s *redistest.Server, name string, without ...string) client {
	t.Helper()
	rule := []string{"ACL", "SETUSER", name, "reset", "on", ">secret", "resetchannels", "&redisson_lock__channel:*", "-@all", "+hello", "+ping"}
	rule = append(rule, strings.Fields(f.keys)...)
	for _, c := range f.commands {
		if !slices.Contains(without, c) {
			rule = append(rule, "+"+c)
		}
	}
	s.Do(t, rule...)
	return clientOn(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = name, "secret" }))
}

// clientOn is client A, with fencing, and without a vote.
func clientOn(c rueidis.Client) client {
	settings, n := settingsOf(clientA), NewNode(c)
	fencing(10)(&settings)
	return client{n, NewFair(n, settings), nil}
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
	"expired":   func(r *harness) { r.follow(ofC(1), ofB(1), ofA(1), ofA(2)); r.expire() },
	"dead head": func(r *harness) { r.follow(ofA(1), ofB(1), ofA(2)); r.silence(clientB) },
	"Java head": func(r *harness) {
		r.acquire(ofA(1))
		r.s.Do(r.t, "RPUSH", queue("k"), ofJ(1))
		r.s.Do(r.t, "ZADD", scores("k"), "9e15", ofJ(1))
		r.waits(ofA(2))
	},
	"not checked": func(r *harness) { r.s.Do(r.t, "DEL", marker) },
}

// clear forgets all but that the node has been checked.
func (r *harness) clear() {
	r.t.Helper()
	r.s.Do(r.t, "FLUSHALL")
	if r.vote != nil {
		r.s.Do(r.t, "SET", marker, r.vote.marker)
	}
}

// harness is one with fencing, of which the node has a vote if the family needs one.
func (f family) harness(t *testing.T) *harness {
	t.Helper()
	r := newHarness(t, fencing(10))
	if f.name == ofQuorum.name {
		r.vote = activated(t, r.node)
	}
	return r
}
