package engine

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Pair makes two engines the halves of a read/write lock, before either is used. A writer may be
// the caller of a reader, but not the other way round. They share the observer and the clock of the
// writers, and one warning of eviction. The writers close the readers as well.
func Pair(readers, writers *Engine) {
	readers.writers, writers.readers = writers, readers
	readers.observer, readers.warned = writers.observer, writers.warned
	readers.Calls.ShareClock(writers.Calls)
}

// Paired reports whether two engines are the halves of a read/write lock.
func Paired(a, b *Engine) bool { return a != nil && b != nil && (a.readers == b || b.readers == a) }

// lockPaired does what a Lock of a half does before any other: it refuses a writer whose caller is a
// reader, for which it would wait, and takes the key beside a writer that is the caller of a reader. en
// is the entry that ctx re-enters, or nil. If it returns neither, the Lock goes on as any other.
func (e *Engine) lockPaired(ctx context.Context, r *request, en *entry) (*holdfast.Lease, error) {
	switch {
	case e.readers != nil && (en == nil || en.Err() != nil):
		if reader := e.readers.boundTo(ctx, r.name); reader != nil && reader.Err() == nil {
			return nil, holdfast.ErrUpgrade
		}
	case e.writers != nil && en == nil:
		if writer := e.writers.boundTo(ctx, r.name); writer != nil {
			return e.beside(ctx, r, writer)
		}
	}
	return nil, nil
}

// beside takes the key for a reader that writer calls. It does not wait for others, and rides out
// an outage on its own goroutine, as those that wait here may wait for writer.
func (e *Engine) beside(ctx context.Context, r *request, writer *entry) (lease *holdfast.Lease, err error) {
	writer.section.pin() // before the check: the next writer of the hold would be beside the reader, too
	if err = writer.Err(); err != nil {
		return nil, err
	}
	t := r.Terms
	t.beside = writer
	var k *Key
	if !e.With(r.name, func(*Key) { k = e.stripeOf(r.name).beginCall(r.name) }) {
		return nil, holdfast.ErrClosed
	}
	defer k.finishCall()
	err = e.RideOut(ctx, r.wait != 0, func(ctx context.Context) error {
		a := e.Try(ctx, k, t, 1)
		k.Lock()
		lease = e.Adopt(a, nil)
		closed := k.closed
		k.Unlock()
		e.Undo(a.Orphan)
		cause := writer.Err()
		switch {
		case lease != nil:
			return nil
		case closed:
			return holdfast.ErrClosed
		case cause != nil:
			return cause
		case a.Err != nil:
			return a.Err
		case a.Hold != nil: // lost since
			return ErrTooLate
		}
		e.writers.lose(writer.section.hold, watchdog.ErrNotOurs) // Redis has neither the writer nor, for its sake, the reader
		return errs.Lost(watchdog.ErrNotOurs)
	})
	return e.unlockIfOver(ctx, lease, err)
}
