package wire

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEnterRepeatedKeepsThePlace(t *testing.T) {
	r := newHarness(t)
	r.follow(ofC(1), ofA(1), ofB(1))
	before := r.score(ofA(1))
	require.Equal(t, []OwnerState{Waiting, Waiting}, r.enter(ofA(1), ofA(2)).States)
	r.requireQueue(ofA(1), ofB(1), ofA(2))
	require.Equal(t, 3, must(r.of(ofA(1)).Inspect(bounded(t), "k"))(t).Waiting)
	require.Equal(t, before, r.score(ofA(1)))

	r.release(ofC(1))
	require.Equal(t, []OwnerState{Holding, Waiting}, r.enter(ofA(1), ofA(2)).States)
	r.requireServed(ofA(1), ofB(1), ofA(2))
}

func TestF7_EnterAfterLeaveIsGone(t *testing.T) {
	r := newHarness(t)
	r.hold()
	r.waits(ofA(1), ofA(2))
	f := r.of(ofA(1))
	must(f.Leave(bounded(t), LeaveRequest{"k", []string{ofA(1)}, []string{ofA(2)}}))(t)
	require.Equal(t, AcquireReply{Gone: true}, r.acquire(ofA(1)))
	require.Equal(t, []OwnerState{Waiting, Gone, Waiting}, r.enter(ofA(3), ofA(1), ofA(2)).States, "only those in doubt have a tombstone")
	r.requireQueue(ofA(3), ofA(2))
	lasts(t, r.s, tombstone("k", ofA(1)), time.Minute)

	// A late enter of an owner without a score, as after a deleted sorted set: it
	// leaves the list, too.
	r.s.Do(t, "DEL", scores("k"))
	must(f.Leave(bounded(t), LeaveRequest{"k", []string{ofA(2)}, nil}))(t)
	require.Equal(t, []string{ofA(3)}, r.waiting())
}

func TestAcquireTakesOnlyWhatIsFreeAndNobodyWaitsFor(t *testing.T) {
	r := newHarness(t)
	for range 2 { // repeated
		require.Equal(t, AcquireReply{OK: true}, r.acquire(ofA(1)))
		r.requireHeld(ofA(1), lease)
	}
	a := r.acquire(ofB(1))
	require.False(t, a.OK)
	require.InDelta(t, lease, a.Remaining, float64(slack))
	r.s.Do(t, "PERSIST", "k")
	require.Equal(t, NoExpiry, r.acquire(ofB(1)).Remaining)
	r.requireQueue()

	// Free, but somebody waits: he is served, by a message even if he is the caller's.
	r.waits(ofA(2), ofB(2))
	r.expire()
	require.Equal(t, AcquireReply{Remaining: time.Millisecond}, r.acquire(ofA(3)))
	r.requireServed(ofA(2), ofB(2))
	r.requireSaid(grantMessage(ofA(2)))

	// Nobody hears, but somebody lives.
	r.expire()
	r.unsubscribe(r.inbox(ofB(2)))
	require.Equal(t, AcquireReply{Remaining: time.Millisecond}, r.acquire(ofA(3)))
	r.requireFree()
	r.requireQueue(ofB(2))

	// All that wait are dead.
	r.silence(clientB)
	require.Equal(t, AcquireReply{OK: true}, r.acquire(ofA(3)))
	r.requireHeld(ofA(3), lease)
	r.requireQueue()
}

func TestConfirmSetsLeaseAndLabel(t *testing.T) {
	r := newHarness(t)
	r.enter(ofA(1))
	granted := r.s.Do(t, "HGET", "k", ofA(1))
	for _, d := range []time.Duration{10 * time.Minute, time.Minute} { // longer, shorter
		require.Equal(t, AcquireReply{OK: true}, must(r.of(ofA(1)).Confirm(bounded(t), AcquireRequest{Key: "k", Owner: ofA(1), Lease: d}, Grant{}))(t))
		r.requireHeld(ofA(1), d)
		require.Equal(t, must(granted.ToString())(t), must(r.s.Do(t, "HGET", "k", ofA(1)).ToString())(t))
	}
	labelled := asking("k", ofA(1))
	labelled.Label = new("its own")
	require.Equal(t, AcquireReply{OK: true}, must(r.of(ofA(1)).Confirm(bounded(t), labelled, Grant{}))(t))
	require.Equal(t, "1 its own", must(r.s.Do(t, "HGET", "k", ofA(1)).ToString())(t))
	before := state(t, r.s)
	require.Zero(t, must(r.of(ofB(1)).Confirm(bounded(t), asking("k", ofB(1)), Grant{}))(t))
	require.Equal(t, before, state(t, r.s))
}

func TestFairQueue(t *testing.T) {
	r := newHarness(t)
	list := func() []Waiter { return must(r.of(ofA(1)).Queue(bounded(t), "k"))(t) }
	require.Empty(t, list())
	r.follow(ofC(1), ofA(1), ofB(1), ofA(2))
	r.s.Do(t, "RPUSH", queue("k"), ofJ(1))
	r.silence(clientB)
	r.s.Do(t, "HSET", heartbeats("k"), "label "+clientB, "web-3/4711")
	before := state(t, r.s)
	require.Equal(t, []Waiter{{ofA(1), true, ""}, {ofB(1), false, "web-3/4711"}, {ofA(2), true, ""}, {ofJ(1), false, ""}}, list())
	require.Equal(t, before, state(t, r.s))
}

func TestFairForceRelease(t *testing.T) {
	r := newHarness(t)
	r.s.Do(t, "HSET", "k", ofJ(1), "3")
	r.waits(ofA(1), ofB(1))
	for _, next := range []string{ofA(1), ofB(1)} { // by a message even to the caller's
		require.True(t, must(r.of(ofA(1)).ForceRelease(bounded(t), "k"))(t))
		r.requireHeld(next, grantLease)
		r.requireSaid(grantMessage(next))
	}
	for _, held := range []bool{true, false} {
		require.Equal(t, held, must(r.of(ofA(1)).ForceRelease(bounded(t), "k"))(t))
		r.requireFree()
		r.requireQueue()
	}
}

// Waiters that leave together, wherever they stand, leave the others in their order.
func TestLeaveOfMany(t *testing.T) {
	r := newHarness(t)
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	for range 40 {
		r.s.Do(t, "FLUSHALL")
		r.hold()
		var queued, ours []string
		for n := range 1 + random.IntN(3000) {
			owner := []string{ofA(n), ofA(n), ofB(n), ofJ(n)}[random.IntN(4)]
			if owner == ofA(n) {
				ours = append(ours, owner)
			}
			queued = append(queued, owner)
		}
		for some := range slices.Chunk(queued, 500) {
			push, add := []string{"RPUSH", queue("k")}, []string{"ZADD", scores("k")}
			for _, owner := range some {
				push, add = append(push, owner), append(add, "9e15", owner)
			}
			r.s.Do(t, push...)
			r.s.Do(t, add...)
		}
		random.Shuffle(len(ours), func(i, j int) { ours[i], ours[j] = ours[j], ours[i] })
		leaving := append(ours[:min(len(ours), random.IntN(101))], ofA(100_000), ofA(100_001)) // two are not there
		if from := random.IntN(len(queued)); random.IntN(2) == 0 {                             // neighbours
			leaving = leaving[:1]
			for _, owner := range queued[from:min(from+100, len(queued))] {
				if owner[:36] == clientA && owner != leaving[0] {
					leaving = append(leaving, owner)
				}
			}
		}
		doubts := random.IntN(len(leaving) + 1)
		if random.IntN(4) > 0 {
			doubts = 0
		}
		must(r.of(ofA(0)).Leave(bounded(t), LeaveRequest{"k", leaving[:doubts], leaving[doubts:]}))(t)
		want := slices.DeleteFunc(queued, func(o string) bool { return slices.Contains(leaving, o) })
		require.Equal(t, strings.Join(want, "\n"), strings.Join(r.waiting(), "\n"), "seed %d", seed)
		require.EqualValues(t, len(want), number(t, r.s, "ZCARD", scores("k")), "seed %d", seed)
	}
}

// The answers to enters and heartbeats say the places, without a command more of those
// that enter behind a holder.
func TestPlaces(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofC(1))
	require.Equal(t, 1, r.enter(ofB(1)).Place)
	require.Equal(t, 3, r.enter(ofA(1), ofA(2)).Place)
	require.Equal(t, 4, r.enter(ofB(2)).Place)
	require.Zero(t, r.enter(ofA(1), ofA(3)).Place, "they do not stand in a row")
	place := func(owners ...string) int {
		return r.beat(clientA, HeartbeatRequest{Owners: owners, Ahead: make([]time.Duration, len(owners)), Place: true}).Place
	}
	require.Equal(t, 3, place(ofA(2), ofA(1)))
	require.Zero(t, place(ofA(9)), "it does not wait")
	require.Zero(t, r.heartbeat(clientA, ofA(2)).Place, "nobody asks")
	r.release(ofC(1)) // ofB(1) is granted it
	require.Equal(t, 2, place(ofA(2)))
	require.Zero(t, r.costOf(func() { r.heartbeat(clientA, ofA(2)) })["lpos"])

	r.expire()
	e := r.enter(ofA(4), ofA(5)) // ofA(1) is served
	require.Equal(t, granted(ofA(1)), e.Grant)
	require.Equal(t, 5, e.Place)
	require.Equal(t, 5, place(ofA(5)))
}
