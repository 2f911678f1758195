// Package batch has calls to Redis that are about to be made at the same time go out
// as one: most of what a small script costs, the server and its client, is the call.
package batch

import "sync"

// Most is how many asks share a call at most: Redis serves nobody else meanwhile.
const Most = 50

// usual is how many asks a call has room for at first if it has more than one.
const usual = 16

// Batcher puts asks together. K is what those of one call have in common, Q what one
// asks for, A the answer. Its zero value is ready for use. Safe for concurrent use.
type Batcher[K comparable, Q, A any] struct {
	mu   sync.Mutex
	next *Call[K, Q, A] // is about to be made; guarded by mu
}

// Call is the asks that go out together.
type Call[K comparable, Q, A any] struct {
	Kind    K             // immutable
	Asks    []Q           // guarded by the batcher's mu until it is closed
	Came    chan struct{} // for its maker to close when it is over; nil while nobody has joined. As Asks
	Answers []A           // one for each ask, unless Err says that there are none; both for its maker to set
	Err     error
	room    [1]Q
}

// Join adds an ask to the others of its kind, and tells its place in their call. Who
// comes first, at place 0, has to close the call and to make it. An ask that is to go
// alone is joined by nobody.
func (g *Batcher[K, Q, A]) Join(kind K, ask Q, alone bool) (c *Call[K, Q, A], place int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.next
	if c == nil || alone || c.Kind != kind || len(c.Asks) == Most {
		c = &Call[K, Q, A]{Kind: kind}
		c.Asks = c.room[:0]
		if !alone {
			g.next = c
		}
	}
	if place = len(c.Asks); place == 1 {
		c.Asks = append(make([]Q, 0, usual), c.Asks...)
		c.Came = make(chan struct{})
	}
	c.Asks = append(c.Asks, ask)
	return c, place
}

// Close has nobody join a call any more. Before it, runtime.Gosched lets those come who
// are about to, and costs nothing where there are none.
func (g *Batcher[K, Q, A]) Close(c *Call[K, Q, A]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == c {
		g.next = nil
	}
}

// Size is how many asks a call has so far.
func (g *Batcher[K, Q, A]) Size(c *Call[K, Q, A]) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(c.Asks)
}
