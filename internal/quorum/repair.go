package quorum

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A repairer makes up for what one node has missed: it adds holds that a quorum has, ends
// those that are over, and asks a node that counts as away whether it is back. It lives as
// long as it has jobs.

// job is an addition or an end of a hold on a node.
type job struct {
	hold  *hold
	until time.Duration // from then on, the node cannot have anything of the hold
	ends  bool          // the hold is over; ends come before additions
	err   error         // of the last attempt; guarded by the node's mu
}

const jobsAtOnce = 50

// endLater makes the node's repairer end a hold, instead of any earlier job for it. A node that has
// been away for long no longer has anything of the hold, unless an acquire may still arrive: that
// may be late by a lease of the locker, even if the lease of the hold is shorter. So may a renewal.
func (n *node) endLater(h *hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now, from, lease := n.q.calls.Now(), time.Duration(n.extended.Load()), h.Lease
	if p := h.part(n); p.doubt > 0 {
		from, lease = now, max(lease, n.q.Lease)
	} else if p.renews {
		from += n.q.Lease
	}
	until := from + lease + n.q.NodeTimeout
	if now > until {
		delete(n.jobs, h.Owner)
		return
	}
	n.put(&job{hold: h, until: until, ends: true})
	loop.Poke(n.newEnd)
}

// repair makes the repairer add a hold that a quorum has on a node that lacks it. A hold that
// is over may already have its end among the jobs, which must stay.
func (n *node) repair(h *hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.live() {
		n.put(&job{hold: h, until: n.q.calls.Now() + h.Lease + n.q.NodeTimeout})
	}
}

// put notes a job, under mu.
func (n *node) put(j *job) {
	n.jobs[j.hold.Owner] = j
	n.ensureRepairer()
}

// ensureRepairer makes sure that a repairer is at work, under mu.
func (n *node) ensureRepairer() {
	if !n.repairing {
		n.repairing = n.q.work.TryGo(n.repairer)
	}
}

func (n *node) repairer() {
	pause := loop.Backoff{}
	for {
		jobs := n.pick()
		if n.away() {
			_, _ = call(n, 0, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, n.redis.Ping(ctx)
			})
		}
		failed := n.doAll(jobs)
		if n.idle() {
			return
		}
		if failed == nil && !n.away() {
			pause = loop.Backoff{}
			continue
		}
		longest, newEnd := 20*time.Millisecond, n.newEnd
		if n.away() {
			longest, newEnd = time.Second, nil
		} else if lasts(failed) {
			longest = time.Second
		}
		select {
		case <-time.After(pause.Below(longest)):
		case <-newEnd:
		case <-n.q.bounds.Base.Done():
		}
	}
}

// idle reports whether the repairer is no longer needed.
func (n *node) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.repairing = n.q.bounds.Base.Err() == nil && (len(n.jobs) > 0 || n.away())
	return !n.repairing
}

// pick takes some of the jobs, ends first. It drops jobs that are no longer needed, as a node
// may be away for long.
func (n *node) pick() (jobs []*job) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.doing = jobs }()
	now := n.q.calls.Now()
	for owner, j := range n.jobs {
		if now > j.until || j.hold.forgotten(n) {
			delete(n.jobs, owner)
		}
	}
	for _, ends := range []bool{true, false} {
		for owner, j := range n.jobs {
			if len(jobs) == jobsAtOnce {
				return jobs
			}
			if j.ends == ends {
				delete(n.jobs, owner)
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// doAll makes one attempt at each job, and puts back those that failed. An addition that is
// refused is no longer wanted; an end always is. An end that a closed client keeps from a
// node stays among the jobs for Drain to report. doAll returns why they failed. It returns a
// reason that lasts only if there is no other.
func (n *node) doAll(jobs []*job) (failed error) {
	errs := make([]error, len(jobs))
	var all sync.WaitGroup
	for i, j := range jobs {
		all.Go(func() { errs[i] = n.do(j) })
	}
	all.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doing = nil
	loop.Poke(n.progress)
	for i, j := range jobs {
		err := errs[i]
		j.err = err
		left := j.ends && errors.Is(err, rueidis.ErrClosing) && j.hold.part(n).possible()
		if err == nil || wire.Permanent(err) && !left || wire.OutcomeOf(err) == wire.Refused && !j.ends {
			continue
		}
		if failed == nil || lasts(failed) {
			failed = err
		}
		if n.jobs[j.hold.Owner] == nil { // otherwise there is a newer job
			n.jobs[j.hold.Owner] = j
		}
	}
	return failed
}

// unended says why the node has not ended holds that are over, by their keys, and whether no more attempts can succeed.
func (n *node) unended() (why map[string]error, hopeless bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	why, hopeless = make(map[string]error), true
	for _, j := range append(slices.Collect(maps.Values(n.jobs)), n.doing...) {
		if j.ends && !j.hold.forgotten(n) {
			why[j.hold.Key] = cmp.Or(j.err, errPending)
			hopeless = hopeless && wire.Permanent(j.err)
		}
	}
	return why, hopeless
}

// lasts reports whether the cause of a failure will last for longer than milliseconds, although
// the node answers: it has no vote, or refuses.
func lasts(err error) bool {
	return errors.As(err, new(noVote)) || wire.Lapsed(err) || wire.OutcomeOf(err).Final()
}

func (n *node) do(j *job) error {
	if n.away() {
		return errAway
	}
	if !j.ends {
		return n.add(j.hold)
	}
	came := make(chan error, 1)
	n.end(j.hold, func(_ *node, _ endReply, err error) { came <- err })
	return <-came
}

// add makes one attempt to add a hold on a node. It does not count as a renewal: the trusted
// deadline stays that of the quorum.
func (n *node) add(h *hold) error {
	came := make(chan answer[wire.NodeReply], 1)
	n.ask(h, false, func(_ *node, reply wire.NodeReply, err error) { came <- answer[wire.NodeReply]{n, reply, err} })
	a := <-came
	switch {
	case a.err != nil:
		return a.err
	case a.reply.Holder != "": // usually with its release under way
		return errTaken
	case !a.reply.OK:
		return nil
	}
	if entries := h.counted(); entries.Count > 1 {
		if _, err := n.setEntries(h, entries); err != nil {
			return err
		}
	}
	return n.raise(h)
}
