package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

// locker is that of a lock kind.
type locker interface {
	holdfast.Locker
	holdfast.Operator
}

// readers locks keys for readers.
type readers struct {
	holdfast.Locker
	holdfast.Operator
}

// hold is a lock with all that it depends on.
type hold struct {
	client   rueidis.Client
	locker   locker
	lease    *holdfast.Lease
	due      *rlock.Locker   // has the key of --at-least; nil: none
	apart    *holdfast.Lease // of that key
	begun    bool            // by this run or another: the key of --at-least outlives holdfast
	patience time.Duration   // with Redis at the end
}

var errNotReleased = errors.New("redis does not answer; the lock is free when its lease ends")

// end releases what is held, if that takes no longer than patience.
func (h *hold) end() error {
	released, closed := make(chan error, 1), make(chan struct{})
	go func() { // ends with holdfast
		defer close(closed)
		var err error
		if h.lease != nil {
			err = h.lease.Unlock(context.Background())
		}
		released <- err
		if h.due != nil && !h.begun {
			_ = h.due.Close()
		}
		if h.locker != nil {
			_ = h.locker.Close()
		}
		if h.client != nil {
			h.client.Close()
		}
	}()
	late := time.After(h.patience)
	select {
	case err := <-released:
		select { // a client takes a second to close if its server hangs
		case <-closed:
		case <-late:
		}
		return err
	case <-late:
		return errNotReleased
	}
}

// acquireUnless acquires the lock unless a signal comes first: then nothing is held. A second
// signal ends holdfast immediately; what it held ends with its lease.
func (r *run) acquireUnless(signals <-chan os.Signal, o rueidis.ClientOption) (*hold, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h, done := &hold{patience: min(10*time.Second, r.lease/3)}, make(chan error, 1)
	go func() {
		err := r.acquire(ctx, h, o)
		if err != nil {
			h.begun = ctx.Err() == nil && errors.Is(err, holdfast.ErrNotAcquired)
			_ = h.end() // what it cannot release ends with its lease
		}
		done <- err
	}()
	var got os.Signal
	for {
		select {
		case err := <-done:
			switch {
			case got == nil:
				return h, err
			case err != nil:
				return nil, &failure{signalStatus(got), nil}
			}
			go func() { done <- cmp.Or(h.end(), context.Canceled) }()
		case s := <-signals:
			if got != nil {
				return nil, &failure{signalStatus(s), nil}
			}
			got = s
			cancel()
		}
	}
}

func (r *run) acquire(ctx context.Context, h *hold, o rueidis.ClientOption) (err error) {
	patience := r.lease // while Redis is unavailable, as for a wait without end
	if r.bounded {
		patience = r.wait
	}
	once, end := r.try || patience == 0, time.Now().Add(patience)
	dialing, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	if once {
		dialing = ctx
	}
	if h.client, err = dial(dialing, o, once); err != nil {
		return err
	}
	l, err := r.newLocker(h.client)
	if err != nil { // h.locker stays nil: l is a nil pointer in an interface
		return err
	}
	h.locker = l
	if r.atLeast > 0 {
		if err := r.begin(ctx, h); err != nil {
			return err
		}
	}
	var opts []holdfast.LockOption
	if r.capped { // more than holdfast waits for the command to end, and more than an attempt takes
		opts = append(opts, holdfast.MaxHold(r.maxHold+r.killAfter+10*time.Second))
	}
	switch {
	case once:
		h.lease, err = h.locker.TryLock(ctx, r.key, opts...)
	case r.bounded:
		h.lease, err = h.locker.TryLockFor(ctx, r.key, max(0, time.Until(end)), opts...)
	default:
		h.lease, err = h.locker.Lock(ctx, r.key, opts...)
	}
	if err == nil && h.apart != nil && h.apart.Err() != nil { // another machine may have run it
		err = fmt.Errorf("%w: the time of --at-least has passed before the lock came", holdfast.ErrUnavailable)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// begin takes the key of --at-least, as the adapters for schedulers do: that of the lock with
// ":due", for a fixed time, without waiting. Its locker is not closed, which would release it.
func (r *run) begin(ctx context.Context, h *hold) error {
	l, err := rlock.New(h.client)
	if err == nil {
		h.due = l
		h.apart, err = l.TryLock(ctx, r.key+names.Due, holdfast.FixedLease(r.atLeast))
	}
	if errors.Is(err, holdfast.ErrNotAcquired) {
		err = fmt.Errorf("%w; the job has begun less than %v ago", err, r.atLeast)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

func (r *run) newLocker(client rueidis.Client) (locker, error) {
	log := slog.New(warnings{r.stderr})
	watch := holdfast.Observer{Renewed: func(e holdfast.RenewedEvent) { r.renewal.Store(&e.Err) }}
	opts := []holdfast.Option{holdfast.WithLease(r.lease), holdfast.WithLogger(log), holdfast.WithObserver(watch)}
	if r.fenceEnv != "" {
		opts = append(opts, holdfast.WithFencing())
	}
	if r.permits > 0 {
		return semaphore.New(client, r.permits, opts...)
	}
	if r.fair {
		return fair.New(client, opts...)
	}
	if r.read || r.write {
		l, err := rwlock.New(client, opts...)
		if err != nil || r.write {
			return l, err
		}
		return readers{l.RLocker(), l}, nil
	}
	return rlock.New(client, opts...)
}
