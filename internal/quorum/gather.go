package quorum

import (
	"runtime"
	"sync"
)

// mostTogether is how many asks share a call at most.
const mostTogether = 50

// gatherer has asks to a node that come at the same time share a call, and the
// goroutine that waits for it: most of what a small script costs is the call. K is
// what they have to have in common. Safe for concurrent use.
type gatherer[K comparable, Q any] struct {
	begin func(f func()) bool                  // runs f beside the caller; false: closed. Immutable
	call  func(kind K, asks []Q, cannot error) // asks, and tells each what came of it. Immutable

	mu   sync.Mutex
	next *gathering[K, Q] // is about to be sent; guarded by mu
}

// gathering is the asks that go out in one call.
type gathering[K comparable, Q any] struct {
	kind K   // immutable
	asks []Q // guarded by the gatherer's mu until the call is made
}

// add asks a node, and returns at once. The first of those who come together has
// the call made for all, after letting the others come: where nobody else wants to
// run, at once. Who is hurried, as it waits less long than others, asks alone.
func (g *gatherer[K, Q]) add(kind K, ask Q, hurried bool) {
	c, first := g.join(kind, ask, hurried)
	if first && !g.begin(func() {
		runtime.Gosched()
		g.send(c, nil)
	}) {
		g.send(c, errClosed)
	}
}

// join puts an ask to others of its kind. Who is the first has to see that they are
// sent.
func (g *gatherer[K, Q]) join(kind K, ask Q, hurried bool) (c *gathering[K, Q], first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.next
	if c == nil || hurried || c.kind != kind || len(c.asks) == mostTogether {
		c = &gathering[K, Q]{kind: kind}
		if !hurried {
			g.next = c
		}
	}
	c.asks = append(c.asks, ask)
	return c, len(c.asks) == 1
}

// send makes the call, unless it cannot be made. Nobody joins it any more.
func (g *gatherer[K, Q]) send(c *gathering[K, Q], cannot error) {
	g.mu.Lock()
	if g.next == c {
		g.next = nil
	}
	g.mu.Unlock()
	g.call(c.kind, c.asks, cannot)
}
