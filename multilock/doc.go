// Package multilock locks keys on a quorum of independent Redis masters, for users
// who do not want one Redis to be the single point of failure; and several keys at
// once ([LockAll]). The contract of a lock is that of package rlock.
//
//	locker, err := multilock.New(clients)          // five clients of five masters
//	err = locker.Do(ctx, "order:42", func(ctx context.Context) error { … })
//
// # The algorithm
//
// It is Redlock, of Redis' page "Distributed Locks with Redis", in five steps:
//
//  1. Note the time, on the monotonic clock.
//  2. Ask all nodes at once, with one owner, each for at most [WithNodeTimeout].
//  3. The lock is held if a quorum (n/2+1 of n) said yes, with [WithClockFaults] some
//     more, and lease − elapsed − drift is positive, drift = lease/100 + 2 ms. That is
//     Deadline: the lease from step 1 on, less the drift.
//  4. A renewal is the same, with a time of its own, and needs as many.
//  5. Where it fails, tell all nodes that were asked to forget the owner, and try again
//     with a new owner, after a random delay that grows with each failure. A release
//     that is heard cuts the delay to a random one that is small unless many of the
//     last attempts have failed: waiters that are woken at once would split the votes
//     again.
//
// Lock returns when enough nodes have said yes and not when the last one has answered; a
// round fails when they cannot be enough any more, and it is known whether others have
// the lock. The missing nodes are asked again at once, in the background: a lease on
// exactly a quorum of nodes survives the failure of none. The next renewal also adds
// the lease, or a nested entry, on a node that lacks it; such a node does not count as a
// yes for that renewal. Renewals are one call to each node for many leases. Unlock releases on all
// nodes and waits for a quorum of them.
//
// # Nodes that forget
//
// A node that restarts empty votes for a second holder: a client by the letter of
// the paper's five steps lets two in whenever that happens to one of three nodes.
// The paper's cure is a delayed restart, and this package enforces it from the
// clients, at no cost but a GET and 2 µs for each call:
//
//	marker   the key holdfast_node on each node names its process, its replication ID
//	         (which changes when a replica is promoted), a random epoch, since when the
//	         node has been up without a gap, and what all clients have to agree on: the
//	         longest lease and the number of nodes
//	check    a client that finds no marker, or one of another process or replication ID,
//	         writes a new one: from then on the node has no vote for the longest lease of
//	         the deployment ([WithMaxLease]), for all clients alike
//	vote     the script that acquires carries marker and replication ID in its text, and
//	         compares both before it does anything. A node that restarted does not
//	         know the script (caches are not kept from Redis 7 on), one that was
//	         emptied has lost the marker, one that was promoted has another replication ID
//	renewal  that a lease is there counts only if the marker is there as well; that it
//	         is not there counts always
//
// So a restart, a FLUSHALL or a fail-over costs a vote for one longest lease, and
// nothing else. New nodes have no vote until then either: Lock waits and logs why,
// TryLock says so in its error. Where nothing can be held, as on new nodes,
// [Locker.Bootstrap] with [NothingHeld] gives them their vote at once. A node that gets
// its first replica, or loses its last one for an hour, changes its replication ID, and
// that costs its vote as well.
//
// What rolls a node's memory back in place is not seen, as run id and marker come back
// with it: a virtual machine that is set back to a snapshot, DEBUG RELOAD NOSAVE or
// DEBUG LOADAOF (off by default). Before such a node can be reached again, restart its
// redis-server or delete the key holdfast_node there: either is a quarantine. A backup
// needs a restart to be put back, and is safe by that.
//
// # What it promises, and what not
//
// Two leases of a key are never both alive as long as the nodes' clocks do not jump,
// whatever else happens to nodes, and to how many: they may be away, stand still,
// restart, be emptied or promoted. Clocks may differ; they must run at rates within
// 1 %.
//
// On a node whose clock jumps ahead a lease is gone, and the node votes for another.
// A lease survives that once every working node has it and its last renewal: as long as
// the nodes that miss it and the nodes whose clock is wrong are together no more than
// n − quorum, one of three, two of five. But a lease is handed out, and a
// renewal counts, when a quorum has it, and then one clock may let a second in. A node
// gets the lease when it answers or is asked again, which is at once, but only after what
// a rival's round has left there is undone, which takes up to one lease if the rival
// died. A clock that has jumped counts as wrong until the leases of that moment are over.
//
// [WithClockFaults] closes that gap: with k votes more than a quorum for each lease and
// each renewal, the clocks of any k nodes may jump at any moment, and the other nodes
// still do not let a second in. A renewal with fewer votes does not move the
// deadline, but has the missing nodes asked again. Then n − quorum − k nodes may be
// missing: with five nodes and k = 1, one.
//
// A process that stands still past its deadline knows it when it looks (Deadline,
// Err; not if the machine slept, and its clock with it), but its next statement
// runs before anybody can stop it: the resource has to check a fence
// ([WithFencing]) where that matters. A fence is larger than all that a quorum knows of,
// and than the time, so that fences grow also where nodes have lost their counters. The
// time is one on which the clocks of a quorum agree within half the longest lease; the
// true ones must agree within a third of it. A clock that does not agree makes no
// number, and its node no vote for one, which is logged: so a minority of wrong clocks
// changes nothing, unless such a node loses its counters and votes again at once: by a
// jump beyond [WithFenceExpiry] and back, or by a restart after which a jump ends its time
// without a vote. A number made within the longest lease after that may then be smaller
// than the one before. If a quorum of wrong clocks agrees, fences follow them: they go on
// growing from there when the clocks are set right, but go back if all nodes lose their
// counters then, also one after another.
//
// Martin Kleppmann [1] holds that an algorithm which relies on bounded delays and
// clocks must not guard correctness, since a pause or a jump of a clock lets two in.
// Without fencing tokens, which Redlock does not make, no lock is safe. Salvatore
// Sanfilippo, antirez, [2] answers that the time is checked after the votes are in, so
// that a delay before that point does no harm, and that a pause after it hurts every
// lock that expires. Clocks have to run at about the right rate only, and jumps can be
// kept off nodes. Both are right: the deadline here is antirez' check, renewed, and the
// fence is Kleppmann's token. A fence costs a second round trip, as the number of a quorum
// is written back to a quorum before it is handed out; without [WithFencing] it costs
// nothing.
//
// [1] "How to do distributed locking", 2016:
// https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html
//
// [2] "Is Redlock safe?", 2016: http://antirez.com/news/101
//
// One Redis with appendfsync always, or with replicas that acknowledge (WAIT, which
// this package does not offer), is simpler, and enough where minutes without locks are
// bearable when that server is gone. A quorum is for users to whom they are not.
//
// # Several keys
//
// [LockAll] and [DoAll] take keys of any of the lock kinds, also of different Redises, all
// or nothing: one after another, in an order that is the same in every process.
package multilock
