package campaign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/watchdog"
)

// judge watches what callers are told, and keeps what must not be. Safe for concurrent use.
type judge struct {
	c *campaign // immutable

	mu       sync.Mutex
	keys     map[string]*key
	grants   int
	calls    map[string]int // by what was asked for
	outcomes map[string]int // of calls that got nothing
	broken   []string       // promises
	counts   map[string]int // of these, by their first word
	trace    []string       // the last events
	free     figure         // how long a key was free while a healthy waiter waited
	orphan   figure         // how long a key was held by nobody while all were healthy and somebody waited
}

// figure is the largest of some durations.
type figure struct {
	longest time.Duration
	where   string
}

func (f *figure) note(d time.Duration, where string) {
	if d > f.longest {
		f.longest, f.where = d, where
	}
}

// key is what is known of a key. Guarded by the judge's mu.
type key struct {
	holders map[*holder]bool
	waiters map[*waiter]bool
	counter counter
	fence   int64
	wrote   int64             // the largest fence of a writer
	written time.Time         // when a writer ended last
	left    time.Time         // when the last holder did
	stood   time.Time         // when it was taken last after it had been free for a second
	forcing int               // calls of ForceUnlock under way
	forced  time.Time         // until when one may have had an effect
	taking  int               // calls of LockAll under way, which may hold it
	strays  map[int]time.Time // by process: when a writer last gave up while the link was not well
	blind   time.Time         // until when nobody need hold it
}

// lease is a holdfast.Lease or a multilock.LeaseSet.
type lease interface {
	Err() error
	Deadline() time.Time
	Done() <-chan struct{}
	Unlock(context.Context) error
}

// holder is a caller that has been given a lease, until it unlocks.
type holder struct {
	lease   lease
	who     string
	process int
	since   time.Time
	plain   bool // neither a fixed lease nor a cap was asked for
	reads   bool // others may read beside it
	seen    section
}

func (h *holder) believes() bool {
	return h.lease.Err() == nil && time.Now().Before(h.lease.Deadline())
}

// waiter is a caller of which the call has not returned.
type waiter struct {
	who     string
	process int
	since   time.Time
	queues  bool // and is to be served in its order
	plain   bool // it wants a lease that is renewed without end
	reads   bool
}

func newJudge(c *campaign) *judge {
	j := &judge{c: c, keys: make(map[string]*key), calls: make(map[string]int), outcomes: make(map[string]int), counts: make(map[string]int)}
	for _, name := range c.names() {
		j.keys[name] = &key{holders: make(map[*holder]bool), waiters: make(map[*waiter]bool), strays: make(map[int]time.Time)}
	}
	return j
}

// asks notes that a call asks for something.
func (j *judge) asks(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls[what]++
}

// say notes an event, for the report of a broken promise.
func (j *judge) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note(format, args...)
}

func (j *judge) note(format string, args ...any) {
	if len(j.trace) == 4000 {
		j.trace = append([]string(nil), j.trace[2000:]...)
	}
	j.trace = append(j.trace, fmt.Sprintf("%12v  ", time.Since(j.c.began))+fmt.Sprintf(format, args...))
}

// Write takes in a line of a locker's log. A locker says so when an acquire may come too late to be
// undone, as after several faults in a row.
func (j *judge) Write(line []byte) (int, error) {
	j.say("%s", bytes.TrimSpace(line))
	if bytes.Contains(line, []byte("undo failed")) {
		j.excuse(j.c.lease)
	}
	return len(line), nil
}

// breaks notes a broken promise; its first word names the promise. mu is held.
func (j *judge) breaks(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	word, _, _ := strings.Cut(text, " ")
	j.counts[word]++
	j.note("%s", text)
	if word == j.c.wanted {
		j.c.found()
	}
	if j.counts[word] <= 3 {
		j.broken = append(j.broken, text+"\n\t"+strings.Join(j.trace[max(0, len(j.trace)-*events):], "\n\t"))
	}
}

// waits notes that a caller waits, until served or refused.
func (j *judge) waits(name string, w *waiter) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.since = time.Now()
	j.keys[name].waiters[w] = true
	j.note("%s waits for %s", w.who, name)
}

func (j *judge) refused(name string, w *waiter, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.keys[name]
	delete(k.waiters, w)
	if since, ok := j.c.world.Healthy(w.process); !w.reads && (!ok || time.Since(since) < late) {
		k.strays[w.process] = time.Now()
	}
	j.note("%s does not get %s: %v", w.who, name, err)
	for _, known := range []error{holdfast.ErrNotAcquired, holdfast.ErrUnavailable, holdfast.ErrUnknown, holdfast.ErrLost, holdfast.ErrClosed} {
		if errors.Is(err, known) {
			j.outcomes[known.Error()]++
			return
		}
	}
	j.breaks("ERROR of no kind: %v", err)
}

// served notes a lease, and checks it against those of others.
func (j *judge) served(name string, w *waiter, l lease, fence int64) *holder {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.keys[name]
	delete(k.waiters, w)
	h := &holder{lease: l, who: w.who, process: w.process, since: time.Now(), plain: w.plain, reads: w.reads,
		seen: section{reads: w.reads, first: k.counter.value, fence: fence}}
	j.grants++
	j.note("%s has %s for %v", w.who, name, time.Until(l.Deadline()))
	if h.believes() && k.forcing == 0 {
		room := j.c.permits
		for other := range k.holders {
			if other.believes() && other.since.After(k.forced) && !(h.reads && other.reads) {
				if room--; room == 0 {
					j.breaks("OVERLAP of %s: %s since %v, for another %v, and %s for %v", name, other.who, time.Since(other.since),
						time.Until(other.lease.Deadline()), h.who, time.Until(l.Deadline()))
				}
			}
		}
	}
	if fence != 0 {
		least := k.fence
		if h.reads {
			least = k.wrote - 1 // it may have that of a writer which was its caller
		}
		if fence <= least && k.forcing == 0 && h.since.After(k.forced) { // else both may have had it before they were told
			j.breaks("FENCE of %s: %d after %d, to %s", name, fence, k.fence, h.who)
		}
		if k.fence = max(k.fence, fence); !h.reads {
			k.wrote = max(k.wrote, fence)
		}
	}
	if j.c.kind == "fair" && w.queues {
		j.inOrder(name, k, w)
	}
	if j.c.kind == "rwlock" && w.reads && w.queues {
		j.lets(name, k, w)
	}
	k.holders[h] = true
	return h
}

// lets checks that a reader has let a writer go first that has waited for longer, unless another
// writer had its turn meanwhile, or not long before: then all readers that wait go in. If the turn
// is that of processes that Redis does not hear, it is over after a second.
func (j *judge) lets(name string, k *key, w *waiter) {
	if len(k.holders) == 0 && time.Since(k.left) > time.Second {
		k.stood = time.Now()
	}
	if time.Since(k.stood) < late || j.strayed(k, w) {
		return
	}
	for h := range k.holders {
		if !h.reads { // its turn is over: its lease has ended, or a ForceUnlock has ended it, of which it will be told
			return
		}
	}
	for other := range k.waiters {
		if !other.reads && other.queues && other.since.Add(late).Before(w.since) && k.written.Add(4*late).Before(w.since) && k.forcing == 0 && k.taking == 0 {
			if since, ok := j.c.world.Healthy(other.process); ok && since.Add(late).Before(w.since) {
				j.breaks("STARVES %s: %s reads, %v after %s has begun to wait", name, w.who, time.Since(other.since), other.who)
			}
		}
	}
}

// strayed reports whether an acquire that was late, or whose reply was, may have given a turn to a writer
// that had given up or waits, before its undo came.
func (j *judge) strayed(k *key, w *waiter) bool {
	for other := range k.waiters {
		if since, ok := j.c.world.Healthy(other.process); !other.reads && (!ok || w.since.Before(since.Add(5*late))) {
			return true
		}
	}
	for process, left := range k.strays {
		since, ok := j.c.world.Healthy(process)
		over := latest(left, since).Add(5 * late)
		if !ok || w.since.Before(over) {
			return true
		}
		delete(k.strays, process)
	}
	return false
}

// late is how long a waiter with a well link may take to enter the queue: a locker waits for the
// first confirmation of its inbox for a second, and the pause after a call that failed while the
// link was bad is no longer. The rest is for the calls.
const late = time.Second + 100*time.Millisecond

// inOrder checks that nobody has waited for longer. A waiter that came so much later definitely entered
// the queue later, where the link was well all the time. A ForceUnlock may have ended the grant of
// one that was not told yet, which then entered anew.
func (j *judge) inOrder(name string, k *key, w *waiter) {
	for other := range k.waiters {
		if other.queues && other.since.Add(late).Before(w.since) && k.forcing == 0 && other.since.After(k.forced) {
			if since, ok := j.c.world.Healthy(other.process); ok && since.Before(other.since) {
				j.breaks("ORDER of %s: %s came %v after %s, whose link is well since %v, and is served first", name, w.who,
					w.since.Sub(other.since), other.who, time.Since(since))
			}
		}
	}
}

// watch checks that a holder learns of the end of its lease in time.
func (j *judge) watch(h *holder) {
	<-h.lease.Done()
	over := time.Since(h.lease.Deadline())
	j.mu.Lock()
	defer j.mu.Unlock()
	if over > 0 {
		j.breaks("LATE by %v: %s is told of the end of its lease", over, h.who)
	}
	switch err := h.lease.Err(); {
	case err == nil:
		j.breaks("DONE but no error: %s", h.who)
	case h.plain && (errors.Is(err, watchdog.ErrFixedLease) || errors.Is(err, watchdog.ErrMaxHold)):
		j.breaks("TERMS of another: %s, who asked for none: %v", h.who, err)
	}
}

// unlock unlocks, and checks that the result is true.
func (j *judge) unlock(ctx context.Context, name string, h *holder) {
	j.leave(name, h)
	before, deadline := h.lease.Err(), h.lease.Deadline()
	over := !time.Now().Before(deadline)
	err := h.lease.Unlock(ctx)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note("%s unlocks %s: %v", h.who, name, err)
	switch k := j.keys[name]; {
	case before != nil && err == nil:
		j.breaks("UNLOCK of %s by %s: nil, although its lease had ended: %v", name, h.who, before)
	case before == nil && over && err == nil:
		j.breaks("UNLOCK of %s by %s: nil after its deadline", name, h.who)
	case before == nil && errors.Is(err, holdfast.ErrLost) && time.Now().Before(deadline) && k.forcing == 0 && h.since.After(k.forced) && !j.c.forgets():
		j.breaks("UNLOCK of %s by %s: lost before its deadline: %v", name, h.who, err)
	case before == nil && errors.Is(err, holdfast.ErrReleased):
		j.breaks("UNLOCK of %s by %s: %v", name, h.who, err)
	}
	if h.lease.Err() == nil {
		j.breaks("ALIVE after Unlock of %s: %s", name, h.who)
	}
}

// fault notes a fault that begins.
func (j *judge) fault(f sim.Fault) {
	j.say("FAULT %v", f)
	if f.For > j.c.lease && slices.Contains([]sim.FaultKind{sim.HoldRequests, sim.Straggle, sim.Fade, sim.Partition, sim.Pause}, f.What) {
		j.excuse(f.For + j.c.lease) // an acquire that is later than a lease is no longer undone
	}
}

// excuse says that for so long, nobody need hold what stands in Redis.
func (j *judge) excuse(d time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, k := range j.keys {
		k.blind = latest(k.blind, time.Now().Add(d))
	}
}
