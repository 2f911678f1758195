package quorum

import (
	"runtime"

	"github.com/holdfast-go/holdfast/internal/gather"
)

// gatherer has asks to a node that come at the same time share a call, and the
// goroutine that waits for it. Safe for concurrent use.
type gatherer[K comparable, Q any] struct {
	gather.Gatherer[K, Q, struct{}]                                      // each is told its answer by a function of its own
	begin                           func(f func()) bool                  // runs f beside the caller; false: closed. Immutable
	call                            func(kind K, asks []Q, cannot error) // asks, and tells each what came of it. Immutable
}

// add asks a node, and returns at once. Who is hurried, as it waits less long than
// others, asks alone.
func (g *gatherer[K, Q]) add(kind K, ask Q, hurried bool) {
	c, place := g.Join(kind, ask, hurried)
	if place == 0 && !g.begin(func() {
		runtime.Gosched()
		g.send(c, nil)
	}) {
		g.send(c, errClosed)
	}
}

// send makes the call, unless it cannot be made. Nobody joins it any more.
func (g *gatherer[K, Q]) send(c *gather.Call[K, Q, struct{}], cannot error) {
	g.Close(c)
	g.call(c.Kind, c.Asks, cannot)
}
