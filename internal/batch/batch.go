// Package batch combines calls to Redis that are about to be made at the same time into one:
// most of the cost of a small script, to the server and its client, is the call.
package batch

import "sync"

// Max is the largest number of asks in a call: Redis serves no other client meanwhile.
const Max = 50

// usual is the first capacity of a call with more than one ask.
const usual = 16

// Batcher combines asks. The asks of one call share their kind K; Q is an ask, A an answer.
// Its zero value is ready for use. Safe for concurrent use.
type Batcher[K comparable, Q, A any] struct {
	mu   sync.Mutex
	next *Call[K, Q, A] // open to more asks; guarded by mu
}

// Call is a batch of asks. The goroutine with its first ask makes sure that it is made.
type Call[K comparable, Q, A any] struct {
	Kind    K             // immutable
	Asks    []Q           // guarded by the batcher's mu until Seal
	Came    chan struct{} // closed by the maker after the call; nil with a single ask; guarded like Asks
	Answers []A           // one for each ask, if Err is nil; set by the maker
	Err     error         // set by the maker
	room    [1]Q
}

// Join adds an ask to an open call of its kind, or begins one, and returns its index there.
// The caller with index 0 must close the call and make it. No other ask joins one that must
// go alone.
func (g *Batcher[K, Q, A]) Join(kind K, ask Q, alone bool) (c *Call[K, Q, A], index int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.next
	if c == nil || alone || c.Kind != kind || len(c.Asks) == Max {
		c = &Call[K, Q, A]{Kind: kind}
		c.Asks = c.room[:0]
		if !alone {
			g.next = c
		}
	}
	if index = len(c.Asks); index == 1 {
		c.Asks = append(make([]Q, 0, usual), c.Asks...)
		c.Came = make(chan struct{})
	}
	c.Asks = append(c.Asks, ask)
	return c, index
}

// Seal closes a call to further asks. Call runtime.Gosched before it, so that goroutines
// that are about to join can do so; without any, that costs nothing.
func (g *Batcher[K, Q, A]) Seal(c *Call[K, Q, A]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == c {
		g.next = nil
	}
}

// Size is the number of asks in a call so far, for tests.
func (g *Batcher[K, Q, A]) Size(c *Call[K, Q, A]) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(c.Asks)
}
