package multilock_test

const (
	modelNodes   = 3
	modelClients = 3
	modelOwners  = 4
)

// modelOwner is one owner, of one round; 0 is nobody.
type modelOwner int8

// modelMarker tells the markers of one node apart, and names the texts and votes
// that are pinned to them. Only those are told apart that may be seen again.
type modelMarker int8

const (
	modelUnmarked modelMarker = 0
	modelVoid     modelMarker = 6  // of a text: its marker is nowhere any more
	modelDead     modelMarker = 7  // of a text: void, and the server does not know the script
	modelForeign  modelMarker = 8  // of a node: another node's marker
	modelPlain    modelMarker = 16 // added to a text that reserves no fence numbers where others do
)

// modelData is what a node remembers, and may forget.
type modelData struct {
	holder modelOwner
	left   int8  // ticks of the hold
	stones uint8 // tombstones, a bit for each owner
	fence  int8  // counter
	marker modelMarker
	wait   int8  // of the marker: ticks until the node has a vote
	seen   uint8 // of the marker: a bit for each client whose DeclareNothingHeld has seen it
	most   int8  // of the marker: the longest lease
	size   int8  // of the marker: the number of nodes
}

// modelNode is a node, with all that is known of it and on its way to it.
type modelNode struct {
	modelData
	force   int8      // 1: a ForceUnlock is on its way
	own     int8      // 1: the marker is of this boot and replID
	boot    int8      // 1: of this boot
	replica modelData // as of some time
	kind    modelKindOfNode
	votes   [modelClients]modelMarker // known to each client; 0: it has to look
	cells   [modelOwners]modelCell
}

// modelKindOfNode is what is special about a node.
type modelKindOfNode struct {
	replicated int8 // 1: it has a replica, which may be promoted
	copied     int8 // 1: it may be made a copy of another node
	wrong      int8 // 1: its clock is wrong: a hold or quarantine may end there at any time
	skew       int8 // by which its clock is ahead, in fence numbers
	order      int8 // where the order of the nodes matters
}

func (d *modelData) tick(x *modelRules) {
	if d.left > 0 {
		if d.left--; d.left == 0 {
			d.holder = 0
		}
	}
	d.wait = max(d.wait-1, 0)
	x.older(&d.fence)
}

// voted reports whether the node takes a text pinned to marker.
func (n *modelNode) voted(x *modelRules, text modelMarker) bool {
	switch {
	case x.mistakes.existence:
		return n.marker != modelUnmarked && text != modelDead
	case x.mistakes.evalFallback && n.boot == 0:
		return true
	case x.mistakes.noReplID:
		return text == n.marker && n.boot > 0
	}
	return text == n.marker && n.own > 0
}

// modelSays is a node's answer to an acquire.
type modelSays int8

const (
	modelYes modelSays = iota
	modelHeldBy
	modelGone
	modelNoVote
)

// acquire is quorum_acquire. The fence is what a quorum would
// make a number of: nothing is kept before it is written back.
func (n *modelNode) acquire(x *modelRules, o modelOwner, text modelMarker) (answer modelSays, fence int8) {
	plain := text&modelPlain != 0
	switch {
	case !n.voted(x, text&^modelPlain):
		return modelNoVote, 0
	case n.stones&o.bit() != 0:
		return modelGone, 0
	case n.holder != 0 && n.holder != o:
		return modelHeldBy, 0
	}
	if n.holder == 0 {
		n.holder, n.left = o, x.leaseOf(int(o-1))
	}
	if !x.fences || plain {
		return modelYes, 0
	}
	return modelYes, max(n.fence+1, n.kind.skew)
}

func (o modelOwner) bit() uint8 { return 1 << o }

// renew is quorum_renew for one hold.
func (n *modelNode) renew(x *modelRules, o modelOwner) (ours bool) {
	if n.holder == o {
		n.left = x.leaseOf(int(o - 1))
	}
	return n.holder == o
}

// end is release_each. The last fence number that was used is
// given back to, if it is not 0.
func (n *modelNode) end(o modelOwner, stone bool, last *int8) (ours bool) {
	if ours = n.holder == o; ours {
		n.holder, n.left = 0, 0
		if last != nil {
			n.fence = min(n.fence, *last)
		}
	}
	if stone {
		n.stones |= o.bit()
	}
	return ours
}

// writeFence is quorum_fence.
func (n *modelNode) writeFence(x *modelRules, o modelOwner, last int8) (ours bool) {
	if n.holder != o && !x.mistakes.writesToOthers {
		return false
	}
	n.fence = max(n.fence, last)
	return true
}

// modelLooking is as scripts.CheckMode.
type modelLooking int8

const (
	modelTell modelLooking = iota
	modelMark
	modelActivate
)

// look is quorum_check for a client: the vote, if there is one, and whether the node
// was marked.
func (n *modelNode) look(x *modelRules, how modelLooking, c int8) (vote modelMarker, marked bool) {
	switch {
	case how == modelActivate:
		if n.own > 0 && n.seen&(1<<c) != 0 {
			n.mark(0, x.longest(c), x.size(c))
			marked = true
		}
	case how == modelMark && n.own == 0:
		most := max(n.most, x.longest(c))
		n.mark(x.quarantine(most), most, x.size(c))
		marked = true
	}
	if n.own > 0 && n.wait == 0 && n.fits(x, c) {
		vote = n.marker
	}
	return vote, marked
}

// fits reports whether a node's marker is that of a client's deployment.
func (n *modelNode) fits(x *modelRules, c int8) bool {
	return (n.most == x.longest(c) || x.mistakes.anyLongest) && (n.size == x.size(c) || x.mistakes.anySize)
}

// mark writes a marker with a fresh incarnation.
func (n *modelNode) mark(wait, most, size int8) {
	old := n.marker
	n.marker, n.wait, n.seen, n.most, n.size, n.own, n.boot = modelUnmarked, wait, 0, most, size, 1, 1
	n.forget(old)
	n.marker = 1
	if n.replica.marker == 1 {
		n.marker = 2
	}
}

// forget makes what is pinned to a marker void, if it is nowhere any more.
func (n *modelNode) forget(old modelMarker) {
	if old != n.marker && old != n.replica.marker {
		n.rename(func(m modelMarker) modelMarker {
			if m == old {
				return modelVoid
			}
			return m
		})
	}
}

// rename renames what is pinned to markers.
func (n *modelNode) rename(to func(modelMarker) modelMarker) {
	do := func(m *modelMarker) {
		if *m != modelUnmarked {
			*m = to(*m&^modelPlain) | *m&modelPlain
		}
	}
	for c := range n.votes {
		do(&n.votes[c])
	}
	for i := range n.cells {
		do(&n.cells[i].text)
		do(&n.cells[i].late[0])
		do(&n.cells[i].late[1])
	}
}

// empty is a restart without data, or a FLUSHALL. Under the rules they differ in
// nothing: a script that is known has no vote in the one, and is not known in the
// other.
func (n *modelNode) empty(x *modelRules, restart bool) {
	old := n.marker
	n.modelData = modelData{fence: x.floor()}
	n.own, n.boot = 0, 0
	n.forget(old)
	if restart && x.mistakes.existence {
		n.rename(func(modelMarker) modelMarker { return modelDead })
	}
}

// unmark is the deletion of the marker by hand.
func (n *modelNode) unmark() {
	old := n.marker
	n.marker, n.wait, n.seen, n.most, n.size, n.own = modelUnmarked, 0, 0, 0, 0, 0
	n.forget(old)
}

// promote puts other data in the place of the node's own, under a new replication ID.
func (n *modelNode) promote(d modelData, samePlace bool) {
	old := n.marker
	n.modelData, n.own = d, 0
	if !samePlace || n.marker != old {
		n.boot = 0
	}
	n.forget(old)
}

// sync brings the replica up to date.
func (n *modelNode) sync() {
	old := n.replica.marker
	n.replica = n.modelData
	n.forget(old)
}
