// Package quorum is an engine's backend on several independent nodes: it makes one
// hold of several, and one answer of several answers. The page of package multilock
// tells the algorithm and what it promises; this one, who does what.
//
// # Who is authoritative
//
// Each node is, for its own part of a hold; a quorum of nodes, for the hold. What
// is kept here about nodes (a part is there, a node is away, has a vote) only says
// whom to ask: no answer is ever made from it, but for "no".
//
// # A round, and what becomes of it
//
//	     all nodes are asked                        round.go
//	             │
//	enough ──────┴────── not enough possible
//	  │ fence agreed on,         │                  fence.go
//	  │ and written back         │
//	  ▼                          ▼
//	hold ── lost ──▶ released   given up            release.go
//	  │  ▲             on all nodes, late answers too
//	  │  │ renewed by a quorum                      renew.go
//	  │  └──┘
//	  │ missing on a node: asked again              repairer.go
//	  ▼
//	released: a quorum of answers is waited for     release.go
//
// A round has an owner of its own, which enters once in its life. Whatever may
// still put it on a node (an answer that has not come) is remembered in its part of
// the hold, and its release leaves a tombstone there. Calls to a node go out on one
// connection, in order, so that a release mostly finds what it ends; acquires that
// come at once share a call (gather.go, ask.go), and so do releases without fence
// numbers to give back.
//
// # Votes
//
// guard.go keeps, for each node, the scripts with which it votes, which name one
// boot, one replication ID and one epoch of it. "No vote" throws them away and looks again.
// Who finds a node unmarked asks the others first: it marks none for another deployment
// than theirs. Each yes names the server's process, so that two clients of one server
// are one vote, wherever their addresses lead just now.
// An acquire counts only by them; a renewal's yes only with their marker; a no
// always.
//
// # Nodes that do not answer
//
// Every call to a node has its own bound, and waits for no other node. After three
// calls in a row without an answer a node counts as away: it is not asked any more,
// and costs nobody any time, until its repairer has heard of it again. The repairer, a
// goroutine that lives as long as there is something to do, also does what the node
// has missed: it adds holds that a quorum has, and ends those that are over, for as
// long as they could last.
package quorum
