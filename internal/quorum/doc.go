// Package quorum is an engine's backend on several independent nodes. It makes one hold
// out of the holds on the nodes, and one answer out of their answers. Package multilock
// documents the algorithm and its promises; this page says which part does what.
//
// # What is authoritative
//
// Each node is authoritative for its own part of a hold, and a quorum of nodes for the hold.
// The memory of this package (the node has the hold, is unreachable, has a vote) only says
// which nodes to ask. The only answer it ever gives from memory is "no".
//
// # A round
//
// A round is one try at a quorum, by an owner that is used only once.
//
//	Acquire asks all nodes at once                     round.go, ask.go   quorum/acquire.lua
//	   │
//	   ├─ enough say yes
//	   │     with fencing: the nodes' counters and clocks make a number,
//	   │     which is written back to a quorum         fence.go           quorum/fence.lua
//	   │     then the hold is handed out
//	   │        ├─ renewed by a quorum                 renew.go           quorum/renew.lua
//	   │        ├─ added on nodes that lack it         repair.go          quorum/acquire.lua
//	   │        └─ released, or lost ─┐
//	   │                              │
//	   ├─ votes are split, most of them are ours: asks the others again
//	   │
//	   └─ enough cannot say yes ──────┴─ ends          end.go             release_each
//
// A round returns as soon as its result is certain. Nodes that answer later, or never, still
// belong to the hold: hold.go keeps, for each node, the state of the hold there (absent, asked,
// present, minted) and how many acquires may still put it there.
//
// # The end of a hold
//
// Released, lost, cleaned up or failed: a hold ends in one way, on every node that may know of
// it, and nothing puts it on a node after that. While an acquire is under way to a node, the
// end waits for its answer, as calls to a node go out in order on one connection. If no answer
// comes, the acquire may still arrive, so the end leaves a tombstone, which keeps that acquire
// from taking anything. A release returns when a quorum has answered; the other nodes end the
// hold in the background. The end of a hold wakes waiters; that of a failed round does so only
// if others can have taken it for a hold.
//
// # Votes
//
// An acquire counts only on a node that has a vote. guard.go keeps, for each node, the script
// with which it votes; its text names one boot, one replication ID and one incarnation of the node
// (quorum/acquire.lua). The answer "no vote" discards it, and the next call checks the node
// (check.go, quorum/check.lua). A check that finds no marker first asks the other nodes, so
// that it does not mark a node for a different deployment. A yes to a renewal counts only with
// the marker of the vote, a no always. Each yes names the server's process, so that two
// clients of one server are one vote, wherever their addresses lead at the moment.
//
// # Nodes that do not answer
//
// Every call to a node is bounded in time, and no call waits for another node. After three
// calls in a row without an answer a node counts as away: no lock call asks it, or loses time to
// it, until its repairer has reached it or it has confirmed a subscription. The repairer is a
// goroutine that lives as long as the node has jobs. It adds holds that a quorum has, and ends
// those that are over, for as long as they could last.
//
// # Batches
//
// Acquires that are about to be sent to a node at the same time go out as a batch, and so do
// ends (batch.go). With 64 goroutines, a batch has about twenty.
//
// # The files
//
// From the calls of the engine and of operators down to what the others build on:
//
//	round.go, ask.go, fence.go, renew.go          what is asked of nodes
//	admin.go, list.go                             what operators ask of them
//	end.go, repair.go, hold.go                    how holds end, and are made complete
//	guard.go, check.go                            votes
//	batch.go, subscription.go, each.go, node.go   calls to nodes, and messages of them
//	quorum.go, errors.go                          the state of a locker, and judgements
package quorum
