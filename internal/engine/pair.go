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

// pin is section.pin for an entry that lives, before a reader comes beside it: the next writer would be
// beside that reader, too.
func (en *entry) pin() error {
	k := en.key()
	k.Lock()
	defer k.Unlock()
	cause := en.err()
	if cause == nil {
		en.section.hold.pinned = true
	}
	return cause
}

// lockPaired does what a Lock of a half does before any other: it refuses a writer whose caller is a
// reader, for which it would wait, and takes the key beside a writer that is the caller of a reader. en
// is the entry that ctx re-enters, or nil. If it returns neither, the Lock goes on as any other.
func (e *Engine) lockPaired(ctx context.Context, name string, t Terms, en *entry, wait bool) (*holdfast.Lease, error) {
	switch {
	case e.readers != nil && (en == nil || en.Err() != nil):
		if reader := e.readers.boundTo(ctx, name); reader != nil && reader.Err() == nil {
			return nil, holdfast.ErrUpgrade
		}
	case e.writers != nil && en == nil:
		if writer := e.writers.boundTo(ctx, name); writer != nil {
			return e.beside(ctx, name, t, writer, wait)
		}
	}
	return nil, nil
}

// beside takes the key for a reader that writer calls. It does not wait for others, and rides out
// an outage on its own goroutine, as those that wait here may wait for writer.
func (e *Engine) beside(ctx context.Context, name string, t Terms, writer *entry, wait bool) (lease *holdfast.Lease, err error) {
	if err = writer.pin(); err != nil {
		return nil, err
	}
	t.beside = writer
	sh := e.shardOf(name)
	sh.Lock()
	if sh.closed {
		sh.Unlock()
		return nil, holdfast.ErrClosed
	}
	k := e.beginCall(sh, name)
	sh.Unlock()
	defer k.finishCall()
	err = e.RideOut(ctx, wait, func(ctx context.Context) error {
		a := e.Try(ctx, k, t, 1)
		k.Lock()
		lease = e.Adopt(k, a, e.Calls.At(a.Start))
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
	if err != nil {
		return nil, err
	}
	return e.handOut(ctx, lease)
}
