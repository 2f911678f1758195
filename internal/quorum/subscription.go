package quorum

import (
	"github.com/holdfast-go/holdfast/internal/racing"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// subscription combines the subscriptions to the releases of a key on all nodes.
type subscription struct {
	wake  chan struct{}
	parts []nodeSubscription
	need  int
}

// nodeSubscription is the one on one node.
type nodeSubscription struct {
	*pubsub.Subscription
	node  *node
	epoch uint64 // as last seen
}

// Subscribe subscribes to the releases of key on all nodes.
func (q *Quorum) Subscribe(key string) racing.Subscription {
	s := &subscription{wake: make(chan struct{}, 1), need: q.lostAt()}
	for _, n := range q.nodes {
		s.parts = append(s.parts, nodeSubscription{n.subscriber.SubscribeOn(scripts.Channel(key), s.wake), n, 0})
	}
	return s
}

// State is Live when no release can be missed: a quorum of nodes publishes a release, and then
// at least one of them has a live subscription. Messages of one release from several nodes
// count once. But each is a reason for an attempt, as the earlier nodes may have been too few;
// after a split vote, none is. A node that has confirmed a subscription is not away.
func (s *subscription) State() (all pubsub.State) {
	live := 0
	for i := range s.parts {
		part := &s.parts[i]
		one := part.State()
		if one.Epoch > part.epoch {
			part.epoch = one.Epoch
			part.node.back()
		}
		if one.Live {
			live++
		}
		all.Epoch += one.Epoch
		all.Messages = max(all.Messages, one.Messages)
		all.Notified += one.Notified
	}
	all.Live = live >= s.need
	return all
}

func (s *subscription) Wake() <-chan struct{} { return s.wake }

func (s *subscription) Close() {
	for _, part := range s.parts {
		part.Close()
	}
}
