package gocronholdfast

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// ErrNotLeader: another process runs the jobs, or this one has lost the lock or has no Redis.
// The text says why.
var ErrNotLeader = errors.New("not the leader")

const retry = time.Second // after an error of Lock

// Elector is a [gocron.Elector]: the process that holds a key is the leader. It stays so
// until [Elector.Close], its death, or the loss of the lock. Safe for concurrent use.
//
// At a change of the leader, a due time may be skipped, or run twice if clocks differ.
type Elector struct {
	locks holdfast.Locker
	key   string
	stop  context.CancelFunc
	first chan struct{} // closed when the first attempt has been answered
	ended chan struct{} // closed at the end of stand

	mu    sync.Mutex
	lease *holdfast.Lease // guarded by mu; nil: not the leader
	err   error           // guarded by mu; why not
}

// NewElector returns an elector for [gocron.WithDistributedElector] and begins to stand for
// election. All processes use the same key. The caller must call Close, before that of locks.
// It fails on nil locks; errors of the election are those of IsLeader.
func NewElector(locks holdfast.Locker, key string) (*Elector, error) {
	if locks == nil {
		return nil, errs.Invalid("gocronholdfast: NewElector: locks is nil")
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{locks: locks, key: key, stop: stop, first: make(chan struct{}), ended: make(chan struct{})}
	go e.stand(ctx)
	return e, nil
}

// stand stands for election until ctx or the locker ends.
func (e *Elector) stand(ctx context.Context) {
	defer close(e.ended)
	lease, err := e.locks.TryLock(ctx, e.key)
	e.set(lease, err)
	close(e.first)
	for {
		switch {
		case err == nil:
			select {
			case <-lease.Done():
			case <-ctx.Done():
			}
			e.set(nil, lease.Unlock(ctx))
		case errors.Is(err, holdfast.ErrNotAcquired), errors.Is(err, holdfast.ErrClosed):
		default:
			select {
			case <-time.After(retry):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil || errors.Is(err, holdfast.ErrClosed) {
			return
		}
		lease, err = e.locks.Lock(ctx, e.key)
		e.set(lease, err)
	}
}

func (e *Elector) set(lease *holdfast.Lease, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lease, e.err = lease, err
}

func (e *Elector) state() (*holdfast.Lease, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lease, e.err
}

// IsLeader implements [gocron.Elector]. It returns nil while this process is the leader, and
// never after its lease has ended; else [ErrNotLeader], joined with the reason, such as
// [holdfast.ErrNotAcquired] or [holdfast.ErrUnavailable]. The first call waits until the
// first attempt of [NewElector] was answered, or ctx ends. No round trip.
func (e *Elector) IsLeader(ctx context.Context) error {
	select {
	case <-e.first:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrNotLeader, ctx.Err())
	}
	lease, err := e.state()
	if lease != nil {
		if err = lease.Err(); err == nil {
			return nil
		}
	}
	if err == nil { // closed, or between two terms
		return ErrNotLeader
	}
	return fmt.Errorf("%w: %w", ErrNotLeader, err)
}

// Bind returns a context for a job. It is bound to the leader's lease, see
// [holdfast.Lease.Bind]: it ends when this process is no longer the leader. If it is not the
// leader now, the context has ended.
func (e *Elector) Bind(ctx context.Context) context.Context {
	lease, _ := e.state()
	return bind(ctx, lease, ErrNotLeader)
}

// Close gives up the leadership, so that another process may have it at once, and waits for
// the goroutine. It takes no longer than Unlock of [holdfast.Lease]. Shut the scheduler down
// first: jobs that still run lose their protection.
func (e *Elector) Close() {
	e.stop()
	<-e.ended
}
