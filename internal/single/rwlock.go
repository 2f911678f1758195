package single

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/racing"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/scripts"
)

const (
	// wishLasts is how long a process counts as waiting after its last attempt. If its turn has
	// come, others leave a free lock to it for a third of that.
	wishLasts = 3 * time.Second
	// wishAgain is how often a process that waits tries again, which renews its wish.
	wishAgain = time.Second
)

// RWLock is a [racing.Backend] on one Redis for one half of a read/write lock: the readers or the
// writers. Acquires go out in batches, and so do releases with what gives up owners. While the
// race for a key has a subscription, its callers wait, and Redis has a wish of this half. Its
// other methods are those of [wire.RWLock].
type RWLock struct {
	*wire.RWLock
	server
	readers  bool // is the half of the readers
	acquires *batcher[wire.RWLockAcquireRequest, wire.AcquireReply]
	releases *batcher[wire.RWLockReleaseRequest, wire.ReleaseReply]
	mu       sync.RWMutex
	waiting  map[string]*wish // by name; guarded by mu
}

// wish is what Redis may have of the callers that wait for a key.
type wish struct {
	noted atomic.Int64 // grows whenever a call that notes it is sent, or has not been granted
	ended atomic.Int64 // what noted was when the last granted call was sent: that call has ended it
}

// mayLast reports whether Redis may still have it.
func (w *wish) mayLast() bool { return w.noted.Load() > w.ended.Load() }

var _ engine.ReaderBackend = (*RWLock)(nil)

// NewRWLock returns the engines of the readers and of the writers on the Redis of client. The writers
// close the readers.
func NewRWLock(client rueidis.Client, c engine.Config) (readers, writers *engine.Engine) {
	s := connect(client, c)
	forReaders := c
	forReaders.LockerID, forReaders.Holds, forReaders.Observer = uuid.NewString(), engine.SharedHolds, nil
	readers = racing.New(newRWLock(s.withCalls(c), forReaders), forReaders)
	c.OwnerSuffix = wire.WriteSuffix
	writers = racing.New(newRWLock(s, c), c)
	engine.Pair(readers, writers)
	return readers, writers
}

func newRWLock(s server, c engine.Config) *RWLock {
	r := &RWLock{
		RWLock: wire.NewRWLock(s.redis, c.LockerID), server: s,
		readers: c.Holds == engine.SharedHolds, waiting: make(map[string]*wish),
	}
	r.acquires = newBatcher(s, r.RWLock.Acquire, r.AcquireEach)
	r.releases = newBatcher(s, r.RWLock.Release, r.ReleaseEach)
	return r
}

// Acquire takes the lock if others let it, alone or in a batch. If it is refused to waiting
// callers, they must try again before their wish ends. A reader beside a writer does not wait.
func (r *RWLock) Acquire(ctx context.Context, own wire.AcquireRequest) (wire.AcquireReply, error) {
	a := wire.RWLockAcquireRequest{AcquireRequest: own}
	if a.Beside != "" {
		return r.RWLock.Acquire(ctx, a)
	}
	w, sent := r.noteWish(a.Key)
	if w == nil {
		return r.acquires.do(ctx, a)
	}
	a.Wish = wishLasts
	reply, err := r.acquires.do(ctx, a)
	if err == nil && reply.OK {
		w.ended.Store(max(w.ended.Load(), sent)) // too low a value, of two calls at the same time, costs a needless call
		return reply, nil
	}
	w.noted.Add(1)
	if reply.Remaining == wire.NoExpiry || reply.Remaining > wishAgain {
		reply.Remaining = wishAgain
	}
	return reply, err
}

// noteWish returns the wish of the callers that wait for key, for a call that is to note it, and what
// noted is then; nil: nobody waits.
func (r *RWLock) noteWish(name string) (w *wish, noted int64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if w = r.waiting[name]; w != nil {
		noted = w.noted.Add(1)
	}
	return w, noted
}

// waits reports whether callers wait for key.
func (r *RWLock) waits(name string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.waiting[name] != nil
}

// Release ends a hold, alone or in a batch. Nobody steps back for other processes, as the wishes in Redis say
// whose turn is next.
func (r *RWLock) Release(ctx context.Context, own wire.ReleaseRequest) (wire.ReleaseReply, error) {
	h := wire.RWLockReleaseRequest{ReleaseRequest: own}
	if !r.readers {
		if w, _ := r.noteWish(own.Key); w != nil {
			h.Wish = wishLasts
		}
	}
	reply, err := r.releases.do(ctx, h)
	if h.Wish > 0 && !r.waits(own.Key) { // nobody waits any more, and this may have been later than the withdrawal
		r.withdrawLater(own.Key)
	}
	reply.Listeners = 0
	return reply, err
}

// Subscribe listens to the releases of name. Until the subscription ends, callers wait for it.
func (r *RWLock) Subscribe(name string) racing.Subscription {
	w := &wish{}
	r.mu.Lock()
	r.waiting[name] = w
	r.mu.Unlock()
	return wishing{r.subscriber.Subscribe(scripts.RWLockChannel(name)), r, name, w}
}

// wishing is the subscription of callers that wait for a key, and have a wish while they do.
type wishing struct {
	racing.Subscription
	half *RWLock
	name string
	wish *wish
}

// Close ends the subscription, and in the background the wish.
func (s wishing) Close() {
	s.Subscription.Close()
	r := s.half
	r.mu.Lock()
	if r.waiting[s.name] == s.wish {
		delete(r.waiting, s.name)
	}
	r.mu.Unlock()
	if s.wish.mayLast() {
		r.withdrawLater(s.name)
	}
}

// withdrawLater ends a wish in the background, unless others wait by then: it is theirs. One that others
// note during the call ends as well, until their next attempt. If the call fails, the wish ends by itself.
func (r *RWLock) withdrawLater(name string) {
	r.calls.Background(func() {
		if !r.waits(name) {
			_ = r.Withdraw(r.calls.Context(), name)
		}
	})
}
