package contract

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

// plainCases are the promises of lock kinds with racing clients only.
var plainCases = []testCase{
	{"Wait_CostsNoCommand", defaults, waitCosts},
	{"Wait_InOrderBehindTheFirstAttempt", defaults, waitOrderFirst},
}

// A wait costs a subscription and a fixed number of probes, however many waiters there are.
func waitCosts(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	waits := []<-chan locktest.Acquired{locktest.GoLock(c.Locker, c.ctx, "k")}
	if c.Kind.Nodes > 1 {
		c.AwaitWaiters("k", 1)
	} else {
		locktest.Await(c.T, func() bool { return len(c.noted()) == 3 })
		require.Equal(c.T, []string{"acquire", "subscribe", "acquire"}, c.commands())
	}
	waits = append(waits, c.queues(19, "k")...)
	if c.Kind.Nodes > 1 {
		time.Sleep(200 * time.Millisecond) // looks without an end would show
		require.LessOrEqual(c.T, c.mostSent("acquire"), c.Kind.Looks())
	} else {
		c.quiet()
	}
	c.unlock(their)
	for _, w := range waits {
		c.unlock(locktest.Got(c.T, w))
	}
	require.LessOrEqual(c.T, c.mostSent("subscribe"), 1)
	c.Tidy("k")
}

// The caller of a first attempt goes before those that came during its attempt.
func waitOrderFirst(c *harness) {
	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	first, second := c.overtaken()
	c.unlock(their)
	c.unlock(locktest.Got(c.T, first))
	c.unlock(locktest.Got(c.T, second))
}

// mostSent is how often a command was sent since the last call of commands, to the node
// that got it most often.
func (c *harness) mostSent(name string) (most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sent := range c.sent {
		n := 0
		for _, s := range sent {
			if s == name {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
