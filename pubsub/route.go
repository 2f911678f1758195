package pubsub

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/loop"
)

// home returns the node on which a channel of this name is to be subscribed. s.mu is held, and s is not closed.
func (s *Subscriber) home(name string) *node {
	addr := ""
	if s.slots != nil && s.placing {
		addr = s.slots.Node(name)
	}
	n := s.nodes[addr]
	if n == nil {
		n = newNode(s, addr)
		s.nodes[addr] = n
		if n.nobody() {
			s.stray()
		} else {
			s.loops.Go(n.run)
		}
	}
	return n
}

// stray makes route look immediately where channels belong.
func (s *Subscriber) stray() { loop.Poke(s.strayed) }

// route brings each channel of a Cluster to the master of its slot, and ends with Close. It asks for the slots again
// when a channel strays, repeatedly until all are where they belong, and now and then after that: a node that has lost
// its slots may be paused or cut off from the others, and does not say so.
func (s *Subscriber) route() {
	unsettled, settled := loop.Backoff{}, loop.Backoff{First: s.pace.most}
	for s.ctx.Err() == nil {
		s.learn()
		moved, all := s.reroute()
		if moved {
			unsettled.Last = 0
		}
		if !all {
			settled.Last = 0
			loop.Sleep(unsettled.Below(s.pace.unsettled), s.ctx.Done())
			continue
		}
		unsettled.Last = 0
		select {
		case <-s.strayed:
			settled.Last = 0
		case <-time.After(settled.Below(s.pace.settled)):
		case <-s.ctx.Done():
		}
	}
}

// learn asks where the slots are, and before the first time whether channels are sharded.
func (s *Subscriber) learn() {
	ctx, cancel := context.WithTimeout(s.ctx, s.pace.answer)
	defer cancel()
	if !s.placing { // which only route changes
		sharded, err := s.askSharded(ctx)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.sharded, s.placing = sharded, true
		s.mu.Unlock()
		if len(s.slots.Masters()) > 0 { // others have asked
			return
		}
	}
	_ = s.slots.Refresh(ctx) // while nobody answers, channels stay where they are
}

// reroute moves each channel to the node that has its slot, and has those asked for again that were refused there. It
// reports whether any moved, and whether all are there, with a connection. Nodes that are no longer masters end.
func (s *Subscriber) reroute() (moved, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false, true
	}
	all = true
	for _, n := range s.nodes {
		for _, ch := range n.channels {
			if !ch.wanted() {
				continue
			}
			home := s.home(ch.name)
			all = all && home.up && ch.phase != astray
			switch {
			case home != n:
				moved = true
				ch.moveTo(home)
			case ch.phase == astray && !n.nobody():
				ch.phase = absent
				n.update(ch)
			}
		}
	}
	masters := s.slots.Masters()
	for addr, n := range s.nodes {
		if len(n.channels) == 0 && !slices.Contains(masters, addr) {
			n.cancel()
			delete(s.nodes, addr)
		}
	}
	return moved, all
}
