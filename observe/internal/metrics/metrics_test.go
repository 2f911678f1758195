package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type point struct {
	id         ID
	key, label string
}

// recorded are the sums of what an observer records.
func recorded(keyName func(string) string) (holdfast.Observer, map[point]float64) {
	sums := map[point]float64{}
	return Observer(func(id ID, value float64, key, label string) { sums[point{id, key, label}] += value }, keyName), sums
}

func firstPart(key string) string { name, _, _ := strings.Cut(key, ":"); return name }

func TestEvents(t *testing.T) {
	o, sums := recorded(firstPart)
	o.Acquired(holdfast.AcquiredEvent{Key: "a:1", How: holdfast.ByGrant, Waited: 2 * time.Second})
	o.Acquired(holdfast.AcquiredEvent{Key: "a:1", How: holdfast.ByReentry, Waited: time.Hour})
	o.Released(holdfast.ReleasedEvent{Key: "a:1", Held: 500 * time.Millisecond})
	o.Failed(holdfast.FailedEvent{Key: "a:2", Waited: time.Second, Err: holdfast.ErrTooManyWaiters})
	o.Lost(holdfast.LostEvent{Key: "b:1", Held: time.Second, Err: errs.Lost(watchdog.ErrMaxHold)})
	o.Lost(holdfast.LostEvent{Key: "c:1", Err: errs.Lost(watchdog.ErrFixedLease)})
	o.Renewed(holdfast.RenewedEvent{Key: "a:1", Late: 10 * time.Millisecond})
	o.Renewed(holdfast.RenewedEvent{Key: "a:1", Late: time.Hour, Err: holdfast.ErrUnknown})
	o.OutageBegan(holdfast.OutageBeganEvent{})
	require.EqualValues(t, 1, sums[point{Outages, "", ""}])
	o.OutageEnded(holdfast.OutageEndedEvent{Lasted: 3 * time.Second})
	for p, want := range map[point]float64{
		{Acquired, "a", "grant"}: 1, {Acquired, "a", "re-entry"}: 1, {WaitDuration, "a", ""}: 2, {Held, "a", ""}: 1, {HoldDuration, "a", ""}: .5,
		{Failed, "a", "too_many_waiters"}: 1, {WaitDuration, "a", "too_many_waiters"}: 1,
		{Lost, "b", "max_hold"}: 1, {HoldDuration, "b", "max_hold"}: 1, {Held, "b", ""}: -1,
		{Lost, "c", "fixed_lease"}: 1, {Held, "c", ""}: -1,
		{RenewalDelay, "a", ""}: .01, {RenewalFailed, "a", "unknown"}: 1, {Outages, "", ""}: 0, {OutageDuration, "", ""}: 3,
	} {
		require.Equal(t, want, sums[p], "%s %v", All[p.id].Name, p)
		delete(sums, p)
	}
	for p, value := range sums {
		require.Zero(t, value, "%s %v", All[p.id].Name, p)
	}
}

// The waiters of two keys may have one name.
func TestWaiting(t *testing.T) {
	o, sums := recorded(firstPart)
	waiters := func(key string, waiting int, sum float64) {
		t.Helper()
		o.Waiters(holdfast.WaitersEvent{Key: key, Waiting: waiting})
		require.Equal(t, sum, sums[point{Waiting, "a", ""}])
	}
	waiters("a:1", 3, 3)
	waiters("a:2", 1, 4)
	waiters("a:1", 2, 3)
	o.Dropped(holdfast.DroppedEvent{Waiters: 1})
	require.Zero(t, sums[point{Waiting, "a", ""}])
	waiters("a:1", 2, 2)
	waiters("a:1", 0, 0)
	waiters("a:2", 0, 0)
}

// What was dropped is in the sums over all keys.
func TestDropped(t *testing.T) {
	o, sums := recorded(nil)
	o.Acquired(holdfast.AcquiredEvent{Key: "a", How: holdfast.ByCall})
	o.Dropped(holdfast.DroppedEvent{Acquired: 7, Failed: 5, Released: 3, Lost: 2, Renewed: 1, OutageBegan: 2, OutageEnded: 1})
	for p, want := range map[point]float64{
		{Held, "", ""}: 3, {Acquired, "", Other}: 7, {Failed, "", Other}: 5, {Lost, "", Other}: 2, {Outages, "", ""}: 1,
		{Dropped, "", "acquired"}: 7, {Dropped, "", "released"}: 3, {Dropped, "", "renewed"}: 1, {Dropped, "", "outage_ended"}: 1,
	} {
		require.Equal(t, want, sums[p], "%s %v", All[p.id].Name, p)
	}
}

// An increase is seen only of a counter that has been there before.
func TestCountersBeginAtZero(t *testing.T) {
	_, sums := recorded(nil)
	require.Contains(t, sums, point{Lost, "", "expired"})
	require.Contains(t, sums, point{Held, "", ""})
	require.Contains(t, sums, point{Dropped, "", "lost"})

	o, sums := recorded(func(string) string { return "\xff" })
	require.NotContains(t, sums, point{Held, "", ""}, "there is no such key")
	o.Acquired(holdfast.AcquiredEvent{Key: "a", How: holdfast.ByCall})
	require.Contains(t, sums, point{Lost, "\uFFFD", "expired"})
}

func TestErrorType(t *testing.T) {
	wrapped := func(err error) error { return errs.Of("lock", "k", err) }
	for want, err := range map[string]error{
		"":                  nil,
		"_OTHER":            errors.New("canary"),
		"lost":              wrapped(errs.Lost(watchdog.ErrDeadline)),
		"not_acquired":      wrapped(fmt.Errorf("%w: %w", holdfast.ErrNotAcquired, context.DeadlineExceeded)),
		"canceled":          wrapped(fmt.Errorf("%w: %w", holdfast.ErrNotAcquired, context.Canceled)),
		"unavailable":       wrapped(fmt.Errorf("%w: %w", holdfast.ErrUnavailable, context.Canceled)),
		"not_replicated":    wrapped(fmt.Errorf("%w: %w", holdfast.ErrUnknown, holdfast.ErrNotReplicated)),
		"deadline_exceeded": wrapped(context.DeadlineExceeded),
		"invalid_argument":  wrapped(errs.Invalid("canary")),
		"upgrade":           wrapped(holdfast.ErrUpgrade),
		"wrong_permits":     wrapped(&holdfast.PermitsError{Wanted: 1, Agreed: 2}),
	} {
		require.Equal(t, want, ErrorType(err))
		if want != "" {
			require.Contains(t, failures, want)
		}
	}
	for want, err := range map[string]error{
		"not_ours": watchdog.ErrNotOurs, "expired": watchdog.ErrDeadline, "max_hold": watchdog.ErrMaxHold,
		"force_unlocked": errs.ErrForced, "_OTHER": errors.New("canary"),
	} {
		require.Equal(t, want, typeOf(wrapped(errs.Lost(err)), lost))
		require.Contains(t, losses, want)
	}
}
