package quorum

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// renewal renews many leases on all nodes, with one call to each.
type renewal struct {
	q            *Quorum
	keys, owners []string // immutable: late nodes read them
	holds        []*hold  // immutable; nil: no longer known

	mu     sync.Mutex
	yes    []uint8  // how many nodes have renewed a hold
	no     []uint16 // the nodes that have denied it, a bit for each
	runIDs []string // run ids of the servers with a yes that counts, by node
	late   bool     // Renew has returned
}

// Renew asks all nodes to extend the expiry of many holds. A hold is renewed if as many
// nodes as it needs say so. It is no longer ours if so many deny it that no quorum can be
// left. In between, Renew leaves it unanswered and repairs the nodes that lack it, and the
// next renewal finds it there. Renew returns when every hold is decided, or all nodes have
// answered.
func (q *Quorum) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []watchdog.Answer) error {
	clear(answers)
	rn := &renewal{
		q: q, keys: slices.Clone(keys), owners: slices.Clone(owners),
		holds: make([]*hold, len(keys)), yes: make([]uint8, len(keys)), no: make([]uint16, len(keys)), runIDs: make([]string, len(q.nodes)),
	}
	for i, owner := range owners {
		rn.holds[i] = q.holdOf(owner)
	}
	errs := slices.Repeat([]error{calls.ErrNoAnswer}, len(q.nodes))
	for a := range each(ctx, &q.short, q.nodes, func(n *node) (struct{}, error) { return struct{}{}, rn.ask(n, lease) }) {
		errs[a.n.index] = a.err
		if rn.decide(answers) {
			break
		}
	}
	rn.repairMissing()
	if i := slices.Index(answers, watchdog.Unanswered); i >= 0 {
		rn.mu.Lock()
		defer rn.mu.Unlock()
		for n := range errs {
			if errs[n] == nil && rn.no[i]&(1<<n) != 0 {
				errs[n] = errDenied
			}
		}
		return q.newError(q.need, errs)
	}
	return nil
}

func (rn *renewal) ask(n *node, lease time.Duration) error {
	if n.away() {
		return n.absence()
	}
	type reply struct {
		answers []watchdog.Answer
		vote    *wire.Vote // nil: a yes does not count
	}
	r, err := call(n, lease, func(ctx context.Context) (reply, error) {
		vote, _ := n.voting(ctx) // without one, only "not ours" counts
		r := reply{answers: make([]watchdog.Answer, len(rn.keys))}
		entries := make([]wire.Entries, len(rn.keys)) // not those of the beginning: they may have changed
		for i, h := range rn.holds {
			if h != nil {
				entries[i] = h.counted()
			}
		}
		n.extends()
		counts, err := n.redis.RenewVoted(ctx, vote, lease, rn.keys, rn.owners, entries, r.answers)
		if counts {
			r.vote = vote
		} else if err == nil && vote != nil {
			n.guard.dropVote(vote)
		}
		return r, err
	})
	if wire.OutcomeOf(err).MayHaveRun() {
		for _, h := range rn.holds {
			if h != nil {
				h.mayRenew(n)
			}
		}
	}
	counts := r.vote != nil
	rn.mu.Lock()
	defer rn.mu.Unlock()
	if counts {
		run := r.vote.RunID()
		if other := rn.q.sameServerAs(n, run, func(other *node) string { return rn.runIDs[other.index] }); other != nil {
			return sameServer(other, n)
		}
		rn.runIDs[n.index] = run
	}
	for i, a := range r.answers {
		switch {
		case a == watchdog.NotOurs:
			rn.no[i] |= 1 << n.index
			if h := rn.holds[i]; h != nil {
				h.lacks(n)
				if counts && rn.late && int(rn.yes[i]) >= rn.q.quorum {
					n.repair(h)
				}
			}
		case a == watchdog.Renewed && counts:
			rn.yes[i]++
		}
	}
	if err == nil && !counts {
		return errVoid
	}
	return err
}

// decide fills in the answers that are known; true if all are.
func (rn *renewal) decide(answers []watchdog.Answer) bool {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	all := true
	for i := range answers {
		switch {
		case int(rn.yes[i]) >= rn.q.need:
			answers[i] = watchdog.Renewed
		case bits.OnesCount16(rn.no[i]) >= rn.q.lostAt():
			answers[i] = watchdog.NotOurs
		default:
			all = false
		}
	}
	return all
}

// repairMissing repairs the nodes that lack a hold that a quorum has.
func (rn *renewal) repairMissing() {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	rn.late = true
	for i, h := range rn.holds {
		if h == nil || int(rn.yes[i]) < rn.q.quorum || rn.no[i] == 0 {
			continue
		}
		for _, n := range rn.q.nodes {
			if h.part(n).state < present {
				n.repair(h)
			}
		}
	}
}

// SetEntries sets the entries on all nodes, and needs a quorum of them. Renewals and repairs bring
// them to the others.
func (q *Quorum) SetEntries(ctx context.Context, _, owner string, entries wire.Entries) (ours bool, err error) {
	h := q.holdOf(owner)
	if h == nil {
		return false, nil
	}
	h.mu.Lock()
	before := h.entries
	h.entries = entries
	h.mu.Unlock()
	errs, yes, no := slices.Repeat([]error{calls.ErrNoAnswer}, len(q.nodes)), 0, 0
	for a := range each(ctx, &q.short, q.nodes, func(n *node) (bool, error) { return n.setEntries(h, entries) }) {
		errs[a.n.index] = a.err
		switch {
		case a.err != nil:
		case a.reply:
			yes++
		default:
			no++
			errs[a.n.index] = errDenied
		}
		if yes >= q.quorum {
			return true, nil
		}
		if no >= q.lostAt() {
			return false, nil
		}
	}
	e := q.newError(q.quorum, errs)
	perhaps := func(err error) bool { return wire.OutcomeOf(err).MayHaveRun() || err == nil }
	if !e.outcome.Final() && slices.ContainsFunc(errs, perhaps) {
		e.outcome = wire.Unknown // perhaps a node has the new count
	}
	if !e.outcome.MayHaveRun() { // no node has it, and the next renewal must not bring it to one
		h.mu.Lock()
		h.entries = before
		h.mu.Unlock()
	}
	return false, e
}

func (n *node) setEntries(h *hold, entries wire.Entries) (ours bool, err error) {
	if n.away() {
		return false, n.absence()
	}
	return call(n, h.Lease, func(ctx context.Context) (bool, error) {
		return n.redis.SetEntries(ctx, h.Key, h.Owner, entries)
	})
}
