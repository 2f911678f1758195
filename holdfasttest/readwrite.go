package holdfasttest

import (
	"errors"

	"github.com/holdfast-go/holdfast"
)

// ReadWrite is a read/write lock in memory, like that of package rwlock: its Locker locks keys
// for writers. Its Lose and Hold are for a writer; those of RLocker are for a reader.
type ReadWrite struct {
	*Locker
	readers *Locker
}

// NewReadWrite is [New] for keys that many readers or one writer may hold. Once a writer waits, later
// readers wait too. When a writer releases, the readers that wait go in together, before the next
// writer.
func NewReadWrite(opts ...holdfast.Option) (*ReadWrite, error) {
	l, err := newOf("holdfasttest: NewReadWrite", &memory{permits: 1, readWrite: true}, opts)
	if err != nil {
		return nil, err
	}
	return pair(l), nil
}

func pair(writers *Locker) *ReadWrite {
	readers := newLocker(writers.settings, writers.memory)
	readers.reads, readers.half, writers.half = true, writers, readers
	return &ReadWrite{writers, readers}
}

// RLocker returns the locker for readers, always the same one.
func (l *ReadWrite) RLocker() *Locker { return l.readers }

// Another is like that of [Locker].
func (l *ReadWrite) Another() *ReadWrite { return pair(l.Locker.Another()) }

// Close closes both halves.
func (l *ReadWrite) Close() error { return errors.Join(l.readers.Close(), l.Locker.Close()) }
