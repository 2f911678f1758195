package quorum

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
)

// A repairer does what one node has missed: it adds holds that a quorum has and
// ends those that are over, in batches, and asks a node that is away whether it is
// back. It lives as long as there is something to do.

// job is what is still to be done for a hold on a node.
type job struct {
	hold  *hold
	until time.Time // nothing of the hold can be there any more
	ends  bool      // the hold is over, and ends before others are added
}

// jobsAtOnce is how many jobs of a node are under way at a time.
const jobsAtOnce = 50

// endLater has the node's repairer end a hold, in the place of what it was to do before.
func (n *node) endLater(h *hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.put(h, true)
	select {
	case n.ending <- struct{}{}:
	default:
	}
}

// repair has a hold that a quorum has added on a node that has missed it; not where
// it is over, as its end may be among the jobs already.
func (n *node) repair(h *hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !h.isOver() {
		n.put(h, false)
	}
}

// put notes a job, under mu.
func (n *node) put(h *hold, ends bool) {
	n.jobs[h.owner] = &job{h, time.Now().Add(h.lease + n.q.NodeTimeout), ends}
	n.keep()
}

// keep makes sure that a repairer is at work, under mu.
func (n *node) keep() {
	if !n.kept {
		n.kept = n.q.spawn(n.repairer)
	}
}

func (n *node) repairer() {
	pause := time.Duration(0)
	for {
		n.prune()
		if n.away() {
			_, _ = call(n.q.bounded(0), n, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, n.script.Ping(ctx)
			})
		}
		longest, failed := time.Second, error(errSilent)
		if !n.away() {
			if failed = n.doJobs(); !errors.As(failed, new(noVote)) {
				longest = 20 * time.Millisecond
			}
		}
		n.mu.Lock()
		if len(n.jobs) == 0 && n.silent < silences {
			n.kept = false
			n.mu.Unlock()
			return
		}
		n.mu.Unlock()
		if failed == nil {
			pause = 0
			continue
		}
		pause = min(max(2*pause, time.Millisecond), longest)
		timer, ending := time.NewTimer(pause/2+rand.N(pause/2)), n.ending
		if n.away() {
			ending = nil
		}
		select {
		case <-timer.C:
		case <-ending:
			timer.Stop()
		case <-n.q.base.Done():
			timer.Stop()
			n.mu.Lock()
			defer n.mu.Unlock()
			n.kept = false
			return
		}
	}
}

// prune drops what there is no need to do any more: a node may be away for long.
func (n *node) prune() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for owner, j := range n.jobs {
		if now.After(j.until) || j.hold.forgotten(n) {
			delete(n.jobs, owner)
		}
	}
}

// doJobs does some of what there is to do, and returns why the node does not take it: that
// it has no vote, which lasts, only where there is nothing else.
func (n *node) doJobs() (failed error) {
	n.mu.Lock()
	batch := make([]*job, 0, jobsAtOnce)
	for _, ends := range []bool{true, false} {
		for owner, j := range n.jobs {
			if len(batch) == jobsAtOnce {
				break
			}
			if j.ends == ends {
				delete(n.jobs, owner)
				batch = append(batch, j)
			}
		}
	}
	n.mu.Unlock()
	var all sync.WaitGroup
	errs := make([]error, len(batch))
	for i, j := range batch {
		all.Go(func() { errs[i] = n.do(j) })
	}
	all.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, j := range batch {
		outcome := scripts.OutcomeOf(errs[i])
		if outcome == scripts.Done || outcome == scripts.Refused || time.Now().After(j.until) {
			continue
		}
		if failed == nil || errors.As(failed, new(noVote)) {
			failed = errs[i]
		}
		if n.jobs[j.hold.owner] == nil { // else there is something newer to do
			n.jobs[j.hold.owner] = j
		}
	}
	return failed
}

// do makes one attempt at a job.
func (n *node) do(j *job) error {
	if !j.ends {
		return n.add(j.hold)
	}
	came := make(chan error, 1)
	n.end(j.hold, func(_ scripts.End, err error) { came <- err })
	return <-came
}

// add makes one attempt to add a hold on a node. That it is there does not count
// as a renewal: the trusted deadline stays that of the quorum.
func (n *node) add(h *hold) error {
	type answer struct {
		scripts.NodeReply
		err error
	}
	came := make(chan answer, 1)
	n.ask(h, false, func(b scripts.NodeReply, err error) { came <- answer{b, err} })
	b := <-came
	switch {
	case b.err != nil:
		return b.err
	case b.Holder != "": // mostly one whose release is on its way
		return errTaken
	case !b.OK:
		return nil
	}
	if entries := h.counted(); entries > 1 {
		if _, err := n.recount(h, entries); err != nil {
			return err
		}
	}
	return n.raise(h)
}

// missed has a node that failed to vote in a round asked again, if a quorum has
// the hold without it.
func (h *hold) missed(n *node) {
	h.mu.Lock()
	again := h.won && !h.over
	h.mu.Unlock()
	if again {
		n.repair(h)
	}
}
