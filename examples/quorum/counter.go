package main

import (
	"sync"
	"time"
)

// lease is what the counter needs to know of a lease.
type lease interface{ Err() error }

// counter is what the lock guards: a value that is read when a section begins and
// written when it ends. Its own lock makes one step at a time of each of the two,
// never of both. Safe for concurrent use.
type counter struct {
	mu       sync.Mutex
	value    int             // guarded by mu
	inside   map[lease]bool  // guarded by mu
	waits    []time.Duration // for the leases that entered; guarded by mu
	sections int             // that have written; guarded by mu
	lost     int             // leases that ended before their section wrote; guarded by mu
	double   int             // sections that began while another was inside; guarded by mu
}

// enter begins a section under l, which was waited for so long, and returns the
// value. It does not, false, if the lease has been lost already.
//
// Both leases of a double hold live at one instant: the other was granted before
// l was looked at, and lives after that.
func (c *counter) enter(l lease, waited time.Duration) (read int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.Err() != nil {
		c.lost++
		return 0, false
	}
	for other := range c.inside {
		if other.Err() == nil {
			c.double++
			break
		}
	}
	c.inside[l] = true
	c.waits = append(c.waits, waited)
	return c.value, true
}

// leave ends the section of l, which writes one more than it has read, unless its
// lease was lost. The lock is to be released after that.
func (c *counter) leave(l lease, read int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inside, l)
	if l.Err() != nil {
		c.lost++
		return
	}
	c.value = read + 1
	c.sections++
}

// progress returns how many sections have written, and the double holds.
func (c *counter) progress() (sections, double int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sections, c.double
}
