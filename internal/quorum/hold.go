package quorum

import (
	"math"
	"sync"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// state is the known state of a hold on one node.
type state uint8

const (
	absent  state = iota // nothing was sent, or the hold has ended there
	asked                // the node was asked, and has not said that it has the hold
	present              // the node has the hold, as far as known
	minted               // the node has had the hold since its fence number was made, and was not asked again
)

// part is a hold on one node. Its zero value means that the node cannot have anything of it.
type part struct {
	state  state
	flying uint8 // acquires with a caller that still waits for the answer
	doubt  uint8 // acquires sent and not answered: they may still arrive
	tried  bool  // a call to end the hold, without an answer, may have ended it
	renews bool  // a renewal without an answer may still arrive
}

// possible reports whether the node has the hold, or may come to have it.
func (p part) possible() bool { return p.state >= present || p.flying > 0 || p.doubt > 0 }

// hold is one owner's hold of a key, from its round to its end.
type hold struct {
	wire.AcquireRequest // immutable

	mu        sync.Mutex   // guards the rest
	parts     []part       // by node
	waiting   [][]ending   // by node: ends that wait for the acquires flying there; nil: none has
	entries   wire.Entries // that every node should have; Count 0: they were never set
	fence     int64        // the last fence number, which is written back; 0: none
	won       bool         // a quorum said yes
	over      bool         // released or given up: no node gets it any more
	notify    bool         // its end wakes waiters
	used      int64        // the last fence number used; 0: not known, so none is given back
	released  int          // nodes that have released it
	notOurs   int          // nodes that had nothing to release
	listeners int          // most listeners that one node has notified
}

func (q *Quorum) newHold(a wire.AcquireRequest) *hold {
	return &hold{AcquireRequest: a, parts: make([]part, len(q.nodes))}
}

// markFlying notes that a node is about to be asked; false if the hold is over.
func (h *hold) markFlying(n *node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.parts[n.index].flying++
	return true
}

// markSent notes that a call which may put the hold on a node is about to go out; false if the
// hold is over.
func (h *hold) markSent(n *node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	p := &h.parts[n.index]
	p.state = max(p.state, asked)
	if p.doubt < math.MaxUint8 {
		p.doubt++
	}
	return true
}

// replied notes the answer to such a call.
func (h *hold) replied(n *node, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.parts[n.index]
	if p.doubt == 0 { // an end has decided it
		return
	}
	p.doubt--
	p.state = asked
	if there {
		p.state = present
	}
}

// landed notes that an acquire no longer flies, and returns the ends that waited for that.
func (h *hold) landed(n *node) (due []ending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.parts[n.index]
	if p.flying--; p.flying > 0 || h.waiting == nil {
		return nil
	}
	due, h.waiting[n.index] = h.waiting[n.index], nil
	return due
}

// mayRenew notes that a renewal on a node was not answered.
func (h *hold) mayRenew(n *node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := &h.parts[n.index]; *p != (part{}) {
		p.renews = true
	}
}

// lacks notes that a node has denied a hold.
func (h *hold) lacks(n *node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.parts[n.index]
	p.state = min(p.state, asked)
}

func (h *hold) part(n *node) part {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parts[n.index]
}

// counted are the entries that each node should have; Count 0: they were never set.
func (h *hold) counted() wire.Entries {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.entries
}

// markOver marks a hold as over, and returns the nodes that may know of it. Its end wakes waiters
// if notify says so. It also wakes them if so many nodes may have it that others can have taken
// it for a hold. used is the last fence number used, or 0.
func (q *Quorum) markOver(h *hold, notify bool, used int64) (targets []*node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over, h.used = true, used
	possible := 0
	for i, n := range q.nodes {
		if h.parts[i].possible() {
			possible++
		}
		if h.parts[i] != (part{}) {
			targets = append(targets, n)
		}
	}
	h.notify = h.notify || notify || possible >= q.need
	return targets
}

// await keeps back the end of a hold on a node while an acquire is flying there; false if none
// is.
func (h *hold) await(n *node, end ending) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.parts[n.index].flying == 0 {
		return false
	}
	if h.waiting == nil {
		h.waiting = make([][]ending, len(h.parts))
	}
	h.waiting[n.index] = append(h.waiting[n.index], end)
	return true
}

// toEnd says how a node must end the hold; need is false if there is nothing to end. It leaves
// a tombstone only if an acquire may still arrive. It gives fence numbers back only if the node
// has definitely had the hold since they were made: otherwise others may have had the lock,
// with numbers of their own.
func (h *hold) toEnd(n *node) (how wire.ReleaseRequest, need bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.parts[n.index]
	if !h.notify && !p.possible() { // a failed round that the node has refused
		*p = part{}
	}
	how = wire.ReleaseRequest{Key: h.Key, Owner: h.Owner, Notify: h.notify, Doubt: p.doubt > 0}
	if p.state == minted && p.doubt == 0 {
		how.LastFence = h.used
	}
	return how, *p != part{}
}

// live reports whether a quorum has the hold and it is not over.
func (h *hold) live() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.won && !h.over
}

// forgotten reports whether the hold is over and a node cannot have anything of it.
func (h *hold) forgotten(n *node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over && h.parts[n.index] == (part{})
}

// holdOf is the hold of an owner, or nil.
func (q *Quorum) holdOf(owner string) *hold {
	h, _ := q.holds.Load(owner)
	found, _ := h.(*hold)
	return found
}
