package faults

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/scripts"
)

func init() {
	register("F5_UnlockOfWhatIsNotHeld", testUnlockNotHeld, ofOneHolder)
	register("F9_NoWallClockInTheSource", testNoWallClock)
}

// Unlocks that release nothing change nothing, and say what is the matter.
func testUnlockNotHeld(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, Fencing: true})
	ctx := locktest.Bounded(t)
	unchanged := func(what string, l *holdfast.Lease, want error) {
		t.Helper()
		before := r.Settled("k")
		require.ErrorIs(t, l.Unlock(ctx), want, what)
		require.Equal(t, before, r.Dump(), what)
	}

	first := locktest.Lock(t, r.Locker, ctx, "k")
	unlocked := locktest.Go(func() error { return first.Unlock(ctx) })
	require.NoError(t, locktest.Within(t, unlocked), "from another goroutine")
	unchanged("second unlock, key free", first, holdfast.ErrReleased)

	next := locktest.Lock(t, r.Other, ctx, "k")
	unchanged("second unlock, key of another client", first, holdfast.ErrReleased)
	require.NoError(t, next.Unlock(ctx))

	next = locktest.Lock(t, r.Locker, ctx, "k")
	inner := locktest.Lock(t, r.Locker, next.Bind(ctx), "k")
	unchanged("second unlock, key of another owner of this client", first, holdfast.ErrReleased)
	require.NoError(t, inner.Unlock(ctx))
	unchanged("second unlock of a nested entry", inner, holdfast.ErrReleased)
	require.NoError(t, next.Unlock(ctx))

	expired := locktest.Lock(t, r.Locker, ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	locktest.Within(t, expired.Done())
	locktest.Await(t, func() bool { return !locktest.Exists(t, r.Server, "k") })
	unchanged("after expiry, key free", expired, holdfast.ErrLost)

	expired = locktest.Lock(t, r.Locker, ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	next = locktest.Lock(t, r.Other, ctx, "k")
	inner = locktest.Lock(t, r.Other, next.Bind(ctx), "k")
	unchanged("after expiry, key of another client", expired, holdfast.ErrLost)
	unchanged("after expiry, once more", expired, holdfast.ErrReleased)
	require.NoError(t, inner.Unlock(ctx))
	require.NoError(t, next.Unlock(ctx))

	// The hold was taken away, and this client does not know it yet.
	robbed := locktest.Lock(t, r.Locker, ctx, "k")
	r.Settled("k") // else a node that is late to hear of it may take it again, until it is renewed
	require.NoError(t, locktest.ErrOf(r.Other.ForceUnlock(ctx, "k")))
	next = locktest.Lock(t, r.Other, ctx, "k")
	unchanged("robbed, key of another client", robbed, holdfast.ErrLost)
	require.NoError(t, next.Unlock(ctx))
}

// wallClock are the names of package time, and of its Time, that read the wall
// clock, or strip a time of its monotonic reading so that the wall clock counts
// from there on.
var wallClock = map[string]bool{
	"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true, "Round": true, "Truncate": true, "UTC": true, "In": true,
	"Local": true, "AddDate": true, "Date": true, "Clock": true, "Year": true, "Hour": true, "Minute": true, "Format": true,
	"AppendFormat": true, "Parse": true, "MarshalText": true, "MarshalJSON": true, "MarshalBinary": true,
}

// clockCommands are what a script would need to set or read an expiry as a point
// in time.
var clockCommands = regexp.MustCompile(`(?i)'(P?EXPIREAT|P?EXPIRETIME|EXAT|PXAT)'`)

// No clock of a client can be wrong where only durations are measured and sent:
// nothing below the lock kind looks at wall-clock time.
func testNoWallClock(t *testing.T, k locktest.Kind) {
	files := 0
	for _, dir := range []string{"pubsub", "watchdog", filepath.Join("internal", "wire"), filepath.Join("internal", "engine"), k.Name} {
		sources := locktest.Must(filepath.Glob(filepath.Join(locktest.ModuleRoot(), dir, "*.go")))(t)
		for _, path := range sources {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files++
			set := token.NewFileSet()
			file := locktest.Must(parser.ParseFile(set, path, nil, parser.SkipObjectResolution))(t)
			ast.Inspect(file, func(n ast.Node) bool {
				use, ok := n.(*ast.SelectorExpr)
				// Minute and Hour as units are durations.
				unit := ok && (use.Sel.Name == "Minute" || use.Sel.Name == "Hour") && isPackage(use.X, "time")
				if ok && wallClock[use.Sel.Name] && !unit {
					t.Errorf("%v: %s", set.Position(use.Pos()), use.Sel.Name)
				}
				return true
			})
		}
	}
	require.Greater(t, files, 20)
	for name, text := range scripts.Scripts() {
		require.False(t, clockCommands.MatchString(text), "%s.lua", name)
	}
}

func isPackage(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}
