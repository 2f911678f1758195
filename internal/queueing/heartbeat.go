package queueing

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Heartbeats keep the places of waiters: one call for up to 50 keys of a server, five times in
// the time after which the locker would count as dead. A heartbeat also gives a free key
// to its next waiter, and finds a grant whose message was lost. Each heartbeat names the
// oldest waiter of a key, to check that the queue is still there. It names all waiters when
// they may have lost their places, and, from time to time, to advance the scores that Java
// reads.

const (
	maxOwners = 500              // in one call
	maxKeys   = 50               // in one call
	parallel  = 32               // calls under way in parallel: one after another, they would be late over a slow link
	refresh   = 10 * time.Second // how often scores are advanced
)

// heartbeats are the queues with waiters, by the server that has them: a server that hangs
// delays no heartbeat to another. Each server has a loop while it has queues.
type heartbeats struct {
	mu     sync.Mutex
	queues map[string]map[*queue]struct{} // guarded by mu
}

// startHeartbeats adds a queue to the heartbeats of its server, with which it stays when its
// key moves.
func (q *queue) startHeartbeats() {
	if q.heartbeating {
		return
	}
	q.heartbeating = true
	q.server = q.engine.Calls.ServerOf(q.key.Name)
	all := &q.heartbeats
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.queues[q.server] == nil {
		all.queues[q.server] = make(map[*queue]struct{})
		q.engine.Calls.Background(func() { q.heartbeat(q.server) })
	}
	all.queues[q.server][q] = struct{}{}
}

// heartbeat is the loop that sends heartbeats as long as a server has waiters.
func (d *discipline) heartbeat(server string) {
	period := min(d.config.WaiterTTL/5, refresh/2) // a score ends three times refresh after its enter
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-d.engine.Closed():
		}
		queues, running := d.heartbeats.waiting(server)
		if !running {
			return
		}
		d.sendHeartbeats(slices.DeleteFunc(queues, func(q *queue) bool { return q.justEntered(period / 2) }))
	}
}

// waiting returns the queues with waiters of a server, and forgets the others. running is
// false if there are none; then the loop must end.
func (all *heartbeats) waiting(server string) (queues []*queue, running bool) {
	all.mu.Lock()
	queues = slices.Collect(maps.Keys(all.queues[server]))
	all.mu.Unlock()
	queues = slices.DeleteFunc(queues, all.stop)
	all.mu.Lock()
	defer all.mu.Unlock()
	if running = len(all.queues[server]) > 0; !running {
		delete(all.queues, server)
	}
	return queues, running
}

// stop forgets a queue without waiters. It takes the key's mutex.
func (all *heartbeats) stop(q *queue) bool {
	q.key.Lock()
	defer q.key.Unlock()
	if len(q.tickets) > 0 && !q.key.Closed() { // Close has given up all owners
		return false
	}
	q.heartbeating = false
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.queues[q.server], q)
	return true
}

// justEntered reports whether all waiters first tried to enter a short time ago, whether they
// succeeded or not: they need no heartbeat yet. It takes the key's mutex.
func (q *queue) justEntered(short time.Duration) (all bool) {
	q.key.Lock()
	defer q.key.Unlock()
	for w := range q.key.All() {
		if t := ticketOf(w); t != nil {
			if time.Since(t.start) >= short {
				return false
			}
			all = true
		}
	}
	return all
}

// heartbeatSoon makes the queue of a key, if there is one, send a heartbeat. It takes the
// key's mutex.
func (d *discipline) heartbeatSoon(k *engine.Key) {
	k.Lock()
	defer k.Unlock()
	if q := queueOf(k); q != nil {
		q.due = time.Now()
		loop.Poke(q.poke)
	}
}

// heartbeatAgainSoon schedules a heartbeat in 10, 20, 40 … 100 ms: a Java waiter that gives
// up its turn sends no message.
func (q *queue) heartbeatAgainSoon() {
	at := time.Now().Add(min(10*time.Millisecond<<min(q.early, 4), 100*time.Millisecond))
	q.early++
	if q.due.IsZero() || at.Before(q.due) {
		q.due = at
		loop.Poke(q.poke)
	}
}

// awaitJava listens for Java's wake-up of a ticket.
func (q *queue) awaitJava(t *ticket) {
	t.wakeUps = q.backend.Listen(q.key.Name, t.owner, func(string) { q.heartbeatSoon(q.key) })
	q.heartbeatAgainSoon() // the wake-up may have come before the subscription
}

// sendHeartbeats sends the heartbeats of queues in as few calls as possible, several of them in
// parallel. It takes the mutexes of their keys, one at a time.
func (d *discipline) sendHeartbeats(queues []*queue) {
	var asked []wire.HeartbeatRequest
	var due []*queue
	var others sync.WaitGroup
	defer others.Wait()
	tokens, owners := make(chan struct{}, parallel), 0
	for _, q := range queues {
		for _, next := range q.nextHeartbeats() {
			if owners+len(next.Owners) > maxOwners || len(asked) >= maxKeys {
				full, of := asked, due
				tokens <- struct{}{}
				others.Go(func() {
					d.sendHeartbeat(full, of)
					<-tokens
				})
				asked, due, owners = nil, nil, 0
			}
			asked, due, owners = append(asked, next), append(due, q), owners+len(next.Owners)
		}
	}
	if len(asked) > 0 {
		d.sendHeartbeat(asked, due)
	}
}

// nextHeartbeats returns the heartbeats of a queue that are to be sent now. It takes the key's mutex.
func (q *queue) nextHeartbeats() (asked []wire.HeartbeatRequest) {
	q.key.Lock()
	defer q.key.Unlock()
	if queueOf(q.key) != q {
		return nil
	}
	now := time.Now()
	q.due, q.had = time.Time{}, q.key.Held()
	next := wire.HeartbeatRequest{Key: q.key.Name, Polls: !q.inbox.State().Live, Place: q.key.Watching()}
	fresh := now.Sub(q.refreshed) >= refresh
	whole := fresh || q.verify || now.Sub(q.aliveAt) >= q.config.WaiterTTL
	q.verify = false
	if fresh {
		q.refreshed = now
	}
	for w := range q.key.All() { // the oldest first: if it has its place, the others have theirs
		t := ticketOf(w)
		if t == nil || !t.entered {
			continue
		}
		ahead := time.Duration(0)
		if fresh {
			ahead = t.ahead
		}
		next.Owners, next.Ahead = append(next.Owners, t.owner), append(next.Ahead, ahead)
		if !whole {
			break
		}
		if len(next.Owners) == maxOwners {
			asked = append(asked, next)
			next.Owners, next.Ahead, next.Place = nil, nil, false
		}
	}
	return append(asked, next)
}

// sendHeartbeat makes one call, which must end well before the locker counts as dead.
func (d *discipline) sendHeartbeat(asked []wire.HeartbeatRequest, queues []*queue) {
	start, replies := time.Now(), make([]wire.HeartbeatReply, len(asked))
	ctx := d.brief.Context()
	_, err := calls.Detached(ctx, d.engine.Calls, "", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, d.backend.Heartbeat(ctx, asked, replies)
	})
	d.engine.Calls.Note("", d.engine.Calls.Public(err))
	for i, q := range queues {
		reply := wire.HeartbeatReply{Err: err}
		if err == nil {
			reply = replies[i]
		}
		d.engine.ObserveCall(ctx, q.key.Name, reply.Err)
		reply.Err = d.engine.Calls.Public(reply.Err)
		q.onHeartbeatReply(start, asked[i], reply)
	}
}

// onHeartbeatReply handles the answer to a queue's heartbeat. It takes the key's mutex.
func (q *queue) onHeartbeatReply(start time.Time, asked wire.HeartbeatRequest, reply wire.HeartbeatReply) {
	k := q.key
	k.Lock()
	if queueOf(k) != q {
		k.Unlock()
		if reply.Err == nil {
			q.routeGrant(k.Name, wire.FairReply{Grant: reply.Grant}, false)
		}
		return
	}
	defer k.Unlock()
	err := k.NoteResult(reply.Err)
	q.outage = q.outage.Note(start, err)
	if err != nil {
		q.verify = q.verify || len(asked.Owners) > 1
		if slices.ContainsFunc(asked.Ahead, func(d time.Duration) bool { return d != 0 }) {
			q.refreshed = start.Add(-refresh) // the next heartbeat does what this one should
		}
		q.due = time.Now().Add(q.heartbeatRetry.Within(q.engine.Lease))
		loop.Poke(q.poke)
		q.endOverdue(err)
		return
	}
	q.heartbeatRetry = loop.Backoff{}
	q.aliveAt = start
	q.why = nil
	if reply.Label != "" && !q.had {
		q.why = errs.HeldBy(reply.Label)
	}
	if reply.Place > 0 {
		if t := q.tickets[asked.Owners[0]]; t != nil {
			q.placed(t, reply.Place)
		}
	}
	for _, i := range reply.Absent {
		if t := q.tickets[asked.Owners[i]]; t != nil && t.w != nil {
			q.requeue(t)
			if len(asked.Owners) == 1 {
				q.verify, q.due = true, start
			}
		}
	}
	q.noteGrant(wire.FairReply{HeartbeatSoon: reply.HeartbeatSoon, Grant: reply.Grant})
}
