package quorum

import (
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// subscription is one to the releases of a key on all nodes, as if they were one.
type subscription struct {
	wake  chan struct{}
	parts []*pubsub.Subscription
	need  int
}

// Subscribe subscribes to the releases of key on all nodes.
func (q *Quorum) Subscribe(key string) engine.Subscription {
	s := &subscription{wake: make(chan struct{}, 1), need: q.lostAt()}
	for _, n := range q.nodes {
		s.parts = append(s.parts, n.subscriber.SubscribeOn(scripts.Channel(key), s.wake))
	}
	return s
}

// State is Live when no release can be missed: a release is published on a quorum of nodes,
// and one of those is subscribed to then. Messages of one release from several nodes count
// once. But each is a reason for a probe, as the nodes before may have been free alone.
func (s *subscription) State() (all pubsub.State) {
	live := 0
	for _, part := range s.parts {
		one := part.State()
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
