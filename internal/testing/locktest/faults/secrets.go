package faults

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Secrets and users change while a client works: for a while Redis refuses it, and then no
// longer.

func init() {
	register("F39_PasswordComesLate", testPasswordLate, ofOneHolder|realServers)
	register("F39_ProviderFails", testProviderFails, ofOneHolder|realServers)
	register("F39_PasswordWantedForAWhile", func(t *testing.T, k locktest.Kind) {
		testRotation(t, k, "NOAUTH", func(*rueidis.ClientOption) {},
			func(s locktest.Topology) {
				s.Do(t, "CONFIG", "SET", "requirepass", "secret")
				s.Do(t, "CLIENT", "KILL", "SKIPME", "yes")
			},
			func(s locktest.Topology) { s.Do(t, "CONFIG", "SET", "requirepass", "") })
	}, ofOneHolder|realServers)
	register("F39_NoScriptsForAWhile", func(t *testing.T, k locktest.Kind) {
		testRotation(t, k, "NOPERM", locktest.AsLeast,
			func(s locktest.Topology) { s.Do(t, "ACL", "SETUSER", locktest.LeastUser, "-evalsha", "-eval") },
			func(s locktest.Topology) { s.Do(t, "ACL", "SETUSER", locktest.LeastUser, "+evalsha", "+eval") })
	}, ofOneHolder|realServers)
	register("F39_KeyForbiddenForAWhile", testKeyForbiddenForAWhile, ofOneHolder|realServers)
	register("F39_ConfirmForbiddenForAWhile", testConfirmForbiddenForAWhile, fairOnly|realServers)
	register("F39_RefusedAtTheFirstCall", testRefusedAtFirst, oneRedis|realServers) // the suite has a quorum looked at before its first lock
	register("F39_ReleaseOfAForbiddenKey", testReleaseForbidden, realServers)
	register("F39_UndoOfAForbiddenKey", testUndoForbidden, realServers)
}

// provider is what a program gives as AuthCredentialsFn.
type provider struct {
	says atomic.Pointer[func() (string, error)]
}

func (p *provider) use(f func() (string, error)) { p.says.Store(&f) }

func (p *provider) client(o *rueidis.ClientOption) {
	o.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		password, err := (*p.says.Load())()
		return rueidis.AuthCredentials{Username: locktest.LeastUser, Password: password}, err
	}
}

func password(text string) func() (string, error) { return func() (string, error) { return text, nil } }

// The provider learns of a new password after Redis.
func testPasswordLate(t *testing.T, k locktest.Kind) {
	var p provider
	p.use(password(locktest.Password))
	testRotation(t, k, "WRONGPASS", p.client,
		func(s locktest.Topology) {
			s.Do(t, "ACL", "SETUSER", locktest.LeastUser, ">new", "<"+locktest.Password)
			s.Do(t, "CLIENT", "KILL", "USER", locktest.LeastUser)
		},
		func(locktest.Topology) { p.use(password("new")) })
}

// The provider cannot be reached, and is slow when it is back.
func testProviderFails(t *testing.T, k locktest.Kind) {
	var p provider
	p.use(password(locktest.Password))
	testRotation(t, k, "the vault is sealed", p.client,
		func(s locktest.Topology) {
			p.use(func() (string, error) { return "", errors.New("the vault is sealed") })
			s.Do(t, "CLIENT", "KILL", "USER", locktest.LeastUser)
		},
		func(locktest.Topology) {
			p.use(func() (string, error) { time.Sleep(300 * time.Millisecond); return locktest.Password, nil })
		})
}

// testRotation requires that a client which has worked takes a refusal for an outage: no
// lease is lost, no wait ends, and a release goes on.
func testRotation(t *testing.T, k locktest.Kind, code string, client func(*rueidis.ClientOption), begin, end func(locktest.Topology)) {
	const lease = 40 * time.Second
	s := startLeast(t, k)
	locker, renewed := k.Open(t, s.Client(t, client), locktest.Options{Lease: locktest.Long}), k.Open(t, s.Client(t, client), locktest.Options{Lease: lease})
	other := k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long})
	ctx, cancel := context.WithTimeout(context.Background(), 2*locktest.Patience)
	defer cancel()
	kept, gone, held := locktest.Lock(t, renewed, ctx, "kept"), locktest.Lock(t, locker, ctx, "gone"), locktest.Lock(t, other, ctx, "k")
	waiting := locktest.GoLock(locker, ctx, "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 1 })

	begin(s)
	sealed := code == "the vault is sealed"
	locktest.Await(t, func() bool { // the fault may cut connections first, that of one node before that of another
		_, err := locker.TryLock(ctx, "another")
		unavailable := errors.Is(err, holdfast.ErrUnavailable)
		require.True(t, unavailable || errors.Is(err, holdfast.ErrUnknown), err)
		return strings.Contains(err.Error(), code) && (unavailable != sealed || sealed && k.Nodes > 0)
	})
	impatient, leave := context.WithCancel(ctx)
	leave()
	require.Error(t, gone.Unlock(impatient))
	until := kept.Deadline()
	locktest.Await(t, func() bool { return time.Until(until) < lease*6/10 }) // so renewals, due at two thirds, fail
	require.NoError(t, kept.Err())
	require.Empty(t, waiting, "a wait has ended")
	require.True(t, locktest.Exists(t, s, "gone"))

	end(s)
	locktest.Await(t, func() bool { return !locktest.Exists(t, s, "gone") }, "its release has stopped")
	locktest.Await(t, func() bool { return kept.Deadline().After(until) })
	require.NoError(t, kept.Unlock(ctx))
	require.NoError(t, held.Unlock(ctx))
	require.NoError(t, locktest.Got(t, waiting).Unlock(ctx))
}

// refusedAKey reports whether a call was refused for its key.
func refusedAKey(t *testing.T, s locktest.Topology) bool {
	return strings.Contains(s[0].Do(t, "ACL", "LOG").String(), `"key"`)
}

// A user gets other keys, in two steps. What has had an answer for its key goes on, and a first
// call is refused immediately.
func testKeyForbiddenForAWhile(t *testing.T, k locktest.Kind) {
	s := startLeast(t, k)
	locker, other := k.Open(t, s.Client(t, locktest.AsLeast), locktest.Options{Lease: locktest.Long}), k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long})
	mine, held := locktest.Lock(t, locker, locktest.Bounded(t), "mine"), locktest.Lock(t, other, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 1 })

	s.Do(t, "ACL", "SETUSER", locktest.LeastUser, "resetkeys")
	locktest.Await(t, func() bool { // the waiter has been refused
		locktest.Publish(t, s, k.Channel("k"), "0")
		return refusedAKey(t, s)
	})
	locktest.RequireSentinel(t, locktest.ErrOf(locker.Lock(locktest.Bounded(t), "another")), nil, "NOPERM")
	locktest.RequireSentinel(t, locktest.ErrOf(locker.TryLock(mine.Bind(locktest.Bounded(t)), "mine")), holdfast.ErrUnavailable, "NOPERM")
	nested := locktest.GoLock(locker, mine.Bind(locktest.Bounded(t)), "mine")

	s.Do(t, "ACL", "SETUSER", locktest.LeastUser, "allkeys")
	require.NoError(t, locktest.Next(t, held, waiting).Unlock(locktest.Bounded(t)))
	require.NoError(t, locktest.Got(t, nested).Unlock(locktest.Bounded(t)))
	require.NoError(t, mine.Unlock(locktest.Bounded(t)))
}

// So does what confirms a grant.
func testConfirmForbiddenForAWhile(t *testing.T, k locktest.Kind) {
	s := startLeast(t, k)
	r := newHarnessOn(t, k, s, locktest.Options{Lease: locktest.Long, Confirmed: true}, locktest.AsLeast)
	held := locktest.Lock(t, r.Other, locktest.Bounded(t), "k")
	waiting := locktest.GoLock(r.Locker, locktest.Bounded(t), "k")
	r.AwaitWaiters("k", 1)
	keys := []string{"resetkeys", "allkeys"} // at the first confirmation and at the second
	var mu sync.Mutex
	r.Proxy.OnRequest(seeing(locktest.Is("confirm"), func() {
		mu.Lock()
		defer mu.Unlock()
		if len(keys) > 0 {
			s.Do(t, "ACL", "SETUSER", locktest.LeastUser, keys[0])
			keys = keys[1:]
		}
	}))
	require.NoError(t, locktest.Next(t, held, waiting).Unlock(locktest.Bounded(t)))
	require.Empty(t, keys)
}

// Nothing shows that a client which is refused at its first call will ever be allowed it.
func testRefusedAtFirst(t *testing.T, k locktest.Kind) {
	for _, c := range []struct {
		code  string
		begin []string
	}{
		{"WRONGPASS", []string{"ACL", "SETUSER", locktest.LeastUser, "resetpass", ">new"}},
		{"NOPERM", []string{"ACL", "SETUSER", locktest.LeastUser, "-evalsha", "-eval"}},
	} {
		t.Run(c.code, func(t *testing.T) {
			s := startLeast(t, k)
			locker := k.Open(t, s.Client(t, locktest.AsLeast), locktest.Options{Lease: locktest.Long})
			s.Do(t, c.begin...)
			s.Do(t, "CLIENT", "KILL", "USER", locktest.LeastUser)
			var err error
			locktest.Await(t, func() bool {
				_, err = locker.Lock(locktest.Bounded(t), "k")
				require.Error(t, err)
				return strings.Contains(err.Error(), c.code)
			})
			locktest.RequireSentinel(t, err, nil)
		})
	}
}

// A release that is refused as its key is forbidden goes on, for when it is allowed again.
func testReleaseForbidden(t *testing.T, k locktest.Kind) {
	s := startLeast(t, k)
	locker := k.Open(t, s.Client(t, locktest.AsLeast), locktest.Options{Lease: locktest.Long})
	l := locktest.Lock(t, locker, locktest.Bounded(t), "forbidden")
	forbid(t, s)
	locktest.RequireSentinel(t, l.Unlock(locktest.Bounded(t)), nil, "NOPERM")
	require.NoError(t, locktest.Cycle(locker, locktest.Bounded(t), "ok:another"))
	require.True(t, locktest.Exists(t, s, "forbidden"))
	s.Do(t, "ACL", "SETUSER", locktest.LeastUser, "allkeys")
	locktest.Await(t, func() bool { return !locktest.Exists(t, s, "forbidden") })
}

// So does what undoes an acquire without an answer.
func testUndoForbidden(t *testing.T, k locktest.Kind) {
	s := startLeast(t, k)
	r := newHarnessOn(t, k, s, locktest.Options{Lease: locktest.Long}, locktest.AsLeast)
	r.Proxy.OnReply(when(locktest.Is("acquire"), func() redistest.Verdict {
		forbid(t, s)
		return redistest.Cut
	}))
	locktest.RequireSentinel(t, locktest.ErrOf(r.Locker.TryLock(locktest.Bounded(t), "forbidden")), holdfast.ErrUnknown)
	locktest.Await(t, func() bool { return refusedAKey(t, s) })
	require.True(t, locktest.Exists(t, s, "forbidden"))
	s.Do(t, "ACL", "SETUSER", locktest.LeastUser, "allkeys")
	locktest.Await(t, func() bool { return !locktest.Exists(t, s, "forbidden") })
}
