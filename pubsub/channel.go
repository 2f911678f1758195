package pubsub

import "github.com/holdfast-go/holdfast/internal/loop"

// phase is what the server knows of a channel on the present connection.
type phase uint8

const (
	absent  phase = iota // not subscribed, nothing under way
	joining              // SUBSCRIBE sent
	joined               // confirmed; live once the link is known to hear
	leaving              // UNSUBSCRIBE sent
	refused              // SUBSCRIBE was refused; asked again after the long back-off
	astray               // the node does not have the slot; route decides
)

// channel is one name at one node with its listeners. At most one command for it is under way at a time, so an
// acknowledgement always belongs to the last command. All other fields are guarded by Subscriber.mu.
type channel struct {
	name     string // immutable
	node     *node  // immutable
	phase    phase
	queued   bool // in node.queue
	subs     []*Subscription
	epoch    uint64 // how often it became live
	messages uint64 // messages received
}

// live reports whether what calls publish reaches the listeners.
func (ch *channel) live() bool { return ch.phase == joined && ch.node.link.hears }

func (ch *channel) wanted() bool { return len(ch.subs) > 0 }

// due reports whether the phase calls for a command.
func (ch *channel) due() bool {
	return ch.wanted() && ch.phase == absent || !ch.wanted() && ch.phase == joined
}

func (ch *channel) add(sub *Subscription) {
	sub.ch, sub.index = ch, len(ch.subs)
	sub.epoch, sub.messages = ch.epoch, ch.messages
	ch.subs = append(ch.subs, sub)
	if ch.live() { // the confirmation that the channel lives by counts for this listener too
		sub.epoch--
		sub.notify()
	}
}

func (ch *channel) remove(sub *Subscription) {
	last := len(ch.subs) - 1
	ch.subs[sub.index] = ch.subs[last]
	ch.subs[sub.index].index = sub.index
	ch.subs[last] = nil
	ch.subs = ch.subs[:last]
	sub.ch = nil
}

// moveTo hands the listeners over to the channel of that name at another node. The old one, which nobody wants any more,
// is unsubscribed in its own time; nobody gets what still arrives there.
func (ch *channel) moveTo(home *node) {
	for len(ch.subs) > 0 {
		sub := ch.subs[len(ch.subs)-1]
		epochs, messages := ch.epoch-sub.epoch, ch.messages-sub.messages
		ch.remove(sub)
		home.listen(ch.name, sub)
		sub.epoch -= epochs
		sub.messages -= messages
		sub.notify()
	}
	ch.node.update(ch)
}

func (ch *channel) begin() {
	ch.epoch++
	ch.notify()
}

func (ch *channel) notify() {
	for _, sub := range ch.subs {
		sub.notify()
	}
}

// update is called with s.mu held after every change of a channel's phase or listeners: it forgets a channel that nobody
// wants and the server does not know, and queues one that needs a command.
func (n *node) update(ch *channel) {
	switch {
	case !ch.wanted() && (ch.phase == absent || ch.phase == astray):
		delete(n.channels, ch.name)
	case ch.due() && !ch.queued:
		ch.queued = true
		n.queue = append(n.queue, ch)
		loop.Poke(n.poke)
	}
}

// next takes up to most channels out of the queue, together with the own one, and marks the command that each of them
// needs as under way.
func (n *node) next(most int) (join, leave []string) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	for len(n.queue) > 0 && len(join)+len(leave) < most {
		ch := n.queue[0]
		n.queue[0], n.queue = nil, n.queue[1:]
		ch.queued = false
		switch {
		case !ch.due():
		case ch.wanted():
			for _, ch := range [...]*channel{ch, n.withOwn(ch)} {
				if ch.due() {
					ch.phase = joining
					join = append(join, ch.name)
				}
			}
		default:
			ch.phase = leaving
			leave = append(leave, ch.name)
		}
	}
	if len(n.queue) == 0 {
		n.queue = nil // gives the memory back
	}
	return join, leave
}

// setPhase takes the named channels from one phase to another; channels in any other phase stay as they are.
func (n *node) setPhase(names []string, from, to phase) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	for _, name := range names {
		if ch := n.channels[name]; ch != nil && ch.phase == from {
			ch.phase = to
			if to == joined && n.link.hears { // somebody may have begun to listen meanwhile
				ch.begin()
			}
			n.update(ch)
		}
	}
}

// detach forgets what the server of the lost connection knew, wakes the listeners that were live and queues every
// wanted channel.
func (n *node) detach() {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.link, n.up = nil, false
	n.dropOwn()
	for _, ch := range n.channels {
		if ch.phase == joined {
			ch.notify()
		}
		ch.phase = absent
		n.update(ch)
	}
	n.s.stray()
}

// onSubscription handles an acknowledgement, or the end of a shard subscription whose slot has moved. It runs alongside
// the connection's reader.
func (n *node) onSubscription(l *link, kind, name string) {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	ch := n.channels[name]
	if n.link != l || ch == nil {
		return
	}
	switch kind {
	case "subscribe", "ssubscribe":
		if ch.phase == joining {
			ch.phase = joined
			if l.hears {
				ch.begin()
			}
			loop.Poke(l.asks)
		}
	case "unsubscribe", "sunsubscribe":
		switch ch.phase {
		case leaving:
			ch.phase = absent
		case joined:
			ch.phase = astray
			ch.notify()
			n.s.stray()
		}
	}
	n.update(ch)
}

// onMessage counts a message and wakes the listeners of its channel, or gives them the message. It runs alongside
// the connection's reader.
func (n *node) onMessage(l *link, name, message string) {
	hearers := make([]func(string), 0, 2)
	n.s.mu.Lock()
	if ch := n.channels[name]; n.link == l && ch != nil {
		ch.messages++
		for _, sub := range ch.subs {
			if sub.hear != nil {
				hearers = append(hearers, sub.hear)
			} else {
				sub.notify()
			}
		}
	}
	n.s.mu.Unlock()
	for _, hear := range hearers {
		hear(message)
	}
}
