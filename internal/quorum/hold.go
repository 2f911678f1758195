package quorum

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// part is what is known of a hold on one node.
type part struct {
	asked  bool  // it may be there, or was asked for
	there  bool  // as far as known
	flying uint8 // calls that may put it there and are waited for
	doubt  uint8 // calls that may put it there and have not been answered: they may still arrive
	tried  bool  // a release has not been answered: it may have ended the hold there
	made   bool  // it was there when the hold's fence number was made, and nothing was sent since that may put it there again
	sure   bool  // it was made and there, with nothing on its way, when the hold ended
}

// hold is one owner's hold of a key, from its round on to its end.
type hold struct {
	key, owner string        // immutable
	lease      time.Duration // immutable

	mu       sync.Mutex
	landing  sync.Cond // a call is not waited for any more
	atLast   []func()  // by node: run when nothing is on its way there any more; nil until the round is given up
	parts    []part    // by node
	entries  int       // as they should be counted on every node
	uneven   bool      // a node may count them otherwise
	last     int64     // the fence number that was written back; 0: none
	won      bool      // a quorum said yes
	over     bool      // released or given up: nothing of it is put anywhere any more
	released int       // nodes that have released it
	notOurs  int       // nodes that had nothing to release
	heard    int       // most listeners that a node told of the release
}

func (q *Quorum) newHold(key, owner string, lease time.Duration) *hold {
	h := &hold{key: key, owner: owner, lease: lease, parts: make([]part, len(q.nodes))}
	h.landing.L = &h.mu
	return h
}

// start notes that a node is about to be asked; false if it must not be any more.
func (h *hold) start(n *node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	h.parts[n.index].flying++
	return true
}

// landed notes that the answer has come, or is not waited for any more.
func (h *hold) landed(n *node) {
	h.mu.Lock()
	h.parts[n.index].flying--
	if h.over {
		h.landing.Broadcast()
	}
	var last func()
	if h.atLast != nil && h.parts[n.index].flying == 0 {
		last, h.atLast[n.index] = h.atLast[n.index], nil
	}
	h.mu.Unlock()
	if last != nil {
		last()
	}
}

// whenLanded runs f when nothing is on its way to a node, or not waited for; at once if
// that is so. The hold is over.
func (h *hold) whenLanded(n *node, f func()) {
	h.mu.Lock()
	flying := h.parts[n.index].flying > 0
	if flying {
		if h.atLast == nil {
			h.atLast = make([]func(), len(h.parts))
		}
		h.atLast[n.index] = f
	}
	h.mu.Unlock()
	if !flying {
		f()
	}
}

// awaitLanding returns when nothing is on its way to a node, or not waited for: a
// release need not leave a tombstone for what it knows to have arrived.
func (h *hold) awaitLanding(n *node) part {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.parts[n.index].flying > 0 {
		h.landing.Wait()
	}
	return h.parts[n.index]
}

// send notes, before a call that may put the hold on a node, that it is under way;
// false if it must not be sent any more.
func (h *hold) send(n *node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	p := &h.parts[n.index]
	p.asked, p.made = true, false
	if p.doubt < math.MaxUint8 {
		p.doubt++
	}
	return true
}

// forgotten says whether the hold is over and nothing of it can be on a node.
func (h *hold) forgotten(n *node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over && h.parts[n.index] == (part{})
}

// answered notes that such a call was answered.
func (h *hold) answered(n *node, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := &h.parts[n.index]; p.doubt > 0 { // else a release has settled it
		p.there = there
		p.doubt--
	}
}

// part is what is known of the hold on a node.
func (h *hold) part(n *node) part {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parts[n.index]
}

// holds are the living holds, and those whose round is under way, by owner.
type holds struct {
	seed   maphash.Seed
	shards [32]struct {
		mu sync.Mutex
		m  map[string]*hold
	}
}

func (s *holds) init() {
	s.seed = maphash.MakeSeed()
	for i := range s.shards {
		s.shards[i].m = make(map[string]*hold)
	}
}

func (s *holds) put(h *hold) {
	shard := &s.shards[maphash.String(s.seed, h.owner)%uint64(len(s.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shard.m[h.owner] = h
}

func (s *holds) get(owner string) *hold {
	shard := &s.shards[maphash.String(s.seed, owner)%uint64(len(s.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return shard.m[owner]
}

func (s *holds) drop(owner string) {
	shard := &s.shards[maphash.String(s.seed, owner)%uint64(len(s.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	delete(shard.m, owner)
}
