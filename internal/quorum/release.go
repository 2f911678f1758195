package quorum

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/scripts"
)

// Release ends a hold on all nodes that were ever asked for it, whatever they
// answered. It waits until a quorum has answered; the others are told in the
// background, those that do not answer for as long as the hold could last.
func (q *Quorum) Release(ctx context.Context, _, owner string, lastFence int64) (scripts.Released, error) {
	h := q.holds.get(owner)
	if h == nil {
		return scripts.Released{}, nil
	}
	targets := q.end(h)
	came := make(chan nodeEnd, len(targets))
	for _, n := range targets {
		n.end(h, lastFence, func(err error) {
			if err != nil {
				n.later(h, (*node).releaseLater)
			}
			came <- nodeEnd{n, err}
		})
	}
	errs, refused := make([]error, len(q.nodes)), 0
	for range targets {
		select {
		case a := <-came:
			errs[a.n.index] = a.err
			if scripts.OutcomeOf(a.err) == scripts.Refused {
				refused++
			}
		case <-ctx.Done():
			return scripts.Released{}, errSilent
		}
		if said, enough := h.outcome(q); enough {
			q.holds.drop(owner)
			return said, nil
		}
	}
	if refused >= q.lostAt() {
		q.holds.drop(owner)
		return scripts.Released{}, q.newError(q.quorum, errs, 0)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.parts {
		if p != (part{}) {
			return scripts.Released{}, errSilent
		}
	}
	q.holds.drop(owner)
	said, _ := h.said(q) // a repairer may have heard the last answer
	return said, nil     // all have answered: if not ours, the quorum was lost
}

// CleanUp is Release of a hold that was acquired too late. A round that has failed
// has given itself up already.
func (q *Quorum) CleanUp(ctx context.Context, key, owner string) (scripts.Released, error) {
	return q.Release(ctx, key, owner, 0)
}

// Lost has a hold that is over released in the background.
func (q *Quorum) Lost(_, owner string) {
	if h := q.holds.get(owner); h != nil {
		q.holds.drop(owner)
		for _, n := range q.end(h) {
			n.later(h, (*node).releaseLater)
		}
	}
}

// end ends a hold, and returns the nodes that may know of it.
func (q *Quorum) end(h *hold) (targets []*node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := !h.over
	h.over = true
	for i, n := range q.nodes {
		p := &h.parts[i]
		if *p == (part{}) {
			continue
		}
		p.sure = p.sure || first && p.made && p.there && p.flying == 0 && p.doubt == 0
		targets = append(targets, n)
	}
	return targets
}

// outcome is what the answers to releases come to so far.
func (h *hold) outcome(q *Quorum) (said scripts.Released, enough bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said(q)
}

// said is outcome under mu.
func (h *hold) said(q *Quorum) (said scripts.Released, enough bool) {
	if h.released >= q.quorum {
		return scripts.Released{Ours: true, Listeners: h.heard}, true
	}
	return said, h.notOurs >= q.lostAt()
}

// ending is a hold that is to end on a node, and who is told whether it did.
type ending struct {
	hold *hold
	told func(error)
}

// end is release for who does not wait for its end.
func (n *node) end(h *hold, lastFence int64, told func(error)) {
	switch p := h.part(n); {
	case p == (part{}):
		told(nil)
	case p.flying == 0 && !p.alone(lastFence) && !n.away():
		short := n.q.beginShort() // whoever makes the call
		n.ends.add(struct{}{}, ending{h, func(err error) {
			told(err)
			if short {
				n.q.short.Done()
			}
		}}, n.hurries(h))
	case !n.q.spawnShort(func() { told(n.release(h, lastFence)) }):
		told(errClosed)
	}
}

// release makes one attempt to end a hold on one node. Where the hold may still
// arrive, it leaves a tombstone.
func (n *node) release(h *hold, lastFence int64) error {
	p := h.awaitLanding(n)
	switch {
	case p == (part{}):
		return nil
	case n.away():
		return errAway
	case !p.alone(lastFence):
		came := make(chan error, 1)
		n.ends.add(struct{}{}, ending{h, func(err error) { came <- err }}, n.hurries(h))
		return <-came
	}
	said, err := call(n.q.bounded(h.lease), n, func(ctx context.Context) (scripts.Released, error) {
		if p.doubt > 0 && !seed.NoTombstones {
			return n.script.CleanUp(ctx, h.key, h.owner)
		}
		return n.script.Release(ctx, h.key, h.owner, lastFence)
	})
	return h.settled(n, said, err)
}

// alone says whether a release shares no call with others: it leaves a tombstone, or
// gives back fence numbers, which it does only where the hold surely was. Others may
// have had the lock elsewhere, and have numbers of their own.
func (p part) alone(lastFence int64) bool { return p.doubt > 0 || lastFence > 0 && p.sure }

// endAll makes the call of releases that share one.
func (n *node) endAll(_ struct{}, ends []ending, cannot error) {
	said, err := []scripts.End(nil), cannot
	if cannot == nil {
		holds := make([]scripts.Hold, len(ends))
		for i, e := range ends {
			holds[i] = scripts.Hold{Key: e.hold.key, Owner: e.hold.owner}
		}
		said, err = callFor(len(ends), n.q.bounded(ends[0].hold.lease), n, func(ctx context.Context) ([]scripts.End, error) {
			return n.free(ctx, holds)
		})
	}
	for i, e := range ends {
		if err != nil {
			e.told(e.hold.settled(n, scripts.Released{}, err))
		} else {
			e.told(e.hold.settled(n, said[i].Released, said[i].Err))
		}
	}
}

// free ends a node's parts of holds, and gives no fence numbers back.
func (n *node) free(ctx context.Context, holds []scripts.Hold) ([]scripts.End, error) {
	ends := make([]scripts.End, len(holds))
	err := n.script.ReleaseEach(ctx, holds, ends)
	if len(holds) == 1 || scripts.OutcomeOf(err) != scripts.Refused || ctx.Err() != nil {
		return ends, err
	}
	var all sync.WaitGroup
	for i := range holds { // by a fault of another's: its key is forbidden
		all.Go(func() { _ = n.script.ReleaseEach(ctx, holds[i:i+1], ends[i:i+1]) }) // its error is in its end
	}
	all.Wait()
	return ends, ctx.Err()
}

// settled notes how an attempt to end a hold on a node has ended.
func (h *hold) settled(n *node, said scripts.Released, err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.parts[n.index]
	if before == (part{}) { // told twice
		return err
	}
	if err != nil {
		h.parts[n.index].tried = before.tried || scripts.OutcomeOf(err) == scripts.Unknown
		return err
	}
	h.parts[n.index] = part{}
	if said.Ours || before.tried {
		h.released++
		h.heard = max(h.heard, said.Listeners)
	} else {
		h.notOurs++
	}
	return nil
}

func (n *node) releaseLater(h *hold) error { return n.release(h, 0) }

// giveUp ends a round that has failed. The others are told only if so many nodes may
// have it that it can have been taken for a hold, as where nobody waited for the
// answers: where many ask at once, those who fail would keep waking one another.
func (q *Quorum) giveUp(h *hold) {
	targets, undo := q.end(h), (*node).undo
	if h.spread() >= q.need {
		undo = (*node).releaseLater
	}
	for _, n := range targets {
		if !q.beginShort() {
			n.later(h, undo)
			continue
		}
		h.whenLanded(n, func() { // no goroutine waits for that: while nodes hang, many rounds fail
			if n.away() || !q.spawn(func() {
				defer q.short.Done()
				if undo(n, h) != nil {
					n.later(h, undo)
				}
			}) {
				n.later(h, undo)
				q.short.Done()
			}
		})
	}
}

// spread is how many nodes have the hold, or may have it.
func (h *hold) spread() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.parts {
		if p.there || p.doubt > 0 || p.flying > 0 {
			n++
		}
	}
	return n
}

// undo makes one attempt to end a failed round on one node.
func (n *node) undo(h *hold) error {
	p := h.part(n)
	if !p.there && p.doubt == 0 { // it has said so
		return nil
	}
	_, err := call(n.q.bounded(h.lease), n, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, n.script.Undo(ctx, h.key, h.owner, p.doubt > 0 && !seed.NoTombstones)
	})
	return err
}
