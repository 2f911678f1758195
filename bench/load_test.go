package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// Every kind of work finds a lock that does not exclude.
func TestBrokenExclusionIsFound(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		work task
		want error
	}{
		"one key":                       {task{Goroutines: 8, Hot: true, Section: ms}, errBroken},
		"readers and writers":           {task{Goroutines: 8, Hot: true, Section: ms, Shared: 50, Room: 8}, errBroken},
		"readers only":                  {task{Goroutines: 8, Hot: true, Section: ms, Shared: 100, Room: 8}, nil},
		"a permit less than goroutines": {task{Goroutines: 8, Hot: true, Section: ms, Shared: 100, Room: 7}, errBroken},
		"try-lock":                      {task{Goroutines: 2, Try: true}, errNotRefused},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := load{task: c.work}.run(anybody{}, 20*ms)
			require.ErrorIs(t, err, c.want, name)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_, err := (&saleDay{locker: anybody{}, waits: newWaits()}).open(10_000, 50*ms)
		require.ErrorIs(t, err, errBroken, "flash sale")
	})
}

// Of a kind whose readers have a locker of their own, cycles that share the key use that.
func TestReadersHaveTheirLocker(t *testing.T) {
	s := emptyServer(t)
	l := openOurs(task{Addrs: s.addrs()}, newOf(rlock.New))
	defer l.close()
	l.readers = noReaders{}
	_, err := load{task: task{Goroutines: 1, Hot: true, Shared: 100}}.run(l, time.Minute)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	redistest.Must(load{task: task{Goroutines: 1, Hot: true}}.run(l, time.Millisecond))(t)
}

// noReaders are readers that always fail.
type noReaders struct{ holdfast.Locker }

func (noReaders) Lock(context.Context, string, ...holdfast.LockOption) (*holdfast.Lease, error) {
	return nil, io.ErrUnexpectedEOF
}

// What comes before the measurement is not in it.
func TestLeadIsNotMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := load{task: task{Goroutines: 1, Hot: true, Section: time.Millisecond, Lead: 100 * time.Millisecond}, gaps: true}
		got := redistest.Must(w.run(anybody{}, 50*time.Millisecond))(t)
		require.Positive(t, got.led)
		require.Positive(t, got.Cycles)
		require.GreaterOrEqual(t, got.All, got.led+got.Cycles)
		require.LessOrEqual(t, got.Waits.TotalCount(), int64(got.All-got.led))
		require.Equal(t, []int{got.Cycles}, got.Shares)
	})
}

// A customer held up by another's stall has waited since it was due.
func TestSaleCountsFromDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stall := &stalls{free: make(chan struct{}), one: make(chan struct{}, 1)}
		r := &saleDay{locker: stall, waits: newWaits()}
		time.AfterFunc(60*time.Millisecond, func() { close(stall.free) })
		require.True(t, redistest.Must(r.open(1000, 50*time.Millisecond))(t), "served")
		require.EqualValues(t, 50, r.waits.TotalCount())
		require.Greater(t, r.waits.Max(), (50 * time.Millisecond).Nanoseconds(), "the first came at once")
		require.Less(t, r.waits.Min(), r.waits.Max()*3/4, "the last came late")
	})
}

// stalls lets nobody in until it is free, and then one at a time.
type stalls struct{ free, one chan struct{} }

func (s *stalls) cycle(string) func(func()) error {
	return func(inside func()) error {
		<-s.free
		s.one <- struct{}{}
		defer func() { <-s.one }()
		inside()
		return nil
	}
}

func (s *stalls) close() {}

// A failure of the library ends the load and is reported.
func TestFailureIsReported(t *testing.T) {
	_, err := load{task: task{Goroutines: 4}}.run(failing{}, time.Minute)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = (&saleDay{locker: failing{}, waits: newWaits()}).open(1000, 10*time.Millisecond)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

type failing struct{ anybody }

func (failing) cycle(string) func(func()) error {
	return func(func()) error { return io.ErrUnexpectedEOF }
}
