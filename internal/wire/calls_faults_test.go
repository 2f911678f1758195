package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// A replica may not know of a hold yet, and it answers what only reads. So what says that a hold is gone also
// writes, which it refuses. Those of a quorum do not: its other nodes have a say.
func TestF27_AReplicaEndsNoHold(t *testing.T) {
	eachFamily(t, func(t *testing.T, f family, r *harness) {
		r.s.Do(t, "REPLICAOF", "127.0.0.1", "1")
		c := clientOn(r.redis, r.vote)
		for name, call := range f.calls {
			if err := call(c.wants(t, "k", ofA(1))); !slices.Contains(f.replicas, name) {
				require.Equal(t, Unavailable, OutcomeOf(err), "%s: %v", name, err)
			}
		}
	})
}

func TestF32_LeastRights(t *testing.T) {
	eachFamily(t, func(t *testing.T, f family, r *harness) {
		c := f.user(t, r.s, r.vote, "least")
		for name, call := range f.calls {
			for _, found := range f.situations {
				r.find(found)
				require.NoError(t, call(c.wants(t, "k", ofA(1))), "%s, %s", name, found)
			}
			r.clear()
			before, err := state(t, r.s), call(c.wants(t, "other", ofA(1)))
			if !slices.Contains(f.noLock, name) {
				requireRefused(t, "NOPERM", err, name)
			}
			require.Equal(t, before, state(t, r.s))
		}
	})
}

// Each command is taken away in turn. A call that still ends well has done its work; one that
// fails says why. It leaves all as it was but for what is listed, and never a lock or heartbeats
// without expiry, nor a waiter that has no place.
func TestF32_EachCommandRefused(t *testing.T) {
	eachFamily(t, func(t *testing.T, f family, r *harness) {
		refused := map[string]bool{}
		for _, command := range f.commands {
			c := f.user(t, r.s, r.vote, "without-"+command, command)
			for name, call := range f.calls {
				for _, found := range f.situations {
					if r.refuses(f, name, command, found, func() error { return call(c.wants(t, "k", ofA(1))) }) {
						refused[command] = true
						require.NotContains(t, ridesOut[command], f.name+" "+name)
					}
				}
			}
			require.NotEqual(t, slices.Contains(f.needless, command), refused[command], command)
		}
	})
}

// ridesOut are the calls that do their work without a command.
var ridesOut = map[string][]string{
	"get":     {"plain release fenced", "quorum end fenced"},
	"set":     {"plain release fenced", "plain give up", "quorum end fenced", "quorum end quietly in doubt"},
	"hset":    {"quorum renew", "fair confirm labelled"},
	"publish": {"plain release", "plain release fenced", "plain give up", "plain force release", "quorum end", "quorum end fenced"},
}

// refuses reports whether a call is refused without a command, and requires what must hold then.
func (r *harness) refuses(f family, name, command, found string, call func() error) bool {
	r.t.Helper()
	about := name + ", " + found + ", without " + command
	movesFence := f.fences == nil || slices.Contains(f.fences, name)
	r.find(found)
	if command == "eval" { // needed only where the script is unknown
		r.s.Do(r.t, "SCRIPT", "FLUSH")
		if r.vote != nil {
			checkedFor(r.t, r.redis, Mark, longest, "")
		}
	}
	before := r.lasting(movesFence)
	err := call()
	for _, key := range []string{"k", heartbeats("k"), counter("k"), tombstone("k", ofA(1))} {
		require.NotEqualValues(r.t, -1, number(r.t, r.s, "PTTL", key), about)
	}
	r.requireScored(command, about)
	if err == nil {
		return false
	}
	require.Equal(r.t, Refused, OutcomeOf(err), "%s: %v", about, err)
	after := r.lasting(movesFence)
	switch {
	case slices.Contains(f.leave, name) && (command == "hdel" || command == "exists"): // the error is about the hold
		require.NotContains(r.t, r.waiting(), ofA(1), about)
	case slices.Contains(f.halves, name) && found == "written": // that of the writer, or beside it, is done
	case found == "readers died" && after["k"] == "": // they had been removed
	case found == "expired" && after["k"] != "": // a waiter had been served before the call failed
		require.Contains(r.t, f.serve, name, about)
		r.requireHeld(ofB(1), grantLease)
	default:
		require.Equal(r.t, before, after, about)
	}
	return true
}

// lasting is what a server holds, without what a call that failed may have moved on:
// heartbeats, and the fence counter if it deals with fences.
func (r *harness) lasting(movesFence bool) map[string]string {
	r.t.Helper()
	all := state(r.t, r.s)
	delete(all, heartbeats("k"))
	if movesFence {
		delete(all, counter("k"))
	}
	return all
}

// requireScored requires that exactly the waiting owners have a score, but for a command
// that was not allowed.
func (r *harness) requireScored(without, about string) {
	r.t.Helper()
	scored := listed(r.t, r.s, "ZRANGE", scores("k"), "0", "-1")
	switch without {
	case "zrem":
		require.Subset(r.t, scored, r.waiting(), about)
	case "lpop", "lrem":
		require.Subset(r.t, r.waiting(), scored, about)
	default:
		require.ElementsMatch(r.t, scored, r.waiting(), about)
	}
}

// A call whose reply is lost has an unknown outcome, and its repeat leaves what one call
// leaves.
func TestF6_ReplyLost(t *testing.T) {
	eachFamily(t, func(t *testing.T, f family, r *harness) {
		p := redistest.NewProxy(t, r.s.Addr())
		c := clientOn(NewRedis(r.s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }), RedisSettings{}), r.vote)
		for name, call := range f.calls {
			if slices.Contains(f.once, name) {
				continue
			}
			for _, found := range f.situations {
				t.Run(name+", "+found, func(t *testing.T) {
					require.NoError(t, call(c.wants(t, "k", ofA(1)))) // the script is known from now on
					r.find(found)
					lost := p.SwallowReply(1, func(cmd []string) bool { return cmd[0] == "EVALSHA" })
					err := call(c.wants(t, "k", ofA(1)))
					require.Equal(t, Unknown, OutcomeOf(err), "%v", err)
					<-lost
					moves := slices.Contains(f.moves, name)
					once := r.contents(moves)
					require.NoError(t, call(c.wants(t, "k", ofA(1))))
					require.Equal(t, once, r.contents(moves))
				})
			}
		}
	})
}

// contents is what keys hold, without fence numbers and what a clock moves on, and when the lock
// expires, unless the call moves it.
func (r *harness) contents(moves bool) map[string]string {
	r.t.Helper()
	all := state(r.t, r.s)
	for key, value := range all {
		switch {
		case key == counter("k"), key == heartbeats("k"), key == scores("k"), key == wishes("k"):
			all[key] = ""
		case key == "k" && moves && text(r.t, r.s, "TYPE", "k") == "zset":
			all[key] = strings.Join(listed(r.t, r.s, "ZRANGE", "k", "0", "-1"), " ")
		case key != "k" || moves:
			all[key] = value[:strings.LastIndex(value, "|")]
		}
	}
	return all
}

// foreign are commands that make of the key k what is no lock, or not of a kind that we know.
func foreign() []string {
	large := "HSET k"
	for i := range 2000 {
		large += fmt.Sprintf(" %d x", i)
	}
	return []string{
		"SET k x", "LPUSH k x", "SADD k x", "ZADD k 1 x", "XADD k * f v", large,
		"HSET k name Ann mail a@b age 7", "HSET k name Ann", "HSET k  1", "HSET k user:1 5", "HSET k somebody:01 1",
		"HSET k 3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01 1", "HSET k 3d2f0a8e_5b0c_4f57_9f2a_0d9f5f3f6a01:01 1", "HSET k " + ownA + "x 1",
		"HSET k " + ownA + " 1 name Ann", "HSET k " + ownA + " 1 " + ownB + " 1",
		"HSET k mode read", "HSET k mode read " + ofJ(1) + " 1", "HSET k mode write " + ofJ(1) + ":write 1", "HSET k " + ofJ(1) + ":write 1",
	}
}

// What others keep in a key is refused at once and left as it is, by users who may not read it
// whole. Calls that ask for a hold alone do not find it there.
func TestF33_ForeignKey(t *testing.T) {
	eachFamily(t, func(t *testing.T, f family, r *harness) {
		c, alike := f.user(t, r.s, r.vote, "least"), "HSET"
		if f.name == permitted.name {
			alike = "ZADD"
		}
		for _, value := range foreign() {
			if f.name == shared.name && strings.HasPrefix(value, "HSET k mode") {
				continue
			}
			r.clear()
			r.s.Do(t, strings.Split(value, " ")...)
			before := state(t, r.s)
			for name, call := range f.calls {
				err := call(c.wants(t, "k", ofA(1)))
				r.s.Do(t, "DEL", tombstone("k", ofA(1)), tombstone("k", ofA(2)))
				about := fmt.Sprintf("%s %s: %.80s", f.name, name, value)
				if slices.Contains(f.noLock, name) || slices.Contains(f.denies, name) || value[:4] == alike && slices.Contains(f.ofHold, name) {
					require.NoError(t, err, about)
				} else {
					requireRefused(t, "WRONGTYPE", err, about)
					require.True(t, Replied(err), about)
				}
				require.Equal(t, before, state(t, r.s), about)
			}
		}
	})
}

// A lock is recognised if we hold it, and if Java does.
func TestForeignIsNoLock(t *testing.T) {
	s, n := start(t)
	f := NewFair(n, settingsOf(clientA))
	for _, owner := range []string{ownA, ownB, ofJ(1), ofJ(4711), clientJ + ":-7516192768", clientJ + ":0"} {
		s.Do(t, "HSET", "k", owner, "3")
		require.Equal(t, holdfast.Status{Held: true, Owner: owner, Entries: 3, Remaining: NoExpiry}, must(n.Inspect(bounded(t), "k"))(t))
		require.Equal(t, AcquireReply{Remaining: NoExpiry, Why: errs.HeldBy("")}, must(n.Acquire(bounded(t), asking("k", ofC(1))))(t))
		require.Equal(t, []OwnerState{Waiting}, must(f.Enter(bounded(t), "k", ofA(1)))(t).States)
		require.True(t, must(n.ForceRelease(bounded(t), "k"))(t))
		s.Do(t, "FLUSHALL")
	}
}

// No number of entries that Redis may keep is an unknown outcome.
func TestF33_OddCounts(t *testing.T) {
	s, n := start(t)
	c := client{Redis: n, fair: NewFair(n, settingsOf(clientA))}.wants(t, "k", ofA(1))
	for _, count := range []string{"1795489234623825", "inf", "-inf", "nan", "0x10", "1e400", "1e3", "-1", "1.5", "", " 1", "99999999999999999999"} {
		for _, owner := range []string{ownA, "id"} {
			s.Do(t, "HSET", "k", owner, count)
			requireRefused(t, "WRONGTYPE", inspects(c), count)
			requireRefused(t, "WRONGTYPE", inOrder.calls["inspect"](c), count)
			s.Do(t, "DEL", "k")
		}
	}
	s.Do(t, "HSET", "k", ownA, "1")
	s.Do(t, "PEXPIREAT", "k", "9223372036854775807")
	require.Greater(t, must(n.Inspect(bounded(t), "k"))(t).Remaining, time.Hour)
}

// A server as before Redis 6.2 that knows the scripts refuses one key of several by itself.
func TestOldServer(t *testing.T) {
	s, n := start(t, "--rename-command", "HRANDFIELD", "")
	for _, text := range scripts.Scripts() {
		s.Do(t, "SCRIPT", "LOAD", text)
	}
	acquired(t, n, "held", ownA)
	results := make([]Result[AcquireReply], 2)
	require.NoError(t, n.AcquireEach(bounded(t), []AcquireRequest{asking("held", ownB), asking("free", ownB)}, results))
	require.ErrorIs(t, results[0].Err, holdfast.ErrOldServer)
	require.Equal(t, Refused, OutcomeOf(results[0].Err))
	require.True(t, results[1].Value.OK)
	require.EqualValues(t, 1, number(t, s, "HLEN", "held"))
}
