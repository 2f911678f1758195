package pubsub

import "github.com/holdfast-go/holdfast/internal/loop"

// Subscription is one listener on one channel. All methods may be called concurrently.
type Subscription struct {
	s    *Subscriber   // immutable
	wake chan struct{} // immutable; one slot
	hear func(string)  // immutable; nil: messages only wake

	// Guarded by s.mu.
	ch       *channel // nil after Close
	index    int      // in ch.subs
	epoch    uint64   // ch.epoch before the first one that counts for this listener
	messages uint64   // ch.messages at Subscribe
}

// State is what a Subscription knows at one instant.
type State struct {
	Epoch    uint64 // 0 until the subscription was live for the first time, then one more each time that it becomes live
	Live     bool   // confirmed, and the present connection is to the server of the client's calls, as far as that can be asked
	Messages uint64 // messages received since Subscribe, over all epochs
	Notified uint64 // as Messages; of several subscriptions that are shown as one, the sum
}

// Wake returns the channel that wakes the listener when its State has changed: live, message received, connection
// lost, live again, Subscriber closed. It has one slot: changes coalesce, so look at State after each wake-up. It is
// never closed. If several goroutines receive from it, each wake-up reaches one of them.
func (sub *Subscription) Wake() <-chan struct{} { return sub.wake }

// State returns the present state, without I/O. Once Live has been seen true in an epoch, every message that Redis sends
// to the channel afterwards is counted and wakes the listener, or the loss of the connection does. A message that was
// published while Live was false may be lost: look at what it would have told you after every new Epoch.
// After Close the zero State is returned.
func (sub *Subscription) State() State {
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	if sub.ch == nil {
		return State{}
	}
	messages := sub.ch.messages - sub.messages
	return State{Epoch: sub.ch.epoch - sub.epoch, Live: sub.ch.live(), Messages: messages, Notified: messages}
}

// Close ends the subscription without waiting; no wake-up is sent from then on. The last Close of a channel makes the
// Subscriber unsubscribe it soon after: one UNSUBSCRIBE, shared with other channels. Close may be called repeatedly.
func (sub *Subscription) Close() {
	sub.s.mu.Lock()
	defer sub.s.mu.Unlock()
	sub.end()
}

// end is Close with s.mu held.
func (sub *Subscription) end() {
	if ch := sub.ch; ch != nil {
		ch.remove(sub)
		ch.node.update(ch)
	}
}

func (sub *Subscription) notify() { loop.Poke(sub.wake) }
