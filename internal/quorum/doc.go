// Package quorum is an engine's backend on several independent nodes: it makes one
// hold of the holds on several nodes, and one answer of their answers. Package multilock
// tells the algorithm and what it promises; this page, which part does what.
//
// # What is authoritative
//
// Each node is, for its own part of a hold; a quorum of nodes, for the hold. What this
// package remembers of nodes (the hold is there, the node is away, it has a vote) only says
// which of them to ask. Of all answers, only a "no" is ever given from memory.
//
// # A round
//
// A round is one try at a quorum, by an owner that is used once in its life.
//
//	Acquire asks all nodes at once                     round.go, ask.go   quorum/acquire.lua
//	   │
//	   ├─ enough say yes
//	   │     with fencing: the nodes' counters and clocks make a number,
//	   │     which is written back to a quorum         fence.go           quorum/fence.lua
//	   │     then the hold is handed out
//	   │        ├─ renewed by a quorum                 renew.go           quorum/renew.lua
//	   │        ├─ added on nodes that miss it         repair.go          quorum/acquire.lua
//	   │        └─ released, or lost ─┐
//	   │                              │
//	   └─ enough cannot say yes ──────┴─ ends          end.go             end_each.lua
//
// A round returns as soon as its result is certain. Nodes that answer later, or never, belong
// to the hold all the same: hold.go keeps, for each node, what is known of the hold there (not
// asked, asked, present) and how many acquires may still put it there.
//
// # The end of a hold
//
// Released, lost, cleaned up or failed: a hold ends in one way, on every node that may know of
// it. From then on nothing puts it on a node any more. While an acquire is under way to a node,
// its end waits for the answer, as calls to a node go out in order on one connection. Where the
// answer does not come, the acquire may still arrive, and the end leaves a tombstone,
// which keeps that acquire from taking anything. A release returns when a quorum has answered;
// the others end the hold in the background. Waiters are notified, but not of a round that
// cannot have been taken for a hold.
//
// # Votes
//
// An acquire counts only on a node that has a vote. guard.go keeps, for each node, the scripts
// with which it votes; they name one boot, one replication ID and one epoch of the node
// (quorum/acquire.lua). The answer "no vote" discards them, and the next call checks the node
// (check.go, quorum/check.lua). A check that finds no marker asks the other nodes first: it does
// not mark a node for another deployment than theirs. A renewal's yes counts only with the
// marker of the vote, a no always. Each yes names the server's process, so that two
// clients of one server are one vote, wherever their addresses lead just now.
//
// # Nodes that do not answer
//
// Every call to a node has its own bound, and no call waits for another node. After
// three calls in a row without an answer a node counts as away: it is not asked any more, and
// costs no caller any time, until its repairer has reached it. The repairer is a goroutine that
// lives as long as there is something to do. It adds holds that a quorum has, and ends those
// that are over, for as long as they could last.
//
// # Calls that share a round trip
//
// Acquires that are about to be sent to a node at the same time share a call, and so do ends
// (batch.go): with 64 goroutines, twenty of them.
package quorum
