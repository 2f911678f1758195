package multilock

import (
	"cmp"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/quorum"
)

// DefaultNodeTimeout is the default of [WithNodeTimeout].
const DefaultNodeTimeout = 50 * time.Millisecond

// own are the settings that only multilock has.
type own struct {
	quorum.Config
	maxLease *time.Duration // nil: not set
}

// WithNodeTimeout sets how long one node may take to answer one call. An unanswered call
// ends after between four fifths and all of it. It should be short compared with the
// lease; no call takes longer than a tenth of the lease. Default 50 ms; at least 1 ms.
func WithNodeTimeout(d time.Duration) holdfast.Option {
	return check.Own[own]{Name: "multilock.WithNodeTimeout", Set: func(o *own) { o.NodeTimeout = d }}
}

// WithMaxLease sets the longest lease of the deployment, the same for all its lockers. A
// node that was started, emptied or promoted has no vote for that long, as it may have
// forgotten a lease. The locker refuses longer leases, and the nodes, which remember the
// setting, refuse a locker with another one. To change it, stop all programs, wait for the
// old longest lease, delete the key holdfast_node on all nodes, and call
// [Locker.DeclareNothingHeld] with the new setting. Default the lease.
func WithMaxLease(d time.Duration) holdfast.Option {
	return check.Own[own]{Name: "multilock.WithMaxLease", Set: func(o *own) { o.maxLease = &d }}
}

// WithoutRestartGuard lets a node vote right after a restart: if it has forgotten a lease,
// two may hold the lock. It is for nodes that forget nothing (appendfsync always), for
// servers without a run id or before Redis 7.0, and for deployments with other clients that
// lack the guard. Two addresses that lead to one server are then noticed within half a
// lease, or by the next lock; with the guard, immediately.
func WithoutRestartGuard() holdfast.Option {
	return check.Own[own]{Name: "multilock.WithoutRestartGuard", Set: func(o *own) { o.Unguarded = true }}
}

// WithoutEvictionGuard lets a node vote with a maxmemory-policy other than noeviction: it may drop
// a held lock when it runs out of memory. Without this option, a policy that changes while lockers
// run is noticed within a lease, or by the next lock.
func WithoutEvictionGuard() holdfast.Option {
	return check.Own[own]{Name: "multilock.WithoutEvictionGuard", Set: func(o *own) { o.Evicting = true }}
}

// WithClockFaults keeps exclusion while the clocks of k nodes jump, at any moment and by
// any amount. Each lease and each renewal needs k more votes than a quorum, so that a
// quorum is left when k nodes have lost it. Then k fewer nodes may be missing: with k = 1,
// one of five and none of three. Default 0: a lease survives a clock fault once every
// working node has it (see the package documentation); k may be as large as the minority.
// The option protects the leases of this locker only: give it to all lockers.
func WithClockFaults(k int) holdfast.Option {
	return check.Own[own]{Name: "multilock.WithClockFaults", Set: func(o *own) { o.ClockFaults = k }}
}

// configure returns the settings of the engine and of the quorum. function is what users have
// called.
func configure(function string, nodes int, opts []holdfast.Option) (c engine.Config, q quorum.Config, err error) {
	if nodes < 1 || nodes > quorum.MaxNodes {
		return c, q, errs.Invalid("multilock: %s: %d nodes, 1 to %d are allowed", function, nodes, quorum.MaxNodes)
	}
	o := own{Config: quorum.Config{NodeTimeout: DefaultNodeTimeout}}
	if c, err = engine.Configure("multilock", function, &o, opts); err != nil {
		return c, q, err
	}
	switch {
	case c.Replicas != 0 || c.ReplicaTimeout != 0:
		return c, q, errs.Invalid("multilock: WithReplicas is an option of the kinds on one Redis")
	case c.ShardedPubSub != nil:
		return c, q, errs.Invalid("multilock: WithShardedPubSub is an option of the kinds on one Redis")
	}
	if c.MaxLease = *cmp.Or(o.maxLease, &c.Lease); o.maxLease != nil {
		if err = check.Lease(c.MaxLease); err != nil {
			return c, q, errs.Invalid("multilock: WithMaxLease: %w", err)
		}
	}
	c.MaxOutage = cmp.Or(c.MaxOutage, new(c.MaxLease+c.MaxLease/50+c.Lease)) // the clocks of nodes may run slow
	if c.Fencing && c.FenceExpiry == nil && c.MaxLease > holdfast.DefaultFenceExpiry {
		c.FenceExpiry = &c.MaxLease
	}
	if err = c.Check(); err != nil {
		return c, q, err
	}
	most := (nodes - 1) / 2
	switch {
	case c.Lease > c.MaxLease:
		err = errs.Invalid("multilock: WithLease: %v is longer than WithMaxLease, %v", c.Lease, c.MaxLease)
	case c.Fencing && *c.FenceExpiry > 0 && *c.FenceExpiry < c.MaxLease: // a number may be most of a longest lease ahead of the clocks
		err = errs.Invalid("multilock: WithFenceExpiry: %v is shorter than WithMaxLease, %v", *c.FenceExpiry, c.MaxLease)
	case o.ClockFaults < 0 || o.ClockFaults > most:
		err = errs.Invalid("multilock: WithClockFaults: %d of %d nodes, 0 to %d are allowed", o.ClockFaults, nodes, most)
	case o.NodeTimeout < time.Millisecond:
		err = errs.Invalid("multilock: WithNodeTimeout: %v is shorter than 1ms", o.NodeTimeout)
	}
	o.Settings, o.NodeTimeout, o.MaxLease = c.Settings, min(o.NodeTimeout, c.Lease/10), c.MaxLease
	return c, o.Config, err
}
