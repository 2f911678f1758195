package wire

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

// The scripts check their arguments themselves, before they write; a fair release its settings
// only when its own work is done.
func TestF8_ScriptsRefuseBadArguments(t *testing.T) {
	r := ofQuorum.harness(t)
	wrong := func(want string, sc script, keys []string, args ...string) {
		t.Helper()
		for _, found := range []string{"free", "held"} {
			r.find(found)
			before := state(t, r.s)
			m, err := r.redis.invoke(bounded(t), sc, len(keys), slices.Concat(keys, args)...)
			if answers, bad := m.ToArray(); err == nil && bad == nil { // one for each lock
				err = refusedAlone(answers[0])
			}
			requireRefused(t, want, err, "%.30s %q", sc.text, args)
			require.Equal(t, before, state(t, r.s))
		}
	}
	const settings = "5000 6000 3600000 5 10"
	one, two, three := []string{"k"}, []string{"k", "g"}, []string{"k", "g", "t"}
	voted, marked, all := []string{"k", "g", marker}, []string{"k", marker}, appendFairKeys(nil, "k")
	five, six := []string{"k", "g", "t", "w", "a"}, []string{"k", "g", "t", "w", "a", "f"} // of a read/write lock
	stone, stones := append(slices.Clone(all), "g"), append(slices.Clone(all), "g", "h")
	bad := []string{"", "-1", "1.5", "1e3", "0x10", " 1", "1 ", "nan", "inf", "9999999999999999999"}
	for _, v := range bad {
		wrong("counter expiry", acquire, three, ownA, "1000", "1", "1", v)
		wrong("counter expiry", quorumFence, two, ownA, "1", v)
		wrong("last fence", fairRelease, all, settings, ofA(1), v)
		wrong("counter expiry", rwlockAcquire, six, ownA, "1000", "1", clientA, "0", "", "1", v)
		wrong("wish", rwlockAcquire, five, ownA, "1000", "1", clientA, v, "")
		wrong("wish", rwlockRelease, five, ownA, "c", "", clientA, v)
		if v != "9999999999999999999" {
			wrong("fence numbers", fairConfirm, all, settings, ofA(1), "1000", v, "0")
			wrong("fence numbers", fairConfirm, all, settings, ofA(1), "1000", "0", v)
		}
	}
	for _, v := range append(bad, "0") {
		wrong("lease", acquire, two, ownA, v)
		wrong("lease", acquire, three, ownA, v, "1", "1", "0")
		wrong("lease", acquireAll, two, v, "1", ownA)
		wrong("lease", renew, one, v, ownA)
		wrong("lease", fairAcquire, stone, settings, ofA(1), v)
		wrong("lease", fairConfirm, all, settings, ofA(1), v, "0", "0")
		wrong("lease", quorumRenew, marked, v, ownA, "0")
		wrong("lease", *acquire.each, two, "2", ownA, v)
		wrong("lease", *acquire.each, three, "3", ownA, v, "1", "1", "0")
		wrong("lease", quorumAcquire, voted, "2", ownA, v)
		wrong("lease", r.vote.acquire, voted, "2", ownA, v)
		wrong("reserve", acquire, three, ownA, "1000", "1", v, "0")
		wrong("lease", rwlockAcquire, five, ownA, v, "1", clientA, "0", "")
		wrong("lease", rwlockRenew, two, v, ownA)
		wrong("reserve", rwlockAcquire, six, ownA, "1000", "1", clientA, "0", "", v, "0")
		wrong("entries", setEntries, one, ownA, v)
		wrong("entries", semaphoreSetEntries, two, ownA, v)
		wrong("entries", rwlockSetEntries, two, ownA, v)
		wrong("lease", semaphoreAcquire, three, ownA, v, "3", "1")
		wrong("lease", *semaphoreAcquire.each, three, "3", ownA, v, "3", "1")
		wrong("lease", semaphoreRenew, two, v, ownA)
		wrong("permits", semaphoreAcquire, three, ownA, "1000", v, "1")
		wrong("permits", semaphoreResize, two, v, "c")
		if v != "" {
			wrong("last fence", release, two, ownA, "c", v)
			wrong("last fence", *release.each, two, "2", ownA, "", v)
			wrong("last fence", rwlockRelease, five, ownA, "c", v, clientA, "0")
		}
		wrong("last fence", quorumFence, two, ownA, v, "0")
		wrong("longest lease", quorumCheck, []string{marker}, "ab", v, "3", "activate", "ab")
		wrong("number of nodes", quorumCheck, []string{marker}, "ab", "1000", v, "mark")
		wrong("count", *acquire.each, two, v, ownA, "1000")
	}
	for _, incarnation := range []string{"", "x", "a b", "ab\n", "'"} {
		wrong("incarnation", quorumCheck, []string{marker}, incarnation, "1000", "3", "mark")
	}
	for _, n := range []string{"10001", "010", "99999", "100000"} {
		wrong("permits", semaphoreAcquire, three, ownA, "1000", n, "1")
		wrong("permits", semaphoreResize, two, n, "c")
		wrong("permits", semaphoreRenew, two, "1000", n, ownA)
	}
	wrong("entries", rwlockSetEntries, two, ownA, "100000")
	wrong("owner", semaphoreAcquire, three, "", "1000", "3", "1")
	wrong("owners", semaphoreRenew, two, "1000")
	wrong("owners", semaphoreRenew, two, "1000", "3", ownA, ownA)
	wrong("owners", semaphoreRenew, three, "1000", "3", ownA)
	wrong("third argument", semaphoreRelease, three, ownA, "c", "x")
	wrong("third argument", *semaphoreRelease.each, three, "3", ownA, "c", "x")
	wrong("owner", acquire, two, "", "1000")
	wrong("owner", acquire, three, "", "1000", "1", "1", "0")
	for _, owner := range []string{"", clientA, clientA + ":1", ofJ(1), ofA(1)[1:]} {
		wrong("owner", fairAcquire, stone, settings, owner, "1000")
		wrong("owner", fairEnter, stone, settings, owner)
	}
	wrong("owner", fairEnter, stones, settings, ofA(2), ofB(1)) // another client's
	wrong("owners", fairEnter, all, settings)
	wrong("owners", fairEnter, stone, settings, ofA(2), ofA(3))
	wrong("owners", fairEnter, stones, settings, ofA(2))
	wrong("owners", fairLeave, all, settings)
	wrong("owners", fairLeave, stones, settings, ofA(1))
	wrong("owner", rwlockAcquire, five, "", "1000", "1", clientA, "0", "")
	wrong("fencing", rwlockAcquire, six, ownA, "1000", "1", clientA, "0", writer(ofA(2)), "1", "0")
	wrong("owner", acquireAll, two, "1000", "1", "")
	wrong("owners", acquireAll, two, "1000", "1")
	wrong("owners", acquireAll, three, "1000", "1", ownA)
	wrong("owners", renew, two, "1000", ownA)
	wrong("owners", renew, two, "1000", ownA, ownA, ownA)
	wrong("owners", quorumRenew, marked, "1000", ownA)
	wrong("owners", quorumRenew, voted, "1000", ownA, "0")
	wrong("owners", quorumRenew, marked, "1000", ownA, "0", ownB, "0")
	wrong("five", fairHeartbeat, stone, settings, clientA, "0")
	for _, n := range []string{"0", "10", settings} {
		wrong("count", *acquire.each, two, n, ownA, "1000")
		wrong("count", *fairAcquire.each, stone, n, ofA(1), "1000")
	}
	wrong("count", *acquire.each, two, "3", ownA, "1000")

	for _, s := range []string{"", " ", "0 6000 3600000 5 10", "5000 0 3600000 5 10", "5000 6000 3600000 5",
		settings + " 1", settings + " ", " " + settings, "5000 6000 3600000 5 -1", "5000 6000 3600000 5 1.5", "5000 6e3 3600000 5 10",
		"05 6000 3600000 5 10", "5000 6000 3600000 1000 10", "5000 6000 3600000 5 1000000000", "5000 6000 1000000000000000 5 10",
		"5000 1000000000000000 3600000 5 10", "1000000000000 6000 3600000 5 10"} {
		wrong("settings", fairAcquire, stone, s, ofA(2), "1000")
		wrong("settings", fairEnter, stone, s, ofA(2))
		wrong("settings", fairLeave, stone, s, ofA(2))
		wrong("settings", fairConfirm, all, s, ofA(2), "1000", "0", "0")
		wrong("settings", fairHeartbeat, all, s, clientA, "1", "00", ofA(2), "1000")
		wrong("settings", fairForceRelease, all, s)
	}
}

// unconnected is a client of which any I/O would panic.
func unconnected() client {
	n, vote := NewRedis(nil, RedisSettings{}), newVote("m", "r")
	return client{Redis: n, fair: NewFair(n, settingsOf(clientA)), rw: NewRWLock(n, clientA), vote: vote}
}

func TestDoneContextSendsNothing(t *testing.T) {
	c := unconnected().wants(t, "k", ofA(1))
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithCancel(c.ctx)
	cancel()
	for _, f := range []family{plain, inOrder, shared} {
		for name, call := range f.calls {
			err := call(c)
			require.ErrorIs(t, err, context.Canceled, name)
			require.Equal(t, Refused, OutcomeOf(err), name)
		}
	}
}

// Where wire itself does not check what it is given, the script does.
func TestF8_BadArguments(t *testing.T) {
	r, ctx := ofQuorum.harness(t), bounded(t)
	c := clientOn(r.redis, r.vote)
	refused := func(what string, errs ...error) {
		t.Helper()
		for i, err := range errs {
			requireRefused(t, what, err, i)
		}
	}
	before := state(t, r.s)
	hold := func(what string, a AcquireRequest) {
		t.Helper()
		c.owner = a.Owner
		reader := RWLockAcquireRequest{AcquireRequest: a}
		refused(what, errOf(c.Acquire(ctx, a)), errOf(c.Acquire(ctx, fencedBy(fencingHour, a))),
			errOf(each(ctx, c.AcquireEach, a)), errOf(c.AcquireAll(ctx, []AcquireRequest{a})),
			errOf(c.fair.Acquire(ctx, a)), errOf(each(ctx, c.fair.AcquireEach, a)), errOf(c.permits().Acquire(ctx, a)),
			errOf(c.rw.Acquire(ctx, reader)), errOf(each(ctx, c.rw.AcquireEach, reader)))
		for _, vote := range []*Vote{nil, c.vote} {
			replies := make([]NodeReply, 1)
			require.NoError(t, c.AcquireVoted(ctx, vote, vote != nil, []AcquireRequest{a}, replies))
			refused(what, replies[0].Err)
		}
	}
	hold("owner", asking("k", ""))
	for _, d := range []time.Duration{0, -time.Second} {
		hold("lease", AcquireRequest{Key: "k", Owner: ofA(1), Lease: d})
		for _, renew := range []func(context.Context, time.Duration, []string, []string, []watchdog.Answer) error{c.Renew, c.permits().Renew, c.rw.Renew} {
			refused("lease", renew(ctx, d, []string{"k"}, []string{ownA}, make([]watchdog.Answer, 1)))
		}
		refused("lease", errOf(c.fair.Confirm(ctx, AcquireRequest{Key: "k", Owner: ofA(1), Lease: d}, Grant{})))
	}
	ask := asking("k", ofA(1))
	for what, fencings := range map[string][]Fencing{
		"reserve": {{Reserve: -1}, {Reserve: 1e9}}, "counter expiry": {{Reserve: 1, Expiry: -time.Second}},
	} {
		for _, f := range fencings {
			fenced := fencedBy(f, ask)
			refused(what, errOf(c.Acquire(ctx, fenced)), errOf(each(ctx, c.AcquireEach, fenced)),
				errOf(c.rw.Acquire(ctx, RWLockAcquireRequest{AcquireRequest: fenced})))
		}
	}
	beside := RWLockAcquireRequest{AcquireRequest: ask}
	beside.Beside = writer(ofA(2))
	refused("fencing", errOf(c.rw.Acquire(ctx, fencedReadWrite(beside))), errOf(each(ctx, c.rw.AcquireEach, fencedReadWrite(beside))))
	for _, d := range []time.Duration{-time.Second, time.Minute + time.Millisecond} {
		refused("wish", errOf(c.rw.Acquire(ctx, RWLockAcquireRequest{AcquireRequest: ask, Wish: d})),
			errOf(c.rw.Release(ctx, RWLockReleaseRequest{ReleaseRequest{Key: "k", Owner: ofA(1)}, d})))
	}
	for _, entries := range []int{-1, 0, 1e9} {
		refused("entries", errOf(c.SetEntries(ctx, "k", ownA, Entries{Count: entries})), errOf(c.rw.SetEntries(ctx, "k", ownA, Entries{Count: entries})))
	}
	for _, last := range []int64{-1, 1e16} {
		h := ReleaseRequest{Key: "k", Owner: ofA(1), LastFence: last}
		refused("last fence", errOf(c.Release(ctx, h)), errOf(each(ctx, c.ReleaseEach, h)), errOf(c.rw.Release(ctx, RWLockReleaseRequest{h, 0})),
			errOf(c.fair.Release(ctx, fairHold("k", ofA(1), last))), errOf(each(ctx, c.fair.ReleaseEach, fairHold("k", ofA(1), last))))
	}
	require.Equal(t, before, state(t, r.s))
}

// Some arguments only wire can check: what lists of different lengths make of a call is another call, or none.
func TestF8_NotSent(t *testing.T) {
	c, ctx := unconnected(), bounded(t)
	refused := func(what string, errs ...error) {
		t.Helper()
		for i, err := range errs {
			requireRefused(t, what, err, i)
		}
	}
	doubt, served := fairHold("k", ofA(1), 0), fairHold("k", ofA(1), 0)
	doubt.Doubt, served.Served = true, []string{ofA(2)}
	for _, h := range []FairReleaseRequest{doubt, served} {
		refused("owners", errOf(each(ctx, c.fair.ReleaseEach, fairHold("a", ofA(3), 0), h)))
	}
	for _, l := range []LeaveRequest{{"k", nil, []string{ofA(1)}}, {"k", []string{ofA(1)}, []string{ofA(2)}}, {"k", []string{ofA(1), ofA(2)}, nil}} {
		refused("owners", errOf(each(ctx, c.fair.LeaveEach, LeaveRequest{"a", []string{ofA(3)}, nil}, l)))
	}
	one, two := []string{"a"}, []string{"a", "b"}
	refused("not as many", c.Renew(ctx, lease, nil, nil, nil), c.Renew(ctx, lease, two, one, make([]watchdog.Answer, 2)), c.Renew(ctx, lease, two, two, make([]watchdog.Answer, 1)))
}
