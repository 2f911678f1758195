package locktest

import (
	"time"

	"github.com/stretchr/testify/require"
)

// plainCases are what only lock kinds promise whose clients race for a key.
var plainCases = []contractCase{
	{"Wait_CostsNoCommand", defaults, waitCosts},
	{"Wait_InOrderBehindTheFirstAttempt", defaults, waitOrderFirst},
}

// A wait costs a subscription and so many looks, however many wait.
func waitCosts(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	waits := []<-chan acquired{lockAside(c.locker, c.ctx, "k")}
	if c.kind.Nodes > 1 {
		c.awaitWaiters("k", 1)
	} else {
		await(c.t, func() bool { return len(c.noted()) == 3 })
		require.Equal(c.t, []string{"acquire", "subscribe", "acquire"}, c.commands())
	}
	for range 19 {
		waits = append(waits, c.queue(c.locker, "k"))
	}
	if c.kind.Nodes > 1 {
		time.Sleep(200 * time.Millisecond) // looks without an end would show
		require.LessOrEqual(c.t, c.mostSent("acquire"), c.kind.looks())
	} else {
		c.quiet()
	}
	c.unlock(their)
	for _, w := range waits {
		c.unlock(got(c.t, w))
	}
	require.LessOrEqual(c.t, c.mostSent("subscribe"), 1)
	c.tidy("k")
}

// Who found nobody before it goes before those that came during its attempt.
func waitOrderFirst(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	hook, held := holding("acquire")
	c.proxy.OnReply(hook)
	first := lockAside(c.locker, c.ctx, "k")
	within(c.t, held)
	second := c.queue(c.locker, "k")
	c.proxy.OnReply(nil)
	c.proxy.Release()
	c.unlock(their)
	c.unlock(got(c.t, first))
	c.unlock(got(c.t, second))
}

// mostSent is how often a command was sent, since the last call of commands, to the
// node that it was sent to most often.
func (c *contractRig) mostSent(name string) (most int) {
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
