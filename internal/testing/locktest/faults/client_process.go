package faults

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	locktest.RegisterChild("client", obedientClient)
	register("F1_HolderKilled", testHolderKilled, realServers)
	register("F2_HolderPausedPastItsLease", func(t *testing.T, k locktest.Kind) { testHolderPaused(t, k, true) }, realServers)
	register("F2_NobodyElseTookTheKey", func(t *testing.T, k locktest.Kind) { testHolderPaused(t, k, false) }, realServers)
	register("F2_PausedWhileAcquiring", testPausedWhileAcquiring, realServers)
	register("F2_RenewalArrivesLate", testRenewalArrivesLate)
}

// obedientClient is a child with one fenced locker, that does as it is told, line
// by line, with one lease at a time, and answers each line with one.
// Args: the address of Redis, its lease.
func obedientClient(k locktest.Kind, p *locktest.Parent) error {
	client, err := p.Client(p.Args[0])
	if err != nil {
		return err
	}
	lease, err := time.ParseDuration(p.Args[1])
	if err != nil {
		return err
	}
	locker, err := k.New(client, locktest.Options{Lease: lease, Fencing: true, MaxOutage: ptr(locktest.Long)}) // beyond pauses: a slow machine adds to them
	if err != nil {
		return err
	}
	var l *holdfast.Lease
	ctx := context.Background()
	for {
		words := strings.Fields(p.Hear())
		switch words[0] {
		case "lock", "trylock":
			take := locker.Lock
			if words[0] == "trylock" {
				take = locker.TryLock
			}
			if l, err = take(ctx, words[1]); err != nil {
				p.Say("failed %s", errorName(err))
			} else {
				p.Say("held %d", l.Fence())
			}
		case "done": // wait for it
			<-l.Done()
			p.Say("done %s", errorName(l.Err()))
		case "unlock":
			p.Say("unlocked %s", errorName(l.Unlock(ctx)))
		case "write":
			p.Say("wrote %t", guardedWrite(ctx, client, words[1], l.Fence(), "child"))
		case "close":
			err := locker.Close()
			client.Close()
			return err
		}
	}
}

// errorName is the name of the error of ours that err is.
func errorName(err error) string {
	if err == nil {
		return "nil"
	}
	for name, known := range map[string]error{
		"ErrLost": holdfast.ErrLost, "ErrReleased": holdfast.ErrReleased, "ErrUnknown": holdfast.ErrUnknown, "ErrNotAcquired": holdfast.ErrNotAcquired,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	return err.Error()
}

// guardedWrite writes to a resource that refuses fences below those it has seen,
// and reports whether it took it.
func guardedWrite(ctx context.Context, c rueidis.Client, name string, fence int64, value string) bool {
	const guard = `if tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2])
return 1`
	took, err := c.Do(ctx, c.B().Eval().Script(guard).Numkeys(1).Key(name).Arg(strconv.FormatInt(fence, 10), value).Build()).ToInt64()
	if err != nil {
		panic(fmt.Sprintf("guarded write: %v", err))
	}
	return took == 1
}

// ask has a child do something, and returns what its answer says after the word.
func ask(c *locktest.Child, line, word string) string {
	c.Say(line)
	return c.Expect(word)
}

func fence(t *testing.T, s string) int64 {
	t.Helper()
	return locktest.Must(strconv.ParseInt(s, 10, 64))(t)
}

func testHolderKilled(t *testing.T, k locktest.Kind) {
	const lease = 500 * time.Millisecond
	s := k.Start(t)
	next := k.Open(t, s.Client(t), locktest.Options{Fencing: true, Lease: locktest.Long})
	child := locktest.StartChild(t, "client", s.Addr(), lease.String())
	for range 3 {
		before := fence(t, ask(child, "lock k", "held"))
		waiting := locktest.GoLock(next, locktest.Bounded(t), "k")
		child.Kill()
		killed := time.Now()
		l := locktest.Got(t, waiting)
		require.Less(t, time.Since(killed), lease+20*time.Second) // internal/testing/sim/speed has the promised time
		k.Grown(t, before, l.Fence())
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		child = locktest.StartChild(t, "client", s.Addr(), lease.String())
	}
}

const pausedLease = 3 * time.Second

// A holder stands still for longer than its lease, while another takes the key or nobody does. When
// it goes on, it is told, and changes nothing.
func testHolderPaused(t *testing.T, k locktest.Kind, taken bool) {
	s := k.Start(t)
	client := s.Client(t)
	next := k.Open(t, client, locktest.Options{Fencing: true, Lease: locktest.Long, GrantLease: locktest.Long})
	child := locktest.StartChild(t, "client", s.Addr(), pausedLease.String())
	old := fence(t, ask(child, "lock k", "held"))
	child.Say("done")
	child.Pause()
	var l *holdfast.Lease
	if taken {
		l = locktest.Lock(t, next, locktest.Bounded(t), "k")
		k.Grown(t, old, l.Fence())
		require.True(t, guardedWrite(locktest.Bounded(t), client, "resource", l.Fence(), "parent"))
	} else {
		locktest.Await(t, func() bool { return !locktest.Exists(t, s, "k") })
	}
	child.Resume()
	require.Equal(t, "ErrLost", child.Expect("done"))
	require.Equal(t, taken, locktest.Exists(t, s, "k"), "a renewal has made it again")
	if taken && !k.Permits {
		require.Equal(t, "false", ask(child, "write resource", "wrote"))
	}
	require.Equal(t, "ErrLost", ask(child, "unlock", "unlocked"))
	require.Equal(t, "ErrReleased", ask(child, "unlock", "unlocked"))
	if taken {
		held := locktest.Must(next.Inspect(locktest.Bounded(t), "k"))(t)
		require.Equal(t, l.Owner(), held.Owner)
		require.Greater(t, held.Remaining, locktest.Long/2, "the lease is as its holder left it")
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
	}
	child.Say("close")
	child.Await()
	locktest.Gone(t, s, "k")
}

// The process stands still from before the reply to its acquire until the lease
// is over: it must not believe in that reply.
func testPausedWhileAcquiring(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	proxy := s.Behind(t)
	next := k.Open(t, s.Client(t), locktest.Options{Fencing: true, Lease: locktest.Long})
	child := locktest.StartChild(t, "client", proxy.Ways(), pausedLease.String())
	ask(child, "lock warm", "held") // the scripts are known from here on
	ask(child, "unlock", "unlocked")

	for _, how := range []string{"lock", "trylock"} {
		executed := proxy.OnAll(func(p *redistest.Proxy) <-chan struct{} { // else the others would tell that another holds the key by then
			hook, held := locktest.Holding("acquire")
			p.OnReply(hook)
			return held
		})
		child.Say(how + " k")
		locktest.Within(t, executed)
		child.Pause()
		proxy.OnReply(nil)
		proxy.Release() // the reply lies in the socket of the sleeping process
		l := locktest.Lock(t, next, locktest.Bounded(t), "k")
		child.Resume()
		if how == "trylock" {
			require.Equal(t, "ErrUnknown", child.Expect("failed"))
			require.NoError(t, l.Unlock(locktest.Bounded(t)))
			continue
		}
		require.Equal(t, l.Owner(), locktest.Must(next.Inspect(locktest.Bounded(t), "k"))(t).Owner)
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		k.Grown(t, l.Fence(), fence(t, child.Expect("held")))
		ends := []string{"nil", "ErrUnknown"}
		if !k.Permits { // its fence shows that this is a lease of its own, which is short for a slow machine
			ends = append(ends, "ErrLost")
		}
		require.Contains(t, ends, ask(child, "unlock", "unlocked"))
	}
	child.Say("close")
	child.Await()
	locktest.Gone(t, s, "k")
}

// A renewal that was on its way when the lease ended finds no hold, and then another's: it
// changes neither.
func testRenewalArrivesLate(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: pausedLease})
	next := k.Open(t, r.Server.Client(t), locktest.Options{Lease: locktest.Long})
	for _, taken := range []bool{false, true} {
		held, executed := make(chan struct{}, 1), make(chan struct{}, 1)
		const passing, wanted, holding = 0, 1, 2
		var state atomic.Int32 // of renewals: from the first on, those to all nodes are held
		r.Proxy.OnRequest(when(locktest.Is("renew"), func() redistest.Verdict {
			if !state.CompareAndSwap(wanted, holding) && state.Load() != holding {
				return redistest.Pass
			}
			loop.Poke(held)
			return redistest.Hold
		}))
		r.Proxy.OnReply(seeing(locktest.Is("renew"), func() { loop.Poke(executed) }))
		var l *holdfast.Lease
		for sent := false; !sent; { // a machine that stands still for a whole lease sends no renewal
			l = locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
			state.Store(wanted)
			select {
			case <-held:
				sent = true
			case <-l.Done(): // and it may be held all the same
				sent = !state.CompareAndSwap(wanted, passing)
			}
		}
		locktest.Within(t, l.Done())
		require.ErrorIs(t, l.Err(), holdfast.ErrLost)
		locktest.Await(t, func() bool { return !locktest.Exists(t, r.Server, "k") })
		var now *holdfast.Lease
		if taken {
			now = locktest.Lock(t, next, locktest.Bounded(t), "k")
		}
		r.Proxy.OnRequest(nil)
		r.Proxy.Release()
		locktest.Within(t, executed)
		require.Equal(t, taken, locktest.Exists(t, r.Server, "k"))
		require.ErrorIs(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
		if taken {
			require.Greater(t, locktest.Number(t, r.Server, "PTTL", "k"), int(locktest.Long.Milliseconds()/2))
			require.NoError(t, now.Unlock(locktest.Bounded(t)))
		}
	}
}
