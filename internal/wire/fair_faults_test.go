package wire

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever key is a foreign one: it is left alone, a newcomer is refused, and an owner that
// goes away still goes.
func TestF33_FairWrongType(t *testing.T) {
	r := newHarness(t, fencing(10))
	c := client{fair: r.of(ofA(1))}.wants(t, "k", ofA(1))
	for _, made := range []struct {
		call    string
		holds   bool     // the caller has the lock, and others wait
		refused []string // if one of these keys is foreign
		goes    []string // the caller's waiter goes also if one of these is foreign
	}{
		// Acquire meets the queue only if there is one before it, the scores and heartbeats only for owners that wait in it.
		{call: "acquire", refused: []string{"k", queue("k"), counter("k")}},
		{call: "enter", refused: []string{"k", queue("k"), scores("k"), heartbeats("k")}},
		{call: "release in doubt", holds: true, refused: []string{"k"}, goes: []string{scores("k"), heartbeats("k"), counter("k")}},
		{call: "leave", holds: true, refused: []string{"k"}, goes: []string{"k", scores("k"), heartbeats("k"), counter("k")}},
		{call: "force release", holds: true, refused: []string{"k"}},
	} {
		for _, foreign := range []string{"k", queue("k"), scores("k"), heartbeats("k"), counter("k")} {
			for _, value := range [][]string{{"SADD", foreign, "x"}, {"XADD", foreign, "*", "f", "v"}, {"SET", foreign, "no number"}} {
				about := made.call + " " + strings.Join(value, " ")
				r.s.Do(t, "FLUSHALL")
				if made.holds {
					r.follow(ofA(1), ofA(2), ofB(1))
				}
				r.messages()
				r.s.Do(t, "DEL", foreign)
				r.s.Do(t, value...)
				before := state(t, r.s)
				err := inOrder.calls[made.call](c)
				after := state(t, r.s)
				require.Equal(t, before[foreign], after[foreign], about)
				if slices.Contains(made.goes, foreign) {
					require.NotContains(t, r.waiting(), ofA(2), about)
				}
				says := "WRONGTYPE"
				if foreign == counter("k") && value[0] == "SET" {
					says = "fence counter"
				}
				switch {
				case slices.Contains(made.refused, foreign):
					requireRefused(t, says, err, about)
					require.True(t, made.holds || maps.Equal(before, after), about)
				case made.holds:
					require.NoError(t, err, about)
					require.Zero(t, number(t, r.s, "HEXISTS", "k", ofA(1)), about)
				case made.call == "enter": // a grant has no number if the counter cannot be read; its confirm says why
					require.NoError(t, err, about)
					r.requireHeld(ofA(1), grantLease)
					requireRefused(t, says, inOrder.calls["confirm"](c), about)
					require.Equal(t, after, state(t, r.s), about)
				default:
					require.NoError(t, err, about)
				}
				if foreign == scores("k") && made.goes != nil {
					r.requireHeld(ofB(1), grantLease)
					require.Len(t, r.messages(), 1, about)
				}
				if foreign == counter("k") && made.goes != nil {
					r.requireServed(ofB(1))
					r.requireSaid(grantMessage(ofB(1))) // without numbers
				}
			}
		}
	}
}

// Out of memory: a holder gets rid of the lock, a newcomer is refused cleanly, those that wait
// live on and are served, and all goes on afterwards.
func TestF30_FairOutOfMemory(t *testing.T) {
	r := newHarness(t, fencing(10))
	unavailable := func(name, owner string) {
		t.Helper()
		before := r.lasting(true)
		err := inOrder.calls[name](client{fair: r.of(owner)}.wants(t, "k", owner))
		require.ErrorContains(t, err, "OOM")
		require.Equal(t, Unavailable, OutcomeOf(err))
		require.Equal(t, before, r.lasting(true))
	}
	r.follow(ofC(1), ofA(1), ofB(1))
	r.s.Do(t, "HSET", heartbeats("k"), clientB, decimal(serverMillis(t, r.s)+20_000)) // it is time for the next
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	unavailable("enter", ofA(3))
	require.True(t, must(r.of(ofC(1)).Confirm(bounded(t), asking("k", ofC(1)), Grant{}))(t).OK)

	// Redis looks at its memory at a script's first write: what follows a release
	// is not refused.
	require.Equal(t, FairReply{Ours: true}, r.release(ofC(1)))
	require.Len(t, r.messages(), 1)
	r.requireHeld(ofA(1), grantLease)
	r.expire()
	require.Equal(t, AcquireReply{Remaining: time.Millisecond}, r.acquire(ofC(2)), "somebody is before, but cannot be served")
	require.Equal(t, ofB(1), r.heartbeat(clientB).Grant.Owner)
	require.Greater(t, number(t, r.s, "HGET", heartbeats("k"), clientB), serverMillis(t, r.s)+20_000)
	r.requireServed(ofB(1))
	require.Equal(t, FairReply{Ours: true}, r.leave(ofB(1)))
	r.requireFree()
	unavailable("acquire", ofC(2))
	unavailable("enter", ofA(3))

	r.s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	r.follow(ofC(3), ofA(3))
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.True(t, must(r.of(ofA(1)).ForceRelease(bounded(t), "k"))(t))
	r.requireHeld(ofA(3), grantLease)
	require.Equal(t, FairReply{Ours: true}, r.release(ofA(3)))
	r.requireFree()
}

// Out of memory with a Java waiter first: it is woken all the same.
func TestF30_JavaIsWokenOutOfMemory(t *testing.T) {
	r := newHarness(t)
	r.find("Java head")
	r.expire()
	r.subscribe(Inbox("k", ofJ(1)))
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.Equal(t, HeartbeatReply{HeartbeatSoon: true}, r.heartbeat(clientA))
	r.requireSaid("redisson_lock__channel:{k}:" + ofJ(1) + " 0")
}
