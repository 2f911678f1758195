// Package faults has the cases in which clients, networks and servers fail, and what must happen
// then. The name of a case begins with its row of this table. Some rows have their tests also or
// only in other packages, with the row in their names. G1 to G10 are in docs/guarantees.md.
//
// Clients:
//
//	F1   the holder is killed                                   the key is free within its lease, and the next waiter gets it
//	F2   the holder stands still past its lease                 on waking it has no lease, renews nothing, and leaves the next owner alone
//	F3   fair waiters are killed or stand still                 the others are served in their order (G8)
//	F4   a wait is cancelled, at any step                       nothing is left over, and the turn passes on
//	F5   what is not held is unlocked                           a typed error, and no key changes
//	F6   a reply is lost after its script has run               the call counts once (G5)
//	F7   a call arrives after its owner was given up            it takes nothing that lasts
//	F8   a bad lease, key or other argument                     it is refused before anything is sent; odd keys that are allowed work
//	F9   a client's wall clock is wrong                         no effect
//	F10  thousands of waiters, dozens of processes              one call for a key under way in each process, in bounded memory
//
// Messages:
//
//	F11  the connection of subscriptions is cut                 waiters look again once they have subscribed again
//	F12  a message is lost, foreign or forged                   a lost one costs time only, the others grant nothing (but see docs/acl.md)
//	F13  the slot of a channel moves                            the subscription follows, and waiters look again
//	F14  the server drops a slow subscriber                     as F11
//
// Network:
//
//	F15  the server falls silent                                calls end in their time, and leases at their deadlines (G2)
//	F16  connections are reset                                  calls are repeated or undone, and none counts twice
//	F17  latency, jitter, one slow node                         a lease shrinks by what was measured; a quorum does not wait for the slow node
//	F18  replies are lost, requests are not                     as F6
//	F19  no connection is left, in the pool or at the server    a typed error in time; renewals do not wait behind acquires
//
// Servers:
//
//	F20  it is killed, and comes back empty                     the holder learns of it at the next renewal, and fences grow; a quorum has one holder
//	F21  it is killed, and comes back with its memory           leases live on
//	F22  it loses power, and the last writes                    as F20
//	F23  SCRIPT FLUSH                                           a round trip more, which no caller notices
//	F24  FLUSHALL, or a key is deleted                          the holder learns of it at the next renewal, no hold is made again, fences grow
//	F25  a failover, with and without a lost write              the holder learns of a loss; with enough replicas the lease survives
//	F26  a node of a Redis Cluster fails over, or a slot moves  calls follow, or are repeated in their time
//	F27  READONLY, MASTERDOWN, NOREPLICAS, MISCONF              definitely not done: waits repeat the call, others get ErrUnavailable
//	F28  LOADING                                                as F27
//	F29  BUSY: a script does not end                            as F27; renewals are tried until the deadline
//	F30  it is out of memory                                    as F27; renewals, releases and fair's heartbeats work
//	F31  a lock is evicted                                      as F24; a policy that may evict locks is warned about
//	F32  a right is missing, or the server is too old           a typed error, and nothing is half done
//	F33  the key has another type                               ErrWrongType, and the key is left alone
//	F34  a clock jumps or runs at another rate                  as F20 on one server; a quorum has one holder while few clocks are wrong
//	F35  all nodes are away                                     leases end at their deadlines; afterwards, waiters are served without a stampede
//
// Names, proxies, secrets:
//
//	F36  a name moves to another server, connections do not     one holder; calls follow, and a subscription at the wrong server is found
//	F37  one endpoint for a whole cluster                       calls are divided by slot, and nothing is lost; multilock refuses to lock
//	F38  a proxy answers with a text of its own                 the call is undone or repeated, and leaves nothing over
//	F39  passwords and rights change                            no lease is lost, no wait ends, and releases go on
//	F40  no dedicated connection is free                        an error in time that names the option; renewals and Close do not need one
package faults
