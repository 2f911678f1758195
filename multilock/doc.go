// Package multilock locks keys on a quorum of independent Redis masters, so that no Redis is
// a single point of failure. It also locks several keys together ([LockAll]). The contract
// of a lock is that of package rlock.
//
//	locker, err := multilock.New(clients)          // five clients of five masters; Open makes them itself
//	err = locker.Do(ctx, "order:42", func(ctx context.Context) error { … })
//
// # The algorithm
//
// It is Redlock, from Redis' page "Distributed Locks with Redis", in five steps:
//
//  1. Note the time, on the monotonic clock.
//  2. Ask all nodes in parallel, with one owner, each for at most [WithNodeTimeout].
//  3. The lock is held if a quorum (n/2+1 of n) said yes, with [WithClockFaults] some
//     more, and lease − elapsed − margin is positive, with margin = lease/100 + 2 ms
//     (Redlock: drift). That is Deadline: the lease from step 1 on, less the margin.
//  4. A renewal works the same way, with a time of its own, and needs as many votes.
//  5. After a failure, tell all nodes that were asked to forget the owner, and try again
//     with a new owner, after a random delay that grows with each split vote. The message
//     of another release cuts the delay: a waiter that has let as many releases pass as is usual
//     tries immediately, and the others up to four round trips later, as waiters that ask
//     at the same moment split the votes. A locker learns what is usual for each of 64
//     groups of keys.
//
// Where lockers split the votes, Redlock makes all of them give up. Here the one with most
// votes (of equals, by a hash of the owners) keeps them, and asks the other nodes again up
// to three times while the others give up. The votes of a locker that died in its round
// count until its lease has ended; if it has most of them, all others give up, as in
// Redlock. This is safe: a node has one owner at a time, and the deadline counts from step
// 1 on.
//
// Lock returns when enough nodes have said yes, and does not wait for the last answer. A
// round fails when enough can no longer say yes, and it is known whether others have the
// lock. Lock asks the missing nodes again immediately, in the background, as a lease on exactly
// a quorum of nodes survives the failure of none of them. The next renewal also adds the
// lease, or a nested entry, on a node that lacks it; such a node does not count as a yes
// for that renewal. A renewal is one call to each node for many leases. Unlock releases on
// all nodes and waits for a quorum of them.
//
// # Nodes that forget
//
// A node that restarts empty votes for a second holder: a client that follows Redlock's
// five steps to the letter lets two in whenever that happens to one of three nodes. The
// page's cure is a delayed restart. This package enforces it from the lockers, at the cost
// of a GET for each call that acquires or renews, and of an INFO for each that acquires,
// together about 5 µs on the node:
//
//	marker   the key holdfast_node on each node names its process, its replication ID
//	         (which changes when a replica is promoted), a random incarnation, the time since
//	         which the node has been up without a gap, and the settings that all lockers
//	         share: the longest lease and the number of nodes
//	check    a locker that finds no marker, or one of another process or replication ID,
//	         writes a new one: from then on the node has no vote for the longest lease of
//	         the deployment ([WithMaxLease]), its quarantine, for all lockers alike
//	vote     the script that acquires carries marker and replication ID in its text, and
//	         compares both before it does anything. A node that restarted does not
//	         know the script (caches are not kept from Redis 7 on), one that was
//	         emptied has lost the marker, one that was promoted has another replication ID
//	renewal  the yes of a node counts only if the node also has the marker; its no
//	         always counts
//
// So a restart, a FLUSHALL or a failover costs a vote for one longest lease, and nothing else. New
// nodes have no vote until then either: Lock waits and logs why, TryLock says so in its error. If no
// lease can be held, as on new nodes, [Locker.DeclareNothingHeld] gives them their vote immediately. A node
// that gets its first replica, or loses its last one for an hour, changes its replication ID, which also
// costs its vote.
//
// The guard does not see a node's memory being rolled back in place, as run id and marker
// come back with it: by a snapshot of its virtual machine, DEBUG RELOAD NOSAVE or DEBUG
// LOADAOF (off by default), or two SWAPDBs. Before clients can reach such a node again, restart its
// redis-server or delete the key holdfast_node there: both begin a quarantine. A backup is
// safe, as restoring it needs a restart.
//
// # What it promises, and what not
//
// Two leases of a key are never both alive as long as the nodes' clocks do not jump,
// whatever else happens to any number of nodes: they may be unavailable, stand still,
// restart, be emptied, or promoted once the old master takes no more writes (otherwise two servers
// vote as one node). Clocks may differ; they must run at rates that differ by
// at most 1 %.
//
// If a node's clock jumps ahead, the lease is gone there, and the node votes for another.
// A lease survives that once every working node has it and its last renewal: as long as
// the nodes that lack it and the nodes with a wrong clock are together no more than
// n − quorum, one of three, two of five. But Lock returns a lease, and a renewal counts,
// when a quorum has it, and at that moment one clock may let a second holder in. A missing
// node gets the lease when it answers or is asked again. That is immediately, unless a rival's
// round has left something there: undoing it takes up to one lease if the rival died. A clock
// that has jumped counts as wrong until the leases of that moment have ended.
//
// [WithClockFaults] closes that gap. Each lease and each renewal then needs k more votes
// than a quorum, so the clocks of any k nodes may jump at any moment, and the other nodes
// still do not let a second holder in. A renewal with fewer votes does not move the
// deadline, but asks the missing nodes again. Then n − quorum − k nodes may be missing:
// with five nodes and k = 1, one.
//
// A process that stands still past its deadline finds that out when it checks (Deadline,
// Err; not if the machine slept, and its clock with it). But what it was about to do comes before that
// check: where that matters, the resource must check a fence ([holdfast.WithFencing]).
//
// A fence is larger than all fences that a quorum knows of, and than the time, so that
// fences grow even when nodes have lost their counters. The time is one on which the clocks
// of a quorum agree within half the longest lease; the true ones must agree within a third
// of it. A node whose clock does not agree makes no number and has no vote on one, and the
// log says so.
//
//	clocks                           fences
//	a minority is wrong              grow
//	- and such a node loses its      a number made within the longest lease after that may
//	  counters, and votes all the    be smaller than the one before
//	  same
//	a quorum is wrong, and agrees    follow these clocks
//	- and is set right               grow from there
//	- and all nodes then lose their  go back
//	  counters, even one by one
//
// A node loses its counters, and votes all the same, after a jump beyond [holdfast.WithFenceExpiry] and
// back, or after a restart and a jump that ends its quarantine.
//
// Martin Kleppmann [1] holds that an algorithm which relies on bounded delays and clocks
// must not guard correctness, since a pause or a jump of a clock lets two in. Without
// fencing tokens, which Redlock does not make, no lock is safe. Salvatore Sanfilippo,
// antirez, [2] answers that Redlock checks the time after the votes are in, so that a delay
// before that point does no harm, and that a pause after it hurts every lock that expires.
// Clocks need only run at about the right rate, and operators can keep nodes from jumps.
// Both are right: the deadline here is antirez' check, renewed, and the fence is
// Kleppmann's token. A fence costs a second round trip, which writes the number of a quorum
// back to a quorum before Lock returns; without [holdfast.WithFencing] it costs nothing.
//
// [1] "How to do distributed locking", 2016:
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
//
// [2] "Is Redlock safe?", 2016: http://antirez.com/news/101
//
// One Redis with appendfsync always, or with replicas that acknowledge (WAIT, which the
// kinds on one Redis offer by [holdfast.WithReplicas]), is simpler. It is enough if you can bear minutes
// without locks when that server is gone. A quorum is for users who cannot.
//
// # Several keys
//
// [LockAll] and [DoAll] take keys of any lock kinds, even on different Redises, all or
// nothing: one after another, in an order that is the same in every process.
package multilock
