package holdfasttest

import (
	"errors"

	"github.com/holdfast-go/holdfast"
)

// RWLock is a read/write lock in memory, like that of package rwlock: its Locker locks keys
// for writers. Its Lose and Hold are for a writer; those of RLocker are for a reader.
type RWLock struct {
	*Locker
	readers *Locker
}

// NewRWLock is [New] for keys that many readers or one writer may hold. Once a writer waits, later
// readers wait too. When a writer releases, the readers that wait go in together, before the next
// writer.
func NewRWLock(opts ...holdfast.Option) (*RWLock, error) {
	l, err := newOf("holdfasttest: NewRWLock", &memory{permits: 1, readWrite: true}, opts)
	if err != nil {
		return nil, err
	}
	return pair(l), nil
}

func pair(writers *Locker) *RWLock {
	readers := newLocker(writers.settings, writers.memory)
	readers.reads, readers.half, writers.half = true, writers, readers
	return &RWLock{writers, readers}
}

// RLocker returns the locker for readers, always the same one.
func (l *RWLock) RLocker() *Locker { return l.readers }

// Another is like that of [Locker].
func (l *RWLock) Another() *RWLock { return pair(l.Locker.Another()) }

// Close closes both halves.
func (l *RWLock) Close() error { return errors.Join(l.readers.Close(), l.Locker.Close()) }
