package scripts

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Whatever key is a foreign one: it is left alone, a newcomer is refused, and an owner that
// goes away still goes.
func TestF33_FairWrongType(t *testing.T) {
	r := newHarness(t, fencing(10))
	c := client{fair: r.of(ofA(1))}
	call := func(name string) error { return inOrder.calls[name](bounded(t), c, "k", ofA(1)) }
	for _, foreign := range []string{"k", queue("k"), scores("k"), heartbeats("k"), counter("k")} {
		for _, kind := range [][]string{{"SADD", foreign, "x"}, {"XADD", foreign, "*", "f", "v"}} {
			spoil := func() map[string]string {
				t.Helper()
				r.s.Do(t, "DEL", foreign)
				r.s.Do(t, kind...)
				return state(t, r.s)
			}
			kept := func(before map[string]string) {
				t.Helper()
				require.Equal(t, before[foreign], state(t, r.s)[foreign])
			}

			// A newcomer: nothing is done. Acquire meets the queue only if there is one
			// before it, the scores and heartbeats only for owners that wait in it.
			for _, name := range []string{"acquire", "enter"} {
				r.s.Do(t, "FLUSHALL")
				before := spoil()
				err := call(name)
				switch {
				case name == "acquire" && (foreign == scores("k") || foreign == heartbeats("k")):
					require.NoError(t, err)
				case name == "enter" && foreign == counter("k"): // its grant has no number, its confirm says why
					require.NoError(t, err)
					r.requireHeld(ofA(1), grantLease)
					err = call("confirm")
					require.Equal(t, Refused, OutcomeOf(err))
				default:
					require.ErrorContains(t, err, "WRONGTYPE", "%s %s", name, foreign)
					require.Equal(t, Refused, OutcomeOf(err))
					require.Equal(t, before, state(t, r.s))
				}
				kept(before)
			}

			// An owner that goes away.
			for _, name := range []string{"release in doubt", "leave"} {
				r.s.Do(t, "FLUSHALL")
				r.follow(ofA(1), ofA(2), ofB(1))
				r.said()
				before := spoil()
				err := call(name)
				kept(before)
				if foreign == "k" {
					require.ErrorContains(t, err, "WRONGTYPE")
				} else {
					require.NoError(t, err)
				}
				if foreign != "k" || name == "leave" {
					require.EqualValues(t, 0, number(t, r.s, "HEXISTS", fieldsOf(foreign), ofA(1)))
					if foreign != queue("k") {
						require.NotContains(t, r.waiting(), ofA(2))
					}
				}
				if foreign == scores("k") || foreign == counter("k") {
					r.requireHeld(ofB(1), grantLease)
					require.Len(t, r.said(), 1)
				}
			}

			r.s.Do(t, "FLUSHALL")
			r.follow(ofA(1), ofA(2), ofB(1))
			before := spoil()
			_, err := r.of(ofA(1)).ForceRelease(bounded(t), "k")
			kept(before)
			require.Equal(t, foreign == "k", err != nil)
		}
	}
}

// fieldsOf is a key of which HEXISTS can ask when another one is foreign.
func fieldsOf(foreign string) string {
	if foreign == "k" {
		return "nothing"
	}
	return "k"
}

// A counter that cannot be read costs the waiter its number, not its turn.
func TestCounterThatIsNoNumberCostsNoTurn(t *testing.T) {
	r := newHarness(t, fencing(10))
	r.follow(ofC(1), ofA(1))
	r.s.Do(t, "SET", token, "no number")
	require.Equal(t, Passed{Ours: true}, r.release(ofC(1)))
	r.requireSaid(grantMessage(ofA(1)))
	r.requireHeld(ofA(1), grantLease)
	r.requireQueue()
	before := state(t, r.s)
	_, err := r.of(ofA(1)).Confirm(bounded(t), "k", ofA(1), lease)
	require.ErrorContains(t, err, "fence counter")
	require.Equal(t, before, state(t, r.s))
	r.release(ofA(1))
	_, err = r.of(ofA(1)).Acquire(bounded(t), "k", ofA(2), lease)
	require.ErrorContains(t, err, "fence counter")
	r.requireFree()
}

// Out of memory: a holder gets rid of the lock, a newcomer is refused cleanly,
// nobody is granted what Redis could not write, and all goes on afterwards.
func TestF30_FairOutOfMemory(t *testing.T) {
	r := newHarness(t, fencing(10))
	full := func(on bool) { r.s.Do(t, "CONFIG", "SET", "maxmemory", map[bool]string{true: "1", false: "0"}[on]) }
	unavailable := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "OOM")
		require.Equal(t, Unavailable, OutcomeOf(err))
	}
	r.follow(ofC(1), ofA(1), ofB(1))
	full(true)
	before := r.lasting("fenced")
	_, err := r.of(ofA(1)).Enter(bounded(t), "k", ofA(2))
	unavailable(err)
	require.Equal(t, before, r.lasting("fenced"))
	_, err = r.of(ofC(1)).Confirm(bounded(t), "k", ofC(1), lease)
	unavailable(err)

	// Redis looks at its memory at a script's first write: what follows a release
	// is not refused.
	require.Equal(t, Passed{Ours: true}, r.release(ofC(1)))
	require.Len(t, r.said(), 1)
	r.requireHeld(ofA(1), grantLease)
	r.expire()
	require.Equal(t, Acquired{Remaining: time.Millisecond}, r.acquire(ofC(2)), "somebody is before, but cannot be served")
	require.Equal(t, Probed{}, r.heartbeat(clientB))
	r.requireFree()
	r.requireQueue(ofB(1))
	r.requireSaid()
	require.Equal(t, Passed{Ours: true}, r.leave(ofB(1)))
	r.requireQueue()
	before = r.lasting("fenced")
	_, err = r.of(ofC(2)).Acquire(bounded(t), "k", ofC(2), lease)
	unavailable(err)
	_, err = r.of(ofC(2)).Enter(bounded(t), "k", ofC(2))
	unavailable(err)
	require.Equal(t, before, r.lasting("fenced"))

	full(false)
	r.follow(ofC(3), ofA(3))
	full(true)
	require.True(t, must(r.of(ofA(1)).ForceRelease(bounded(t), "k"))(t))
	r.requireHeld(ofA(3), grantLease)
	require.Equal(t, Passed{Ours: true}, r.release(ofA(3)))
	r.requireFree()
}

// Out of memory with a Java waiter first: it is woken all the same.
func TestF30_JavaIsWokenOutOfMemory(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	r.s.Do(t, "RPUSH", queue("k"), ofJ(1))
	r.s.Do(t, "ZADD", scores("k"), "9e15", ofJ(1))
	r.waits(ofA(2))
	r.expire()
	r.subscribe(r.of(ofA(1)).OwnerChannel("k", ofJ(1)))
	r.s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	require.Equal(t, Probed{ProbeSoon: true}, r.heartbeat(clientA))
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
	require.Equal(t, Passed{Ours: true}, r.release(ofC(1)))
	r.requireHeld(ofB(1), grantLease)
	r.requireSaid(grantMessage(ofB(1)))
	r.requireQueue(ofA(1))
	require.EqualValues(t, 1, number(t, r.s, "WAIT", "1", "5000"))
	demoted.requireSaid()
}
