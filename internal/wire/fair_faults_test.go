package wire

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Whatever key is a foreign one: it is left alone, a newcomer is refused, and an owner that
// goes away still goes.
func TestF33_FairWrongType(t *testing.T) {
	r := newHarness(t, fencing(10))
	c := client{fair: r.of(ofA(1))}.wants(t, "k", ofA(1))
	for _, foreign := range []string{"k", queue("k"), scores("k"), heartbeats("k"), counter("k")} {
		for _, value := range [][]string{{"SADD", foreign, "x"}, {"XADD", foreign, "*", "f", "v"}, {"SET", foreign, "no number"}} {
			says := "WRONGTYPE"
			if foreign == counter("k") && value[0] == "SET" {
				says = "fence counter"
			}
			// called makes a call by the holder of a lock for which others wait, or by a
			// newcomer. The foreign value stays, and a newcomer that fails changes nothing.
			called := func(name string, waiting ...string) error {
				t.Helper()
				r.s.Do(t, "FLUSHALL")
				if len(waiting) > 0 {
					r.follow(ofA(1), waiting...)
				}
				r.messages()
				r.s.Do(t, "DEL", foreign)
				r.s.Do(t, value...)
				before := state(t, r.s)
				err := inOrder.calls[name](c)
				after := state(t, r.s)
				require.Equal(t, before[foreign], after[foreign])
				if err != nil && len(waiting) == 0 {
					requireRefused(t, says, err, "%s %s", name, foreign)
					require.Equal(t, before, after)
				}
				return err
			}

			// A newcomer: nothing is done. Acquire meets the queue only if there is one
			// before it, the scores and heartbeats only for owners that wait in it. A grant
			// of enter has no number if the counter cannot be read; its confirm says why.
			require.Equal(t, foreign == scores("k") || foreign == heartbeats("k"), called("acquire") == nil, foreign)
			require.Equal(t, foreign == counter("k"), called("enter") == nil, foreign)
			if foreign == counter("k") {
				r.requireHeld(ofA(1), grantLease)
				before := state(t, r.s)
				requireRefused(t, says, inOrder.calls["confirm"](c))
				require.Equal(t, before, state(t, r.s))
			}

			for _, name := range []string{"release in doubt", "leave"} { // an owner that goes away
				if err := called(name, ofA(2), ofB(1)); foreign == "k" {
					require.ErrorContains(t, err, "WRONGTYPE")
				} else {
					require.NoError(t, err)
					require.Zero(t, number(t, r.s, "HEXISTS", "k", ofA(1)))
				}
				if foreign != queue("k") && (foreign != "k" || name == "leave") {
					require.NotContains(t, r.waiting(), ofA(2))
				}
				switch foreign {
				case scores("k"):
					r.requireHeld(ofB(1), grantLease)
					require.Len(t, r.messages(), 1)
				case counter("k"):
					r.requireServed(ofB(1))
					r.requireSaid(grantMessage(ofB(1))) // without numbers
				}
			}
			require.Equal(t, foreign == "k", called("force release", ofA(2), ofB(1)) != nil)
		}
	}
}

// Out of memory: a holder gets rid of the lock, a newcomer is refused cleanly, those that wait
// live on and are served, and all goes on afterwards.
func TestF30_FairOutOfMemory(t *testing.T) {
	r := newHarness(t, fencing(10))
	unavailable := func(name, owner string) {
		t.Helper()
		before := r.lasting("fenced")
		err := inOrder.calls[name](client{fair: r.of(owner)}.wants(t, "k", owner))
		require.ErrorContains(t, err, "OOM")
		require.Equal(t, Unavailable, OutcomeOf(err))
		require.Equal(t, before, r.lasting("fenced"))
	}
	r.follow(ofC(1), ofA(1), ofB(1))
	r.s.Do(t, "HSET", heartbeats("k"), clientB, decimal(serverMillis(t, r.s)+20_000)) // it is time for the next
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	unavailable("enter", ofA(3))
	require.True(t, must(r.of(ofC(1)).Confirm(bounded(t), "k", ofC(1), lease, Grant{}))(t).OK)

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
	r.subscribe(r.of(ofA(1)).OwnerChannel("k", ofJ(1)))
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.Equal(t, HeartbeatReply{HeartbeatSoon: true}, r.heartbeat(clientA))
	r.requireSaid("redisson_lock__channel:{k}:" + ofJ(1) + " 0")
}

// A client whose inbox is subscribed at a replica only, as on a master that was demoted,
// would get what the master publishes though the master counts no receiver and passes over
// the waiter. Both clients would then believe that they hold the lock.
func TestF36_GrantsReachOnlyThoseThatAreCounted(t *testing.T) {
	r := newHarness(t)
	host, port, err := net.SplitHostPort(r.s.Addr())
	require.NoError(t, err)
	r.s.Do(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", host, port)
	until(t, func() bool { return number(t, r.s, "WAIT", "1", "100") == 1 })
	demoted := listen(t, replica)
	inbox := r.of(clientA).Inbox("k")
	demoted.subscribe(inbox)
	r.unsubscribe(inbox)

	r.follow(ofC(1), ofA(1), ofB(1))
	require.Equal(t, FairReply{Ours: true}, r.release(ofC(1)))
	r.requireHeld(ofB(1), grantLease)
	r.requireSaid(grantMessage(ofB(1)))
	r.requireQueue(ofA(1))
	require.EqualValues(t, 1, number(t, r.s, "WAIT", "1", "5000"))
	demoted.requireSaid()
}
