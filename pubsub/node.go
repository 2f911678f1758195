package pubsub

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/rueidis"
)

// node is one server with the connection to it, and the channels that are subscribed there.
type node struct {
	// Immutable.
	s      *Subscriber
	addr   string // in client.Nodes(); "" is the one Redis, or nobody on a Cluster
	log    *slog.Logger
	ctx    context.Context // ends with the Subscriber, or when the node is no longer a master
	cancel context.CancelFunc
	poke   chan struct{} // one slot: there may be something in queue

	// Owned by the loop.
	trouble  string // what was last logged about the connection; empty while it works
	refusing bool   // that channels are refused has been logged
	served   bool   // a connection was accepted once

	// Guarded by Subscriber.mu.
	link       *link               // whose callbacks count; nil without a connection
	up         bool                // the link has connected
	own        *Subscription       // to the channel that only the link has; nil: none yet; closed: nobody can ask for it
	deaf       time.Duration       // how long the next connection is kept if it is deaf, too; 0: the last one was not
	unverified bool                // it has been logged that nobody can ask
	channels   map[string]*channel // every channel that is wanted here or not yet dropped
	queue      []*channel          // channels that may need a command, each at most once
}

func newNode(s *Subscriber, addr string) *node {
	n := &node{s: s, addr: addr, log: s.log, poke: make(chan struct{}, 1), channels: make(map[string]*channel)}
	if addr != "" {
		n.log = n.log.With("node", addr)
	}
	n.ctx, n.cancel = context.WithCancel(s.ctx)
	return n
}

// nobody reports whether n stands for the unknown owner of slots: its channels wait there until route knows it.
func (n *node) nobody() bool { return n.addr == "" && n.s.slots != nil }

// client returns the node's client, or nil while the caller's client does not know the node.
func (n *node) client() rueidis.Client {
	if n.s.slots == nil {
		return n.s.client
	}
	return n.s.client.Nodes()[n.addr]
}

// introduce makes rueidis learn of the node. rueidis asks where slots are only when a command is answered MOVED, or
// has a slot whose node it does not know; neither the command nor its answer matters.
func (n *node) introduce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.s.pace.answer)
	defer cancel()
	n.s.mu.Lock()
	name := ""
	for name = range n.channels {
		break
	}
	n.s.mu.Unlock()
	n.s.client.Do(ctx, n.s.client.B().Exists().Key(name).Build())
}

// listen adds a listener to the node's channel of this name. s.mu is held.
func (n *node) listen(name string, sub *Subscription) {
	ch := n.channels[name]
	if ch == nil {
		ch = &channel{name: name, node: n}
		if n.nobody() {
			ch.phase = astray
		}
		n.channels[name] = ch
	}
	ch.add(sub)
	n.update(ch)
}
