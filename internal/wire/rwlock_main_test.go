package wire

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// wish is that of a client that waits in these tests.
const wish = 60 * time.Second

func writer(owner string) string { return owner + WriteSuffix }

// shared is the calls of read/write locks, for an owner as a reader and as a writer.
var shared = family{
	name: "rwlock", commands: scripts.RWLockCommands(),
	keys:     plain.keys + " ~{k}:* ~holdfast_wishes:*",
	needless: []string{"publish"},
	situations: []string{
		"free", "read", "read by us", "written", "others read", "another writes", "a writer waits", "readers are next", "readers died",
	},
	ofHold: []string{"set entries", "may share"}, noLock: []string{"withdraw"}, denies: []string{"renew"},
	moves: []string{"renew"}, replicas: []string{"inspect", "may share"}, halves: []string{"acquire each", "release each"},
	calls: map[string]call{
		"read":          func(c client) error { return errOf(c.rw.Acquire(c.ctx, c.reads(0))) },
		"read waiting":  func(c client) error { return errOf(c.rw.Acquire(c.ctx, c.reads(wish))) },
		"read fenced":   func(c client) error { return errOf(c.rw.Acquire(c.ctx, fencedReadWrite(c.reads(0)))) },
		"read beside":   func(c client) error { return errOf(c.rw.Acquire(c.ctx, c.beside())) },
		"write":         func(c client) error { return errOf(c.rw.Acquire(c.ctx, c.writes(0))) },
		"write waiting": func(c client) error { return errOf(c.rw.Acquire(c.ctx, c.writes(wish))) },
		"write fenced":  func(c client) error { return errOf(c.rw.Acquire(c.ctx, fencedReadWrite(c.writes(0)))) },
		"acquire each": func(c client) error {
			return errOf(each(c.ctx, c.rw.AcquireEach, c.reads(0), c.beside()))
		},
		"acquire each fenced": func(c client) error {
			return errOf(each(c.ctx, c.rw.AcquireEach, fencedReadWrite(c.reads(0)), fencedReadWrite(c.writes(0))))
		},
		"release reader": func(c client) error { return errOf(c.rw.Release(c.ctx, c.ends(c.owner))) },
		"release writer": func(c client) error { return errOf(c.rw.Release(c.ctx, c.ends(writer(c.owner)))) },
		"release waiting": func(c client) error {
			h := c.ends(writer(c.owner))
			h.Wish = wish
			return errOf(c.rw.Release(c.ctx, h))
		},
		"release fenced": func(c client) error {
			h := c.ends(writer(c.owner))
			h.LastFence = 1
			return errOf(c.rw.Release(c.ctx, h))
		},
		"give up": func(c client) error { h := c.ends(c.owner); h.Doubt = true; return errOf(c.rw.Release(c.ctx, h)) },
		"release each": func(c client) error {
			return errOf(each(c.ctx, c.rw.ReleaseEach, c.ends(c.owner), c.ends(writer(c.owner))))
		},
		"renew":         func(c client) error { return c.renews(c.rw.Renew) },
		"set entries":   func(c client) error { return errOf(c.rw.SetEntries(c.ctx, c.key, c.owner, Entries{Count: 2})) },
		"force release": func(c client) error { return errOf(c.rw.ForceRelease(c.ctx, c.key)) },
		"may share":     func(c client) error { return errOf(c.rw.MayShare(c.ctx, c.key, c.owner)) },
		"inspect":       func(c client) error { return errOf(c.rw.Inspect(c.ctx, c.key)) },
		"withdraw":      func(c client) error { return c.rw.Withdraw(c.ctx, c.key) },
	},
}

func (c client) reads(wish time.Duration) RWLockAcquireRequest {
	return RWLockAcquireRequest{AcquireRequest: asking(c.key, c.owner), Wish: wish}
}

func fencedReadWrite(a RWLockAcquireRequest) RWLockAcquireRequest {
	a.Fencing = fencingHour
	return a
}

func (c client) beside() RWLockAcquireRequest {
	return RWLockAcquireRequest{AcquireRequest: AcquireRequest{Key: c.key, Owner: c.owner + "1", Lease: lease, Beside: writer(c.owner)}}
}

func (c client) writes(wish time.Duration) RWLockAcquireRequest {
	return RWLockAcquireRequest{AcquireRequest: asking(c.key, writer(c.owner)), Wish: wish}
}

func (c client) ends(owner string) RWLockReleaseRequest {
	return RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: c.key, Owner: owner}}
}

// rw returns the RWLock of an owner's client.
func (r *harness) rw(owner string) *RWLock { return NewRWLock(r.redis, owner[:36]) }

// tries asks for the lock once, with a wish unless that is 0.
func (r *harness) tries(owner string, wish time.Duration) AcquireReply {
	r.t.Helper()
	return must(r.rw(owner).Acquire(bounded(r.t), RWLockAcquireRequest{AcquireRequest: asking("k", owner), Wish: wish}))(r.t)
}

// shares has owners take the lock, one after the other.
func (r *harness) shares(owners ...string) {
	r.t.Helper()
	for _, o := range owners {
		require.Equal(r.t, AcquireReply{OK: true}, r.tries(o, 0), o)
	}
}

// beside has a reader take the lock beside a writer.
func (r *harness) beside(reader, beside string) AcquireReply {
	r.t.Helper()
	return must(r.rw(reader).Acquire(bounded(r.t), RWLockAcquireRequest{AcquireRequest: AcquireRequest{Key: "k", Owner: reader, Lease: lease, Beside: beside}}))(r.t)
}

// refused has owners ask for the lock without a wish, in vain.
func (r *harness) refused(owners ...string) {
	r.t.Helper()
	for _, o := range owners {
		a := r.tries(o, 0)
		require.False(r.t, a.OK || a.Gone, o)
		require.NotZero(r.t, a.Remaining)
	}
}

// ends has owners release the lock, which they hold.
func (r *harness) ends(owners ...string) {
	r.t.Helper()
	for _, o := range owners {
		require.True(r.t, r.ended(RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: o}}).Ours, o)
	}
}

func (r *harness) ended(h RWLockReleaseRequest) ReleaseReply {
	r.t.Helper()
	return must(r.rw(h.Owner).Release(bounded(r.t), h))(r.t)
}

// wishes notes a wish.
func (r *harness) wishes(kind, client string) {
	r.t.Helper()
	r.s.Do(r.t, "HSET", wishes("k"), kind+" "+client, fmt.Sprintf("%d %d", serverMillis(r.t, r.s)+wish.Milliseconds(), serverMillis(r.t, r.s)))
	r.s.Do(r.t, "PEXPIRE", wishes("k"), millis(wish))
}

// dies ends the timeout keys of owners, as their expiry would.
func (r *harness) dies(owners ...string) {
	r.t.Helper()
	for _, o := range owners {
		require.EqualValues(r.t, 1, number(r.t, r.s, "DEL", timeout("k", o)))
	}
}

// requireEntries requires the mode and the owners of the lock; none: it is free.
func (r *harness) requireEntries(mode string, owners ...string) {
	r.t.Helper()
	m := r.s.Do(r.t, "HGETALL", "k")
	want := map[string]string{}
	if mode != "" {
		want["mode"] = mode
	}
	for _, o := range owners {
		want[o] = "1"
	}
	require.Equal(r.t, want, must(m.AsStrMap())(r.t))
}

// inspects is what Inspect says of the lock.
func (r *harness) inspects() holdfast.Status {
	r.t.Helper()
	return must(r.rw(ofA(1)).Inspect(context.Background(), "k"))(r.t)
}

func newReadWrites(t *testing.T) *harness {
	r := newHarness(t)
	r.subscribe(scripts.RWLockChannel("k"))
	return r
}
