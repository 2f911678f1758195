package scripts

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// recorder is a client that notes with how many keys and arguments each script was
// called, and which kinds of reply it gave. Of a script for many locks it notes how many
// each lock had.
type recorder struct {
	rueidis.Client
	vote                *Vote
	keys, args, replies map[string]map[string]bool // name -> what was seen
}

func (r *recorder) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	result := r.Client.Do(ctx, cmd)
	if reply, err := result.ToMessage(); err == nil {
		r.note(words, reply)
	}
	return result
}

func (r *recorder) note(words []string, reply rueidis.RedisMessage) {
	name := ""
	for of, text := range Scripts() {
		if words[1] == text || words[1] == scriptOf(text).sha || of == "quorum_acquire" && words[1] == r.vote.acquire.sha {
			name = of
		}
	}
	if name == "" { // no script
		return
	}
	keys, _ := strconv.Atoi(words[2])
	args := len(words) - 3 - keys
	if isEach(name) {
		per, _ := strconv.Atoi(words[3+keys])
		keys, args = per, (args-1)/(keys/per)
	}
	for seen, what := range map[*map[string]map[string]bool][]string{
		&r.keys: {strconv.Itoa(keys)}, &r.args: {strconv.Itoa(args)}, &r.replies: kinds(name, reply),
	} {
		for _, w := range what {
			if (*seen)[name] == nil {
				(*seen)[name] = map[string]bool{}
			}
			(*seen)[name][w] = true
		}
	}
}

// isEach says whether a script does with many locks what another does with one.
func isEach(name string) bool {
	return strings.HasSuffix(name, "_each") && name != "end_each" || name == "quorum_acquire"
}

// kinds returns how the contract of a script writes a reply.
func kinds(name string, m rueidis.RedisMessage) (all []string) {
	if v, err := m.ToInt64(); err == nil {
		counts := strings.Contains(name, "acquire") || strings.Contains(name, "end_each") || name == "release" || name == "fair_enter"
		if v > 0 && counts {
			return []string{"> 0"}
		}
		return []string{strconv.FormatInt(v, 10)}
	}
	if !m.IsArray() {
		return []string{"text"}
	}
	values, _ := m.ToArray()
	each := func(values []rueidis.RedisMessage, name string) {
		for _, v := range values {
			all = append(all, kinds(name, v)...)
		}
	}
	switch {
	case name == "one of quorum_acquire" && len(values) == 2:
		return []string{"{left, holder}"}
	case name == "one of quorum_acquire" && len(values) == 3:
		return []string{"{0, counter, clock}"}
	case name == "one of acquire_fenced_each" && len(values) == 3, name == "acquire_fenced":
		return []string{"{0, first, last}"}
	case strings.HasPrefix(name, "one of") && len(values) == 1:
		return []string{"{text}"}
	case name == "quorum_acquire" && len(values) == 1 && kinds("", values[0])[0] == "-3":
		return []string{"{-3}"}
	case isEach(name), name == "end_each":
		all = []string{"{answer...}"}
		each(values, "one of "+name)
	case name == "quorum_check" && len(values) == 7:
		return []string{"{run id, version, policy, replID, marker, left, new}"}
	case name == "quorum_renew":
		all = []string{"{marker, answer...}"}
		each(values[1:], name)
	case name == "inspect" && len(values) == 0:
		return []string{"{}"}
	case name == "inspect":
		return []string{"{owner, entries, left, label}"}
	case name == "fair_inspect" && len(values) == 1:
		return []string{"{waiting}"}
	case name == "fair_inspect":
		return []string{"{waiting, owner, entries, left, label}"}
	case name == "fair_queue":
		return []string{"{owner, alive, label...}"}
	case name == "fair_heartbeat":
		each(values, "one of heartbeat")
	case name == "one of heartbeat":
		return []string{"{" + kinds("", values[0])[0] + ", grant, place, label, absent...}"}
	case name == "fair_enter":
		all = []string{"{java, distance, grant, place, state...}"}
		each(values[4:], "state")
	case name == "renew":
		each(values, name)
	default:
		return kinds(name, values[0])
	}
	return all
}

// everyLabelledReply brings about the replies that name another holder by its label.
func everyLabelledReply(t *testing.T, client rueidis.Client, do func(args ...string)) {
	t.Helper()
	n := NewNodeWith(client, NodeSettings{Label: "a b"})
	f, fence := NewFair(n, settingsOf(clientA)), Fencing{Reserve: 1}
	asks := func(owner string) []Ask { return []Ask{{"k", owner, lease}} }
	for _, acquire := range []func(owner string) (Acquired, error){
		func(owner string) (Acquired, error) { return n.Acquire(bounded(t), "k", owner, lease) },
		func(owner string) (Acquired, error) { return n.AcquireFenced(bounded(t), "k", owner, lease, fence) },
		func(owner string) (Acquired, error) { return f.Acquire(bounded(t), "k", owner, lease) },
		func(owner string) (Acquired, error) {
			return one(func(r []Result[Acquired]) error { return n.AcquireEach(bounded(t), nil, asks(owner), r) })
		},
		func(owner string) (Acquired, error) {
			return one(func(r []Result[Acquired]) error { return n.AcquireEach(bounded(t), &fence, asks(owner), r) })
		},
		func(owner string) (Acquired, error) {
			return one(func(r []Result[Acquired]) error { return f.AcquireEach(bounded(t), asks(owner), r) })
		},
	} {
		do("FLUSHALL")
		a, err := acquire(ofA(1))
		require.NoError(t, err)
		require.True(t, a.OK)
		a, err = acquire(ofA(2))
		require.NoError(t, err)
		require.EqualError(t, a.Why, `not acquired: held by "a b"`)
		require.InDelta(t, lease, a.Remaining, float64(slack))
		do("PERSIST", "k")
		a, err = acquire(ofA(2))
		require.NoError(t, err)
		require.Equal(t, NoExpiry, a.Remaining)
		require.EqualError(t, a.Why, `not acquired: held by "a b"`)
	}
}

// one is a call for one of many.
func one[T any](call func([]Result[T]) error) (T, error) {
	r := make([]Result[T], 1)
	err := call(r)
	return r[0].Value, cmp.Or(err, r[0].Err)
}

// everyReply brings about every reply of every script. do runs a command as
// administrator.
func everyReply(t *testing.T, client rueidis.Client, do func(args ...string)) {
	t.Helper()
	ctx, n := bounded(t), NewNode(client)
	call := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	listener, stop := client.Dedicate()
	defer stop()
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})

	each := func(f *Fencing) func(owner string) (Acquired, error) {
		return func(owner string) (Acquired, error) {
			said := make([]Result[Acquired], 2)
			err := n.AcquireEach(ctx, f, []Ask{{"k", owner, lease}, {"string", owner, lease}}, said)
			require.Error(t, said[1].Err)
			return said[0].Value, errors.Join(err, said[0].Err)
		}
	}
	for _, get := range []func(owner string) (Acquired, error){
		func(owner string) (Acquired, error) { return n.Acquire(ctx, "k", owner, lease) },
		func(owner string) (Acquired, error) { return n.AcquireFenced(ctx, "k", owner, lease, *fencingHour) },
		each(nil), each(fencingHour),
	} {
		do("FLUSHALL")
		do("SET", "string", "x")
		call(get(ownA))
		call(get(ownB))
		do("PERSIST", "k")
		call(get(ownB))
		call(n.CleanUp(ctx, "k", ownA))
		call(get(ownA))
	}

	do("FLUSHALL")
	call(n.AcquireAll(ctx, []string{"k"}, []string{ownA}, lease))
	call(n.AcquireAll(ctx, []string{"k"}, []string{ownB}, lease))

	do("FLUSHALL")
	call(n.Inspect(ctx, "k"))
	call(n.Recount(ctx, "k", ownA, 2))
	call(n.Acquire(ctx, "k", ownA, lease))
	call(n.Recount(ctx, "k", ownA, 2))
	call(n.Inspect(ctx, "k"))

	do("SET", "string", "x")
	answers := make([]Answer, 3)
	call(nil, n.Renew(ctx, lease, []string{"k", "free", "string"}, []string{ownA, ownA, ownA}, answers))
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs}, answers)

	call(n.ForceRelease(ctx, "k"))
	call(n.ForceRelease(ctx, "k"))

	ends := []func(owner string) (Released, error){
		func(owner string) (Released, error) { return n.Release(ctx, "k", owner, 0) },
		func(owner string) (Released, error) { return n.Release(ctx, "k", owner, 1) },
		func(owner string) (Released, error) { return n.CleanUp(ctx, "k", owner) },
	}
	hold := func(owner string) {
		do("DEL", tombstone("k", owner))
		call(n.Acquire(ctx, "k", owner, lease))
	}
	for _, end := range ends {
		hold(ownA)
		call(end(ownB))
		call(end(ownA))
	}
	require.NoError(t, listener.Do(ctx, listener.B().Subscribe().Channel(Channel("k")).Build()).Error())
	for _, end := range ends {
		hold(ownA)
		r, err := end(ownA)
		call(r, err)
		require.Equal(t, Released{Ours: true, Listeners: 1}, r)
	}
	do("ACL", "SETUSER", "default", "-publish")
	defer do("ACL", "SETUSER", "default", "+publish")
	for _, end := range ends {
		hold(ownA)
		r, err := end(ownA)
		call(r, err)
		require.Equal(t, Released{Ours: true, Listeners: -1}, r)
	}
}
