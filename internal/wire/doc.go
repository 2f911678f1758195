// Package wire is all communication between a lock and Redis: a typed call for each script of package
// scripts. Nothing outside it sees KEYS, ARGV or a raw reply.
//
// The calls are methods of [Redis], [Fair], [Semaphore] and [RWLock] in this one package: separate
// packages would have to export the runner, the parsers and most names to each other.
//
//	Acquire        free -> held by the owner, one entry, for one lease; with fence numbers that only grow, if asked
//	AcquireAll     several, all free -> each held by its owner; or none
//	SetEntries     held by the owner -> the same with another number of entries
//	Renew          held by the owner -> the same for one lease from now; many keys at once
//	Release        held by the owner -> free; notifies the channel. For an owner in doubt, every acquire fails for a minute
//	ForceRelease   held by any owner -> free; notifies the channel
//	Inspect        the holder of the key
//
// AcquireEach, ReleaseEach and InspectEach are for several keys, each by itself. Scans finds keys
// by SCAN.
//
// A call that finds another holder changes nothing. An owner acquires once in its
// life: it is never used again after its release.
//
// The calls of [Fair] serve owners in the order of a queue; how the next one is chosen is
// in parts/serve.lua:
//
//	Acquire        free, and no owner waits -> held by the owner
//	Enter          the owner waits, behind all others
//	Release        held by the owner -> held by the next that is alive, which is notified
//	Leave          waits, or holds -> neither, and the next is served; may leave a tombstone
//	Confirm        held by the owner, as it was granted -> for the lease that it wants
//	Heartbeat      the client's owners keep their places; a free key is given to the next; many keys at once
//	ForceRelease   held by any owner -> held by the next
//	Inspect        the holder of the key, and how many wait
//	Queue          the waiters, in order
//
// Here, too, AcquireEach, ReleaseEach, LeaveEach and InspectEach are for several keys, and an
// owner enters once in its life. Renew and SetEntries are those of Redis.
//
// The calls of [Semaphore] are those of [Redis] without fences and AcquireAll, for as many owners as the key
// has permits. In addition:
//
//	Resize         the key has another number of permits, whatever lockers say
//
// An owner has its permit while its score is later than the server's clock. A hold that has ended may
// still be there, but Renew never moves its score. The next acquire removes such holds, with their labels,
// 100 at a time.
//
// The calls of [RWLock] are those of [Redis] without AcquireAll, for one writer or several readers. In
// addition:
//
//	Withdraw       a client waits -> it does not
//	MayShare       whether later readers of a client may share the hold of the owner, as no writer waits
//
// A node of a quorum has calls of its own for what counts as a vote: CheckNode, CheckVote,
// Identify, AcquireVoted, RenewVoted and WriteFence.
//
// # Outcomes
//
// [OutcomeOf] says how a call ended, and package engine what follows from that:
//
//	Done         its reply is known
//	Unavailable  definitely not done, and waiting may cure that
//	Refused      definitely not done, and waiting does not cure that; or the client is closed
//	Unknown      perhaps done, and waiting may cure the cause
//	Doubtful     perhaps done, and waiting does not cure the cause: WAIT was refused, or a proxy
//	             refuses, in words of its own, a call that the server may have carried out
//
// "Definitely not done" can be said because every script checks its arguments before its first write,
// but for the settings of a queue, which a locker checks once. What Redis may refuse also comes before
// that write, or the script undoes the write. So a lock never stays without an expiry, unless a user
// lacks the rights to both PEXPIRE and HDEL.
// Heartbeat and the calls that give up a hold or a place do their work and then serve the next
// as far as Redis lets them; the next heartbeat finds out what Redis refuses there.
//
// # Repetition
//
// A call whose reply was lost may be sent again: an acquire finds its own field
// and changes nothing, a release finds none, a number of entries is set and not added to. What
// a repeated call learns is weaker in two places: an acquire may have begun with
// the first attempt, and a release that finds nothing may itself have released.
// ForceRelease is the exception: its repeat may hit the next holder. An owner
// that enters again keeps its place; Heartbeat finds a grant that was lost with the
// reply.
//
// An attempt that is still on its way cannot be recalled. Release in doubt makes it harmless for a minute:
// whichever comes second, the late acquire or the giving up, finds what the first has left. Where
// Redis cannot take the tombstone (out of memory, say), and after that minute, an attempt that
// arrives late makes a hold that nobody uses, for at most its lease.
//
// # The files
//
// From the calls down to what they build on:
//
//	acquire.go, hold.go, renew.go, release.go, list.go    the calls of Redis
//	fair.go, fair_heartbeat.go, fair_reply.go             those of Fair
//	semaphore.go, rwlock.go                               those of Semaphore and RWLock
//	quorum.go, quorum_hold.go                             those of a node of a quorum
//	apart.go, each.go                                     calls for several keys
//	redis.go, cluster.go, replicas.go, dedicated.go       how a script is sent: to one server, a Cluster, with WAIT
//	redial.go, server.go                                  a client that is at the wrong server; what a server is
//	outcome.go, rights.go                                 how a call ended
//	reply.go, check.go, names.go, load.go                 replies, arguments, names and texts
package wire
