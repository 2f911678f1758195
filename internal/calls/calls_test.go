package calls

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that answers says nothing of another one.
func TestCallsKnowEachServer(t *testing.T) {
	c := New(time.Minute, nil)
	c.PerServer = func(name string) string { return strings.Trim(name[:1], "?") }
	answered := func(names ...string) {
		t.Helper()
		for _, name := range []string{"a1", "a2", "b1", "", "?"} {
			require.Equal(t, slices.Contains(names, name), c.AnsweredWithin(name, time.Minute), name)
		}
	}
	answered()
	c.Note("a1", nil)
	answered("a1", "a2")
	c.Note("", nil)
	c.Note("?", nil)
	answered("a1", "a2")
	c.Note("b1", ErrNoAnswer)
	answered("a1", "a2")
	c.Note("a2", ErrNoAnswer)
	answered()
}

func TestCallsAreBoundedWithinTheLease(t *testing.T) {
	for _, lease := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second, 30 * time.Second, time.Hour} {
		d := Timeout(lease)
		require.LessOrEqual(t, d+d/4, lease)
		require.LessOrEqual(t, d, 5*time.Second)
	}
}

// rueidis must not see the deadline of some calls, which end at it nevertheless.
func TestHiddenDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		hiding := Bounds{Base: t.Context(), Timeout: 800 * time.Millisecond, Hidden: true}
		shown := Bounds{Base: t.Context(), Timeout: 800 * time.Millisecond}
		for ctx, hidden := range map[context.Context]bool{
			hiding.Context(): true, After(t.Context(), time.Second): true, HideDeadline(limited): true, shown.Context(): false,
		} {
			_, seen := ctx.Deadline()
			require.Equal(t, hidden, !seen)
			require.NoError(t, ctx.Err())
			defer func() { require.Equal(t, context.DeadlineExceeded, ctx.Err()) }()
		}
		time.Sleep(2 * time.Second)
	})
}

// A call of ContextAfter outlasts an earlier context while its caller waits, and leaves nothing at the caller's.
func TestContextAfter(t *testing.T) {
	for name, patient := range map[string]bool{"patient": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := Bounds{Base: t.Context(), Timeout: 4 * time.Second}
				earlier := b.Context()
				same, done := b.ContextAfter(earlier, t.Context())
				require.Equal(t, earlier, same)
				done()

				time.Sleep(4 * time.Second)
				caller, leave := context.WithCancel(t.Context())
				defer leave()
				counted := &countingContext{Context: caller}
				if !patient {
					leave()
				}
				ctx, done := b.ContextAfter(earlier, counted)
				require.NoError(t, ctx.Err())
				time.Sleep(time.Second)
				synctest.Wait()
				require.Equal(t, patient, ctx.Err() == nil)
				require.Equal(t, patient, counted.begun == 1)
				done()
				synctest.Wait()
				require.Equal(t, counted.begun, counted.stopped)
			})
		})
	}
}

// countingContext counts what waits for its end.
type countingContext struct {
	context.Context
	begun, stopped int
}

func (c *countingContext) Value(any) any { return nil }

func (c *countingContext) AfterFunc(f func()) func() bool {
	c.begun++
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		stopped := stop()
		if stopped {
			c.stopped++
		}
		return stopped
	}
}
