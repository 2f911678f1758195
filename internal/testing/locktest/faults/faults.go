package faults

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// testCase is one row of the table in doc.go, or a part of one. Its name starts
// with the row: F11_SubscriberCut.
type testCase struct {
	name string
	run  func(t *testing.T, k locktest.Kind)
	marks
}

// marks say where and how a case runs.
type marks uint

const (
	fairOnly      marks = 1 << iota // fair locks only
	oneRedis                        // no quorums
	quorumOnly                      // quorums only
	severalNodes                    // quorums of several nodes only
	noClusterNode                   // no node of a Redis Cluster, which becomes a replica in another way
	ofOneHolder                     // a second holder has to wait; readers share a key
	ofLocks                         // not of a semaphore, which counts nested entries also when Redis is out of memory
	realServers                     // it needs real rights, memory, files, clocks, refusals, replicas, Clusters or processes
	inParts                         // its parts are tests, each in a world of its own
	alone                           // before the others: it counts goroutines or bytes, or needs both processors
)

func (m marks) has(one marks) bool { return m&one != 0 }

// leftOut reports whether a kind does not run the case.
func (m marks) leftOut(k locktest.Kind) bool {
	return m.has(fairOnly) && !k.Fair || m.has(oneRedis) && k.Nodes > 0 || m.has(quorumOnly) && k.Nodes == 0 ||
		m.has(severalNodes) && k.Nodes < 2 || m.has(noClusterNode) && k.Cluster || m.has(ofLocks) && k.Permits ||
		m.has(ofOneHolder) && k.Shared
}

// faults are all registered cases; written by init functions only.
var faults []*testCase

// register adds a case to the table; files call it in init.
func register(name string, run func(t *testing.T, k locktest.Kind), all ...marks) {
	c := &testCase{name: name, run: run}
	for _, m := range all {
		c.marks |= m
	}
	faults = append(faults, c)
}

// row is the part of a case's name that sorts: the number of its row.
func (c *testCase) row() string {
	number, _, _ := strings.Cut(c.name, "_")
	return strings.Repeat("0", max(0, 4-len(number))) + number[1:]
}

// Run runs every case that needs no real servers, unless a filter skips the test.
func Run(t *testing.T, on locktest.Place, filters ...func(*testing.T)) {
	run(t, on, filters, func(c *testCase) bool { return !c.has(realServers) })
}

// RunReal runs every case that needs real servers.
func RunReal(t *testing.T, k locktest.Kind, filters ...func(*testing.T)) {
	run(t, k.InRealTime, filters, func(c *testCase) bool { return c.has(realServers) })
}

// RunAll runs cases of both sorts, on real servers: every case in make test-servers, and elsewhere
// the first of each row.
func RunAll(t *testing.T, on locktest.Place, filters ...func(*testing.T)) {
	row := ""
	run(t, on, filters, func(c *testCase) bool {
		first := c.row() != row
		row = c.row()
		return first || locktest.ServersChosen()
	})
}

// run runs those cases that have to be alone, and then several at once, beside other suites.
func run(t *testing.T, on locktest.Place, filters []func(*testing.T), wanted func(*testCase) bool) {
	for _, skip := range filters {
		skip(t)
	}
	k := on(t)
	rows := slices.SortedStableFunc(slices.Values(faults), func(a, b *testCase) int { return strings.Compare(a.row(), b.row()) })
	rows = slices.DeleteFunc(rows, func(c *testCase) bool {
		return c.leftOut(k) || !wanted(c)
	})
	require.NotEmpty(t, rows)
	for _, c := range rows {
		if c.has(alone) {
			t.Run(c.name, func(t *testing.T) { c.try(t, k) })
		}
	}
	t.Parallel()
	for _, c := range rows {
		if !c.has(alone) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.try(t, k)
			})
		}
	}
}

func (c *testCase) try(t *testing.T, k locktest.Kind) {
	if c.has(inParts) {
		c.run(t, k)
	} else {
		k.Try(t, c.run)
	}
}

// harness is a Harness with what only faults ask for.
type harness struct{ *locktest.Harness }

func newHarness(t *testing.T, k locktest.Kind, o locktest.Options, change ...func(*rueidis.ClientOption)) *harness {
	t.Helper()
	return newHarnessOn(t, k, k.Start(t), o, change...)
}

func newHarnessOn(t *testing.T, k locktest.Kind, s locktest.Topology, o locktest.Options, change ...func(*rueidis.ClientOption)) *harness {
	t.Helper()
	return &harness{locktest.NewHarnessOn(t, k, s, o, change...)}
}

// everyCall makes each call of a locker that there is, and has the error of each checked.
func everyCall(l locktest.Locker, ctx context.Context, key string, check func(error)) {
	check(locktest.ErrOf(l.TryLock(ctx, key)))
	check(locktest.ErrOf(l.TryLockFor(ctx, key, time.Hour)))
	check(locktest.ErrOf(l.Lock(ctx, key)))
	check(l.Do(ctx, key, func(context.Context) error { return nil }))
	check(locktest.ErrOf(l.Inspect(ctx, key)))
	for _, err := range l.Locks(ctx, key) {
		check(err)
	}
	check(locktest.ErrOf(l.ForceUnlock(ctx, key)))
}

// when, always and seeing make hooks; see redistest.
var when, always, seeing = redistest.When, redistest.Always, redistest.Seeing

// holdRequests and holdReplies keep the calls of a script, or the answers to them, on their way
// until letGo. The channel is closed when there is one.
func (r *harness) holdRequests(verb string) <-chan struct{} {
	hook, held := locktest.Holding(verb)
	r.Proxy.OnRequest(hook)
	return held
}

func (r *harness) holdReplies(verb string) <-chan struct{} {
	hook, held := locktest.Holding(verb)
	r.Proxy.OnReply(hook)
	return held
}

func (r *harness) letGo() {
	r.Proxy.OnRequest(nil)
	r.Proxy.OnReply(nil)
	r.Proxy.Release()
}

// cutOff cuts the locker's client off, until the proxy refuses no more.
func (r *harness) cutOff() {
	r.Proxy.Refuse(true)
	r.Proxy.Cut()
}

// heldAndWanted has the other locker hold key, and the locker stand first in its queue.
func (r *harness) heldAndWanted(key string) (before *holdfast.Lease, waiting <-chan locktest.Acquired) {
	r.T.Helper()
	before = locktest.Lock(r.T, r.Other, locktest.Bounded(r.T), key)
	return before, r.InQueue(locktest.Bounded(r.T), key, 1)
}

// leaver makes the locker wait for key, as InQueue does. leave has the waiter give up.
func (r *harness) leaver(key string, n int) (leave func()) {
	r.T.Helper()
	ctx, cancel := context.WithCancel(locktest.Bounded(r.T))
	waiting := r.InQueue(ctx, key, n)
	return func() {
		r.T.Helper()
		cancel()
		require.ErrorIs(r.T, locktest.Within(r.T, waiting).Err, context.Canceled)
	}
}

// passesOn has a lease unlocked, and requires that the waiters get its key one after the other,
// and that nothing is left when they have unlocked, too.
func (r *harness) passesOn(l *holdfast.Lease, waiters ...<-chan locktest.Acquired) {
	r.T.Helper()
	for _, w := range waiters {
		l = locktest.Next(r.T, l, w)
	}
	require.NoError(r.T, l.Unlock(locktest.Bounded(r.T)))
	r.Tidy(l.Key())
}

// startLeast starts servers that know the user with the least rights, without some of these.
func startLeast(t *testing.T, k locktest.Kind, without ...string) locktest.Topology {
	t.Helper()
	s := k.Start(t)
	k.LeastRights(t, s, without...)
	return s
}

func ptr[T any](v T) *T { return &v }
