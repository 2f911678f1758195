package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that answers says nothing of another one.
func TestCallsKnowEachServer(t *testing.T) {
	c := NewCalls(time.Minute, nil)
	c.PerServer(func(name string) string { return strings.Trim(name[:1], "?") })
	answered := func(names ...string) {
		t.Helper()
		for _, name := range []string{"a1", "a2", "b1", "", "?"} {
			require.Equal(t, slices.Contains(names, name), c.answeredWithin(name, time.Minute), name)
		}
	}
	answered()
	c.note("a1", nil)
	answered("a1", "a2")
	c.note("", nil)
	c.note("?", nil)
	answered("a1", "a2")
	c.note("b1", errNoAnswer)
	answered("a1", "a2")
	c.note("a2", errNoAnswer)
	answered()
}
