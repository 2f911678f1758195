package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rlock"
)

// open is a library that excludes nobody.
type open struct{}

func (open) cycle(string) func(func()) error {
	return func(inside func()) error {
		inside()
		return nil
	}
}

func (open) try(string) (bool, error) { return true, nil }

func (open) close() {}

// Every kind of work finds a lock that does not exclude.
func TestBrokenExclusionIsFound(t *testing.T) {
	for name, run := range map[string]func(t *testing.T){
		"one key": func(t *testing.T) {
			_, err := load{task: task{Goroutines: 8, Hot: true, Section: time.Millisecond}}.run(open{}, 20*time.Millisecond)
			require.ErrorIs(t, err, errBroken)
		},
		"readers and writers": func(t *testing.T) {
			w := load{task: task{Goroutines: 8, Hot: true, Section: time.Millisecond, Shared: 50, Room: 8}}
			_, err := w.run(open{}, 20*time.Millisecond)
			require.ErrorIs(t, err, errBroken)
			w.Shared = 100
			_, err = w.run(open{}, 20*time.Millisecond)
			require.NoError(t, err, "readers only")
			w.Room--
			_, err = w.run(open{}, 20*time.Millisecond)
			require.ErrorIs(t, err, errBroken, "one permit less than goroutines")
		},
		"flash sale": func(t *testing.T) {
			r := &saleDay{locker: open{}, waits: newWaits()}
			_, err := r.open(10_000, 50*time.Millisecond)
			require.ErrorIs(t, err, errBroken)
		},
		"try-lock": func(t *testing.T) {
			_, err := load{task: task{Goroutines: 2, Try: true}}.run(open{}, 20*time.Millisecond)
			require.ErrorIs(t, err, errNotRefused)
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
	}
}

// Of a kind whose readers have a locker of their own, cycles that share the key use that.
func TestReadersHaveTheirLocker(t *testing.T) {
	s := emptyServer(t)
	l := openOurs(task{Addrs: s.addrs()}, newOf(rlock.New))
	defer l.close()
	l.readers = noReaders{}
	_, err := load{task: task{Goroutines: 1, Hot: true, Shared: 100}}.run(l, time.Minute)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = load{task: task{Goroutines: 1, Hot: true}}.run(l, time.Millisecond)
	require.NoError(t, err)
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
		got, err := w.run(open{}, 50*time.Millisecond)
		require.NoError(t, err)
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
		served, err := r.open(1000, 50*time.Millisecond)
		require.NoError(t, err)
		require.True(t, served)
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
	r := &saleDay{locker: failing{}, waits: newWaits()}
	_, err = r.open(1000, 10*time.Millisecond)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

type failing struct{ open }

func (failing) cycle(string) func(func()) error {
	return func(func()) error { return io.ErrUnexpectedEOF }
}
