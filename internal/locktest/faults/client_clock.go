package faults

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/scripts"
)

func init() { register("F9_NoWallClockInTheSource", testNoWallClock) }

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
func testNoWallClock(t *testing.T, d Kind) {
	files := 0
	for _, dir := range []string{"scripts", "pubsub", "watchdog", filepath.Join("internal", "engine"), d.Name} {
		sources, err := filepath.Glob(filepath.Join(ModuleRoot(), dir, "*.go"))
		require.NoError(t, err)
		for _, path := range sources {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			files++
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
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
