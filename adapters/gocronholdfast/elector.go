package gocronholdfast

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/loop"
)

const retry = time.Second // after a refusal by Redis

// Elector is a [gocron.Elector]: a candidate of an election, whose leader runs all jobs. It
// leads until [Elector.Close] or its death. After a loss of the lock, it campaigns again. Safe for
// concurrent use.
//
// At a change of the leader, a due time may be skipped, or run twice if clocks differ.
type Elector struct {
	election *election.Election
	stop     context.CancelFunc
	ended    chan struct{} // closed at the end of campaign
}

// NewElector returns an elector for [gocron.WithDistributedElector] and begins to campaign. All
// processes use the same key. The options are those of [election.New]. The caller must call Close,
// before Close of locks. It fails with [holdfast.ErrInvalidArgument] on nil locks, and as election.New
// does; IsLeader returns the errors of the election.
func NewElector(locks holdfast.Locker, key string, opts ...holdfast.LockOption) (*Elector, error) {
	if locks == nil {
		return nil, errs.Invalid("gocronholdfast: NewElector: locks is nil")
	}
	candidate, err := election.New(locks, key, opts...)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{election: candidate, stop: stop, ended: make(chan struct{})}
	go e.campaign(ctx)
	return e, nil
}

// campaign campaigns and leads until ctx or the locker ends.
func (e *Elector) campaign(ctx context.Context) {
	defer close(e.ended)
	for ctx.Err() == nil {
		err := e.election.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
		if errors.Is(err, holdfast.ErrClosed) {
			return
		}
		loop.Sleep(retry, ctx.Done())
	}
}

// IsLeader implements [gocron.Elector]; see [election.Election.IsLeader], also for its errors. It
// costs no round trip.
func (e *Elector) IsLeader(ctx context.Context) error { return e.election.IsLeader(ctx) }

// Bind returns a context for a job, which ends when this process is no longer the leader; see
// [election.Election.Bind].
func (e *Elector) Bind(ctx context.Context) context.Context { return e.election.Bind(ctx) }

// Close gives up the leadership, so that another process may have it immediately, and waits for
// the goroutine. It takes no longer than Unlock of [holdfast.Lease]. Shut the scheduler down
// first: jobs that still run lose their protection.
func (e *Elector) Close() {
	e.stop()
	<-e.ended
}
