package locktest

import (
	"slices"

	"github.com/stretchr/testify/require"
)

// plainCases are what only doors promise whose clients race for a key.
var plainCases = []contractCase{
	{"Wait_CostsNoCommand", defaults, waitCosts},
	{"Wait_InOrderBehindTheFirstAttempt", defaults, waitOrderFirst},
}

// A wait costs a subscription and two looks, however many wait.
func waitCosts(c *contractRig) {
	their := lock(c.t, c.other, c.ctx, "k")
	waits := []<-chan acquired{lockAside(c.locker, c.ctx, "k")}
	await(c.t, func() bool { return len(c.noted()) == 3 })
	c.sentInOrder([]string{"acquire", "subscribe", "acquire"}, c.commands())
	for range 9 {
		waits = append(waits, c.queue(c.locker, "k"))
	}
	c.quiet()
	c.unlock(their)
	for _, w := range waits {
		c.unlock(got(c.t, w))
	}
	require.LessOrEqual(c.t, c.nodesSent("subscribe"), (len(c.sent)-1)/2) // of several nodes, a minority may be late with the first
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

// nodesSent is to how many nodes a command was sent since the last call of commands.
func (c *contractRig) nodesSent(name string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sent := range c.sent {
		if slices.Contains(sent, name) {
			n++
		}
	}
	return n
}
