package scripts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// fairUser makes a user with the least rights, less the commands left out, and
// returns client A as that user.
func fairUser(t *testing.T, s *redistest.Server, name string, without ...string) *Fair {
	t.Helper()
	rule := []string{"ACL", "SETUSER", name, "reset", "on", ">secret", "~k", "~redisson_lock_token:*",
		"~redisson_lock_queue:*", "~redisson_lock_timeout:*", "~holdfast_gone:*", "~holdfast_heartbeat:*",
		"resetchannels", "&redisson_lock__channel:*", "-@all", "+hello", "+ping"}
	for _, c := range FairCommands() {
		if !slices.Contains(without, c) {
			rule = append(rule, "+"+c)
		}
	}
	s.Do(t, rule...)
	settings := settingsOf(clientA)
	fencing(10)(&settings)
	return NewFair(NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = name, "secret" })), settings)
}

// fairCalls are the verbs, and heartbeat, whose error is that of its key.
func fairCalls() map[string]func(ctx context.Context, f *Fair, key string) error {
	calls := maps.Clone(fairVerbs)
	calls["heartbeat"] = func(ctx context.Context, f *Fair, key string) error {
		probed := make([]Probed, 1)
		asked := []Heartbeat{{Key: key, Owners: []string{ofA(1), ofA(2)}, Distances: []time.Duration{time.Minute, 0}}}
		if err := f.Heartbeat(ctx, asked, probed); err != nil {
			return err
		}
		return probed[0].Err
	}
	return calls
}

// situations are what a call of client A may find.
var situations = map[string]func(r *harness){
	"free": func(*harness) {},
	"held": func(r *harness) { r.follow(ofA(1), ofB(1), ofA(2)) },
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
}

func TestF32_LeastRightsSufficeForFair(t *testing.T) {
	r := newHarness(t, fencing(10))
	f := fairUser(t, r.s, "least")
	for name, call := range fairCalls() {
		for found, bring := range situations {
			r.s.Do(t, "FLUSHALL")
			bring(r)
			require.NoError(t, call(bounded(t), f, "k"), "%s, %s", name, found)
		}
		if name != "queue" { // it reads no lock
			require.ErrorContains(t, call(bounded(t), f, "other"), "NOPERM", name)
		}
	}
}

// Each command is taken away in turn. Whatever fails says why. It leaves all as it
// was but for what is listed, and never a lock or heartbeats without expiry, nor a
// waiter that has no place.
func TestF32_EachCommandRefusedToFair(t *testing.T) {
	r := newHarness(t, fencing(10))
	refused := map[string]int{}
	for _, command := range FairCommands() {
		f := fairUser(t, r.s, "without-"+command, command)
		for name, call := range fairCalls() {
			for found, bring := range situations {
				r.s.Do(t, "FLUSHALL")
				bring(r)
				if command == "eval" { // needed only where the script is unknown
					r.s.Do(t, "SCRIPT", "FLUSH")
				}
				before := lasting(t, r.s)
				err := call(bounded(t), f, "k")
				about := name + ", " + found + ", without " + command
				for _, key := range []string{"k", heartbeats("k"), counter("k"), tombstone("k", ofA(1))} {
					require.NotEqualValues(t, -1, integerOf(t, r.s.Do(t, "PTTL", key)), about)
				}
				r.requireScored(command, about)
				if err == nil {
					continue
				}
				refused[command]++
				require.Equal(t, Refused, OutcomeOf(err), "%s: %v", about, err)
				if name == "leave" && (command == "hdel" || command == "exists") { // the error is about the hold
					require.NotContains(t, r.waiting(), ofA(1), about)
					continue
				}
				after := lasting(t, r.s)
				if found == "expired" && after["k"] != "" { // the probe had served a waiter before it failed
					require.Contains(t, []string{"acquire", "acquire each", "heartbeat"}, name, about)
					r.requireHeld(ofB(1), firstLease)
					continue
				}
				require.Equal(t, before, after, about)
			}
		}
	}
	tolerated := []string{"lrem", "lset", "ltrim", "publish", "pubsub|numsub", "zrem", "lpos", "zremrangebyrank"} // the last two are for a queue that was tampered with
	for _, command := range FairCommands() {
		require.NotEqual(t, slices.Contains(tolerated, command), refused[command] > 0, command)
	}
}

// requireScored requires that exactly the waiting owners have a score, but for a command
// that was not allowed.
func (r *harness) requireScored(without, about string) {
	r.t.Helper()
	m := r.s.Do(r.t, "ZRANGE", scores("k"), "0", "-1")
	scored, err := m.AsStrSlice()
	require.NoError(r.t, err)
	if without == "zrem" {
		require.Subset(r.t, scored, r.waiting(), about)
		return
	}
	if without == "lpop" || without == "lrem" {
		require.Subset(r.t, r.waiting(), scored, about)
		return
	}
	require.ElementsMatch(r.t, scored, r.waiting(), about)
}

// lasting is what a server holds, without what a call that failed may have moved
// on: heartbeats and the fence counter.
func lasting(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	all := state(t, s)
	delete(all, heartbeats("k"))
	delete(all, counter("k"))
	return all
}

func TestF23_ScriptFlushFair(t *testing.T) {
	r := newHarness(t)
	for name, call := range fairCalls() {
		r.s.Do(t, "SCRIPT", "FLUSH")
		require.NoError(t, call(bounded(t), r.of(ofA(1)), "k"), name)
	}
}

// A call whose reply is lost has an unknown outcome, and its repeat leaves what
// one call leaves.
func TestF6_FairReplyLost(t *testing.T) {
	r := newHarness(t, fencing(10))
	p := redistest.NewProxy(t, r.s.Addr())
	settings := settingsOf(clientA)
	fencing(10)(&settings)
	f := NewFair(NewNode(r.s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} })), settings)
	for name, call := range fairCalls() {
		require.NoError(t, call(bounded(t), r.of(ofA(1)), "k")) // the script is known from now on
		if name == "force_release" {
			continue // its repeat is not safe
		}
		for found, bring := range situations {
			t.Run(name+", "+found, func(t *testing.T) {
				r.s.Do(t, "FLUSHALL")
				bring(r)
				lost := p.SwallowReply(1, func(cmd []string) bool { return cmd[0] == "EVALSHA" })
				err := call(bounded(t), f, "k")
				require.Equal(t, Unknown, OutcomeOf(err), "%v", err)
				<-lost
				once := withoutNumbers(contents(t, r.s))
				require.NoError(t, call(bounded(t), f, "k"))
				require.Equal(t, once, withoutNumbers(contents(t, r.s)))
			})
		}
	}
}

// withoutNumbers leaves out what a clock moves on.
func withoutNumbers(contents map[string]string) map[string]string {
	for key := range contents {
		if strings.HasPrefix(key, "holdfast_heartbeat:") || strings.HasPrefix(key, "redisson_lock_timeout:") {
			contents[key] = ""
		}
	}
	return contents
}
