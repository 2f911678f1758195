package scripts

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestF32_LeastRights(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			r := f.harness(t)
			c := f.user(t, r.s, "least")
			c.vote = r.vote
			for name, call := range f.calls {
				for _, found := range f.situations {
					r.clear()
					situations[found](r)
					require.NoError(t, call(bounded(t), c, "k", ofA(1)), "%s, %s", name, found)
				}
				r.clear()
				before := state(t, r.s)
				err := call(bounded(t), c, "other", ofA(1))
				if !slices.Contains([]string{"queue", "check", "check vote", "run id"}, name) { // which read no lock
					require.ErrorContains(t, err, "NOPERM", name)
					require.Equal(t, Refused, OutcomeOf(err), name)
				}
				require.Equal(t, before, state(t, r.s))
			}
		})
	}
}

// Each command is taken away in turn. A call that still ends well has done its work; one that
// fails says why. It leaves all as it was but for what is listed, and never a lock or heartbeats
// without expiry, nor a waiter that has no place.
func TestF32_EachCommandRefused(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			r := f.harness(t)
			refused := map[string]bool{}
			for _, command := range f.commands {
				c := f.user(t, r.s, "without-"+command, command)
				c.vote = r.vote
				for name, call := range f.calls {
					for _, found := range f.situations {
						about := name + ", " + found + ", without " + command
						if r.refuses(about, command, found, func() error { return call(bounded(t), c, "k", ofA(1)) }) {
							refused[command] = true
							require.NotContains(t, ridesOut[command], f.name+" "+name)
						}
					}
				}
			}
			for _, command := range f.commands {
				require.NotEqual(t, slices.Contains(f.needless, command), refused[command], command)
			}
		})
	}
}

// ridesOut are the calls that do their work without a command.
var ridesOut = map[string][]string{
	"get":     {"plain release fenced", "quorum end fenced"},
	"set":     {"plain release fenced", "plain clean up", "quorum end fenced", "quorum undo in doubt"},
	"hset":    {"quorum renew"},
	"publish": {"plain release", "plain release fenced", "plain clean up", "plain force release", "quorum end", "quorum end fenced"},
}

// refuses says whether a call is refused without a command, and requires what must hold then.
func (r *harness) refuses(about, command, found string, call func() error) bool {
	r.t.Helper()
	r.clear()
	situations[found](r)
	if command == "eval" { // needed only where the script is unknown
		r.s.Do(r.t, "SCRIPT", "FLUSH")
		if r.vote != nil {
			checked(r.t, r.node, Mark)
		}
	}
	before := r.lasting(about)
	err := call()
	for _, key := range []string{"k", heartbeats("k"), counter("k"), tombstone("k", ofA(1))} {
		require.NotEqualValues(r.t, -1, number(r.t, r.s, "PTTL", key), about)
	}
	r.requireScored(command, about)
	if err == nil {
		return false
	}
	require.Equal(r.t, Refused, OutcomeOf(err), "%s: %v", about, err)
	after := r.lasting(about)
	switch {
	case strings.HasPrefix(about, "leave") && (command == "hdel" || command == "exists"): // the error is about the hold
		require.NotContains(r.t, r.waiting(), ofA(1), about)
	case found == "expired" && after["k"] != "": // the probe had served a waiter before it failed
		require.Regexp(r.t, "^(acquire|heartbeat)", about)
		r.requireHeld(ofB(1), grantLease)
	default:
		require.Equal(r.t, before, after, about)
	}
	return true
}

// lasting is what a server holds, without what a call that failed may have moved on:
// heartbeats, and the fence counter if it deals with fences.
func (r *harness) lasting(about string) map[string]string {
	r.t.Helper()
	all := state(r.t, r.s)
	delete(all, heartbeats("k"))
	if r.vote == nil || strings.Contains(about, "fenced") {
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
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			r := f.harness(t)
			p := redistest.NewProxy(t, r.s.Addr())
			c := clientOn(r.s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{p.Addr()} }))
			c.vote = r.vote
			for name, call := range f.calls {
				if name == "check" || name == "run id" || f.name+name == "fairforce release" { // no script; its repeat is not safe
					continue
				}
				for _, found := range f.situations {
					t.Run(name+", "+found, func(t *testing.T) {
						require.NoError(t, call(bounded(t), c, "k", ofA(1))) // the script is known from now on
						r.clear()
						situations[found](r)
						lost := p.SwallowReply(1, func(cmd []string) bool { return cmd[0] == "EVALSHA" })
						err := call(bounded(t), c, "k", ofA(1))
						require.Equal(t, Unknown, OutcomeOf(err), "%v", err)
						<-lost
						moves := name == "renew" || name == "confirm"
						once := r.contents(moves)
						require.NoError(t, call(bounded(t), c, "k", ofA(1)))
						require.Equal(t, once, r.contents(moves))
					})
				}
			}
		})
	}
}

// contents is what keys hold, without fence numbers and what a clock moves on, and when the lock
// expires, unless the call moves it.
func (r *harness) contents(moves bool) map[string]string {
	r.t.Helper()
	all := state(r.t, r.s)
	for key, value := range all {
		switch {
		case key == counter("k"), key == heartbeats("k"), key == scores("k"):
			all[key] = ""
		case key != "k" || moves:
			all[key] = value[:strings.LastIndex(value, "|")]
		}
	}
	return all
}

// foreign are values of keys that are no locks, or not of a kind that we know.
func foreign() map[string][]string {
	java := ofJ(1)
	values := map[string][]string{
		"string": {"SET", "k", "x"}, "list": {"LPUSH", "k", "x"}, "set": {"SADD", "k", "x"},
		"sorted set": {"ZADD", "k", "1", "x"}, "stream": {"XADD", "k", "*", "f", "v"},
	}
	large := []string{}
	for i := range 2000 {
		large = append(large, decimal(int64(i)), "x")
	}
	for what, fields := range map[string][]string{
		"data": {"name", "Ann", "mail", "a@b", "age", "7"}, "one field": {"name", "Ann"}, "no name": {"", "1"},
		"a counter": {"user:1", "5"}, "an id": {"3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01", "1"}, "a name and a number": {"somebody:01", "1"},
		"of the length of an owner": {"3d2f0a8e_5b0c_4f57_9f2a_0d9f5f3f6a01:01", "1"}, "no number": {ownA + "x", "1"},
		"a lock and data": {ownA, "1", "name", "Ann"}, "two owners": {ownA, "1", ownB, "1"}, "large": large,
		"read lock": {"mode", "read", java, "1"}, "write lock": {"mode", "write", java + ":write", "1"},
		"mode": {"mode", "read"}, "write owner": {java + ":write", "1"},
	} {
		values["hash of "+what] = append([]string{"HSET", "k"}, fields...)
	}
	return values
}

// What others keep in a key is refused at once and left as it is, by users who may not read it
// whole. Calls that ask for a hold alone do not find it there.
func TestF33_ForeignKey(t *testing.T) {
	asksForAHold := []string{
		"plain recount", "plain renew", "plain release", "plain release fenced", "plain clean up",
		"fair confirm", "fair release", "fair release in doubt", "fair release each", "fair leave", "fair leave each",
		"quorum recount", "quorum renew", "quorum end", "quorum end fenced", "quorum undo", "quorum undo in doubt", "quorum write fence",
	}
	readsNoLock := []string{"plain renew", "quorum renew", "fair queue", "quorum check", "quorum check vote", "quorum run id"} // a renewal answers
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			r := f.harness(t)
			c := f.user(t, r.s, "least")
			c.vote = r.vote
			for what, value := range foreign() {
				r.clear()
				r.s.Do(t, value...)
				before := state(t, r.s)
				for name, call := range f.calls {
					err := call(bounded(t), c, "k", ofA(1))
					r.s.Do(t, "DEL", tombstone("k", ofA(1)), tombstone("k", ofA(2)))
					about := f.name + " " + name
					if slices.Contains(readsNoLock, about) || value[0] == "HSET" && slices.Contains(asksForAHold, about) {
						require.NoError(t, err, "%s: %s", about, what)
					} else {
						require.ErrorContains(t, err, "WRONGTYPE", "%s: %s", about, what)
						require.Equal(t, Refused, OutcomeOf(err), about)
						require.True(t, Replied(err), about)
					}
					require.Equal(t, before, state(t, r.s), "%s: %s", about, what)
				}
			}
		})
	}
}

// As before Redis 6.2. A server that knows the scripts refuses one key of several by itself.
func TestOldServer(t *testing.T) {
	s, n := start(t, "--rename-command", "HRANDFIELD", "")
	for name, call := range plain.calls {
		err := call(bounded(t), client{Node: n}, "k", ownA)
		require.ErrorIs(t, err, holdfast.ErrOldServer, name)
		require.Equal(t, Refused, OutcomeOf(err), name)
	}
	require.Empty(t, state(t, s))
	for _, text := range Scripts() {
		s.Do(t, "SCRIPT", "LOAD", text)
	}
	acquired(t, n, "held", ownA)
	results := make([]Result[Acquired], 2)
	require.NoError(t, n.AcquireEach(bounded(t), nil, []Ask{{"held", ownB, lease}, {"free", ownB, lease}}, results))
	require.ErrorIs(t, results[0].Err, holdfast.ErrOldServer)
	require.Equal(t, Refused, OutcomeOf(results[0].Err))
	require.True(t, results[1].Value.OK)
	require.EqualValues(t, 1, number(t, s, "HLEN", "held"))
}
